"""Formats that are only read, a module each, made with `adp.converters.kit`."""

READERS = {
    "claude_code": "adp.converters.readers.claude_code:CONVERTER",
    "pi": "adp.converters.readers.pi:CONVERTER",
}
"""Name -> ``module:ATTRIBUTE``."""
