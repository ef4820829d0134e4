"""Formats that are only read, a module each, made with `adp.converters.kit`."""

READERS = {
    "claude_code": "adp.converters.readers.claude_code:CONVERTER",
    "claude_stream_json": "adp.converters.readers.claude_stream:CONVERTER",
    "claude_workflow": "adp.converters.readers.claude_workflow:CONVERTER",
    "codex": "adp.converters.readers.codex.read:CONVERTER",
    "gemini_cli": "adp.converters.readers.gemini_cli:CONVERTER",
    "kimi_code": "adp.converters.readers.kimi_code:CONVERTER",
    "pi": "adp.converters.readers.pi:CONVERTER",
    "qwen_code": "adp.converters.readers.qwen_code:CONVERTER",
}
"""Name -> ``module:ATTRIBUTE``."""
