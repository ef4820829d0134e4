"""Files of the systems whose features this project covers: read, and written back equal."""

SYSTEMS = {
    "alpaca_rows": "adp.converters.systems.alpaca_rows:CONVERTER",
    "et_agent_flywheel": "adp.converters.systems.et_agent:FLYWHEEL",
    "et_agent_results": "adp.converters.systems.et_agent:RESULTS",
    "et_agent_rollouts": "adp.converters.systems.et_agent:ROLLOUTS",
    "sage_dialogs": "adp.converters.systems.sage_dialogs:CONVERTER",
    "sage_trajectories": "adp.converters.systems.sage_trajectories:CONVERTER",
    "tiny_tool_use": "adp.converters.systems.tiny_tool_use:CONVERTER",
}
"""Name -> ``module:ATTRIBUTE``."""
