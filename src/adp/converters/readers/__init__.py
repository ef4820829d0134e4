"""Formats that are only read, a module each, made with `adp.converters.kit`."""

READERS = {
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
