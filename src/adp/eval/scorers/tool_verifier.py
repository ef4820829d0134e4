"""SAGE's `ToolVerifier`: whether the tools that are called exist, with what they must be given.

- ``tool_exists``: share of the calls whose tool is on offer; where no tools are recorded, or with
  ``ids=true``, whose name is an id of SAGE's, such as ``weather_query_001``;
- ``arguments_given``: share of the calls with all arguments that their tool requires; a tool that
  is not on offer is wrong here, too;
- ``tool_verifier``: share of the calls that are right in both.

The scorer ``schema_validity`` looks at types and values, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adp.eval.scorer import Item, Score, ScorerKind
from adp.eval.scorers.base import PerTrajectory, scored, unscored
from adp.eval.scorers.sage_text import TOOL_ID
from adp.eval.scorers.tool_schemas import ToolSchema, schemas_of
from adp.rollouts.environment import Settings
from adp.rollouts.trajectory_reading import SHOWN, Made, agent_calls, brief


class ToolVerifierSettings(Settings):
    """Settings of the scorer ``tool_verifier``."""

    ids: bool = False
    """Look at the form of names alone, even where the tools on offer are recorded."""


class ToolVerifierScorer(PerTrajectory):
    """Scores whether tools exist and get what they require.

    Args:
        settings: its settings.
    """

    name = "tool_verifier"
    metrics = ("tool_verifier", "tool_exists", "arguments_given")

    def __init__(self, settings: ToolVerifierSettings | None = None) -> None:
        self.settings = settings or ToolVerifierSettings()

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a trajectory that ran as it should."""
        calls = agent_calls(item.trajectory)
        if not calls:
            return unscored(self.metrics, "the agent made no call")
        tools = None if self.settings.ids else schemas_of(item.trajectory.tools)
        exists = [_exists(call.name, tools) for call in calls]
        given = [_given(call, tools) for call in calls]
        both = [first and second for first, second in zip(exists, given, strict=True)]
        wrong = [brief(call) for call, right in zip(calls, both, strict=True) if not right]
        return [
            scored("tool_verifier", sum(both) / len(calls), {"wrong": wrong[:SHOWN]}),
            scored("tool_exists", sum(exists) / len(calls)),
            scored("arguments_given", sum(given) / len(calls)),
        ]


def _exists(name: str, tools: Mapping[str, ToolSchema] | None) -> bool:
    return bool(TOOL_ID.fullmatch(name)) if tools is None else name in tools


def _given(call: Made, tools: Mapping[str, ToolSchema] | None) -> bool:
    """Whether a call has the arguments that its tool requires."""
    if tools is None:
        return True
    tool = tools.get(call.name)
    required = (tool.given or {}).get("required") if tool is not None else None
    listed = required if isinstance(required, list) else []
    return tool is not None and all(name in (call.arguments or {}) for name in listed)


KIND = ScorerKind(
    name="tool_verifier",
    about="Share of calls whose tool exists and gets the arguments that it requires (SAGE's "
    "ToolVerifier).",
    settings=ToolVerifierSettings,
    make=ToolVerifierScorer,
)
