"""Formats that are only read, a module each, made with `adp.converters.kit`."""

READERS = {
    "acp": "adp.converters.readers.acp:CONVERTER",
    "codex": "adp.converters.readers.codex.read:CONVERTER",
    "gemini_cli": "adp.converters.readers.gemini_cli:CONVERTER",
    "grok_cli": "adp.converters.readers.grok_cli:CONVERTER",
    "kimi_code": "adp.converters.readers.kimi_code:CONVERTER",
    "pi": "adp.converters.readers.pi:CONVERTER",
    "qwen_code": "adp.converters.readers.qwen_code:CONVERTER",
}
"""Name -> ``module:ATTRIBUTE``."""
