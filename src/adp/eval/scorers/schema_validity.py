"""Whether calls fit the tools on offer: JSON, known tool, required arguments, types, values.

The checks are those of BFCL's and of servers that carry out calls, by JSON Schema (2020-12) with
the library ``jsonschema``. A call is valid when nothing is wrong with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from adp.eval.metrics import evidence_figure
from adp.eval.scorer import Figure, Item, Score, Scored, ScorerKind
from adp.eval.scorers.base import PerTrajectory, unscored
from adp.eval.scorers.tool_schemas import ToolSchema, schemas_of
from adp.rollouts.trajectory_reading import SHOWN, Made, WithActor, agent_calls, brief

_NO_TOOLS = "the tools on offer are not recorded"
_TOOL_KINDS = frozenset({"function", "mcp", "gui", None})

WRONG = ("not_json", "unknown_tool", "missing", "type", "enum", "extra", "other")
"""What can be wrong with a call: arguments that are no JSON object; a tool that is not on offer; a
required argument that is missing; a wrong type; a value that is not among the listed ones; an
argument that is not listed; another rule of the schema."""


class SchemaSettings(WithActor):
    """Settings of the scorer ``schema_validity``."""

    extras: bool = True
    """Count arguments that a tool does not list as wrong, unless its schema says that it takes
    others."""


class SchemaScorer(PerTrajectory):
    """Scores whether calls fit their tools.

    Args:
        settings: its settings.
    """

    name = "schema_validity"
    metrics = ("schema_valid", "arguments_json", "tool_known")

    def __init__(self, settings: SchemaSettings) -> None:
        self.settings = settings

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a trajectory that ran as it should."""
        made = agent_calls(item.trajectory, self.settings.actor)
        calls = [call for call in made if call.kind in _TOOL_KINDS]
        if not calls:
            return unscored(self.metrics, "the agent made no call of a tool")
        number = len(calls)
        readable = sum(call.arguments is not None for call in calls)
        json_score = Score(
            "arguments_json", readable / number, evidence={"good": readable, "calls": number}
        )
        tools = schemas_of(item.trajectory.tools)
        if tools is None:
            return [
                *unscored(["schema_valid"], _NO_TOOLS),
                json_score,
                *unscored(["tool_known"], _NO_TOOLS),
            ]
        known = sum(call.name in tools for call in calls)
        return [
            self._valid(calls, tools),
            json_score,
            Score("tool_known", known / number, evidence={"good": known, "calls": number}),
        ]

    def _valid(self, calls: Sequence[Made], tools: Mapping[str, ToolSchema]) -> Score:
        wrong: Counter[str] = Counter()
        shown: list[dict[str, Any]] = []
        good = 0
        for call in calls:
            result = self._wrong(call, tools)
            good += not result
            wrong.update({kind for kind, _ in result})
            if result and len(shown) < SHOWN:
                shown.append({**brief(call), "wrong": [list(pair) for pair in result[:SHOWN]]})
        counts = {kind: wrong[kind] for kind in WRONG}
        evidence = {"good": good, "calls": len(calls), **counts, "invalid": shown}
        return Score("schema_valid", good / len(calls), evidence=evidence)

    def _wrong(self, call: Made, tools: Mapping[str, ToolSchema]) -> list[tuple[str, str]]:
        tool = tools.get(call.name)
        if tool is None:
            return [("unknown_tool", "no tool of that name is on offer")]
        if call.arguments is None:
            return [("not_json", "the arguments are not a JSON object")]
        return tool.wrong(call.arguments, extras=self.settings.extras)

    def figures(self, rows: Sequence[Scored]) -> Sequence[Figure]:
        """Means over trajectories, shares of all calls, and how often each thing is wrong."""
        figures = list(super().figures(rows))
        for name in self.metrics:
            parts = ("good", "calls")
            figures.append(evidence_figure(rows, name, parts, f"{name}:calls", self.intervals))
        for kind in WRONG:
            name = f"invalid:{kind}"
            parts = (kind, "calls")
            figures.append(evidence_figure(rows, "schema_valid", parts, name, self.intervals))
        return figures


KIND = ScorerKind(
    name="schema_validity",
    about="Share of calls that fit the tools on offer by JSON Schema: arguments are JSON, the tool "
    "exists, required arguments, types, listed values, no others.",
    settings=SchemaSettings,
    make=SchemaScorer,
)
