"""Writers of formats whose readers are in `adp.converters.readers`, a module each."""
