"""Formats that are only read, a module each, made with `adp.converters.kit`."""

READERS = {
    "claude_code": "adp.converters.readers.claude_code:CONVERTER",
    "claude_stream_json": "adp.converters.readers.claude_stream:CONVERTER",
    "claude_workflow": "adp.converters.readers.claude_workflow:CONVERTER",
    "pi": "adp.converters.readers.pi:CONVERTER",
}
"""Name -> ``module:ATTRIBUTE``."""
