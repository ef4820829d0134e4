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
    "amp": "adp.converters.readers.amp:CONVERTER",
    "cline": "adp.converters.readers.cline:CONVERTER",
    "acp": "adp.converters.readers.acp:CONVERTER",
    "copilot_cli": "adp.converters.readers.copilot_cli:CONVERTER",
    "cursor": "adp.converters.readers.cursor:CONVERTER",
    "droid": "adp.converters.readers.droid:CONVERTER",
    "opencode": "adp.converters.readers.opencode:CONVERTER",
    "pi": "adp.converters.readers.pi:CONVERTER",
    "crush": "adp.converters.readers.crush:CONVERTER",
    "hermes_agent": "adp.converters.readers.hermes_agent:CONVERTER",
    "vscode_copilot_chat": "adp.converters.readers.vscode_copilot_chat:CONVERTER",
}
"""Name -> ``module:ATTRIBUTE``."""
