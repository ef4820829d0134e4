"""Files of the loops that come with this package."""
