"""The interlingua and its store."""
