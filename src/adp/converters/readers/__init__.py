"""Formats that are only read, a module each, made with `adp.converters.kit`."""

READERS = {
    "codex": "adp.converters.readers.codex.read:CONVERTER",
    "gemini_cli": "adp.converters.readers.gemini_cli:CONVERTER",
    "kimi_code": "adp.converters.readers.kimi_code:CONVERTER",
    "pi": "adp.converters.readers.pi:CONVERTER",
    "qwen_code": "adp.converters.readers.qwen_code:CONVERTER",
}
"""Name -> ``module:ATTRIBUTE``."""
