"""Writers of formats whose readers are in `adp.converters.readers`, and what they are made of."""
