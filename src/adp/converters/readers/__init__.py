"""Formats that are only read, a module each, made with `adp.converters.kit`."""

READERS = {
    "anthropic_messages": "adp.converters.readers.anthropic_messages:CONVERTER",
    "chat_completions": "adp.converters.readers.chat_completions:CONVERTER",
    "gemini_responses": "adp.converters.readers.gemini_responses:CONVERTER",
    "openai_responses": "adp.converters.readers.openai_responses:CONVERTER",
    "pi": "adp.converters.readers.pi:CONVERTER",
}
"""Name -> ``module:ATTRIBUTE``."""
