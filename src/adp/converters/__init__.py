"""Formats, both directions: one file a format."""
