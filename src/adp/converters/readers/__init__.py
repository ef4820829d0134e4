"""Formats that are only read, a module each, made with `adp.converters.kit`."""

READERS = {
    "anthropic_managed_agents": "adp.converters.readers.anthropic_managed_agents:CONVERTER",
    "anthropic_messages": "adp.converters.readers.anthropic_messages:CONVERTER",
    "api_streams": "adp.converters.readers.api_streams:CONVERTER",
    "chat_completions": "adp.converters.readers.chat_completions:CONVERTER",
    "gemini_responses": "adp.converters.readers.gemini_responses:CONVERTER",
    "http_recording": "adp.converters.readers.http_recording:CONVERTER",
    "langchain_messages": "adp.converters.readers.langchain_messages:CONVERTER",
    "langsmith": "adp.converters.readers.langsmith:CONVERTER",
    "openai_agents_run_state": "adp.converters.readers.openai_agents_run_state:CONVERTER",
    "openai_responses": "adp.converters.readers.openai_responses:CONVERTER",
    "openhands_llm_logs": "adp.converters.readers.openhands_llm_logs:CONVERTER",
    "pi": "adp.converters.readers.pi:CONVERTER",
}
"""Name -> ``module:ATTRIBUTE``."""
