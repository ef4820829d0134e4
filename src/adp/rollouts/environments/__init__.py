"""Environments that come with the package, one file each, and adapters for those of others."""
