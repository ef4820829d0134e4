"""Labels of steps that M3 does not learn from."""

from __future__ import annotations

SUBOPTIMAL = (
    "REWARD_PARSING_ERROR",
    "REWARD_BAD_TOOL_CALL",
    "REWARD_ERROR_NO_CATEGORY",
    "REWARD_AGENT_STUCK",
    "REWARD_FINAL_ANSWER_NO_MATCH",
)
"""M3's erroneous categories; a label that holds one of these names counts."""
