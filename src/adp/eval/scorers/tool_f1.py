"""Precision, recall and F1 of tool calls against those that a right run makes.

Three ways of counting, after the tool metrics of BFCL, tau2's check of actions and ToolBench:

- **names**: the multiset of tool names;
- **calls**: names with all arguments, one call made for one expected, as many pairs as possible
  (a maximum bipartite matching, so that the order of the output never costs anything);
- **arguments**: calls of one tool are paired so that as many arguments as possible agree; the
  share of expected arguments that do is `argument_accuracy`.

Values are equal as JSON: 1 and 1.0 are, 1 and true are not, "1" and 1 are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from adp.eval.metrics import evidence_figure
from adp.eval.scorer import Figure, Item, Score, Scored, ScorerKind
from adp.eval.scorers.base import PerTrajectory, unscored
from adp.eval.scorers.matching import assign, bipartite
from adp.rollouts.task_references import Expected, expected_calls
from adp.rollouts.trajectory_reading import (
    SHOWN,
    Made,
    WithActor,
    agent_calls,
    brief,
    cut,
    text_of,
)

Reference = Literal["auto", "expected_calls", "gold_trajectory"]
Compared = Literal["exact", "ignore", "subset", "superset"]


class ToolF1Settings(WithActor):
    """Settings of the scorer ``tool_f1``."""

    reference: Reference = "auto"
    """Where expected calls come from: the task's expected_calls, its gold_trajectory, or the
    first of both that is there."""
    arguments: Compared = "exact"
    """When the arguments of a call fit: exact; subset: what was given is right, some may be
    missing; superset: what is expected is there, others may be added; ignore."""


class ToolF1Scorer(PerTrajectory):
    """Scores calls against expected ones.

    Args:
        settings: its settings.
    """

    name = "tool_f1"
    metrics = (
        "tool_name_precision",
        "tool_name_recall",
        "tool_name_f1",
        "tool_precision",
        "tool_recall",
        "tool_f1",
        "argument_accuracy",
    )

    def __init__(self, settings: ToolF1Settings) -> None:
        self.settings = settings

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a trajectory that ran as it should."""
        wanted = expected_calls(item.task, self.settings.reference)
        if wanted is None:
            return unscored(self.metrics, "the task does not say which calls are expected")
        made = agent_calls(item.trajectory, self.settings.actor)
        names = Counter(call.name for call in made) & Counter(call.name for call in wanted)
        mode = self.settings.arguments
        pairs = bipartite(made, wanted, lambda match, other: fits(match, other, mode))
        hit, result = {i for i, _ in pairs}, {j for _, j in pairs}
        evidence = {
            "unexpected": [brief(made[i]) for i in range(len(made)) if i not in hit][:SHOWN],
            "missing": [_shown(wanted[j]) for j in range(len(wanted)) if j not in result][:SHOWN],
        }
        return [
            *_prf("tool_name_", names.total(), len(made), len(wanted), {}),
            *_prf("tool_", len(pairs), len(made), len(wanted), evidence),
            _argument_accuracy(made, wanted),
        ]

    def figures(self, rows: Sequence[Scored]) -> Sequence[Figure]:
        """Means over trajectories, and precision and recall of all calls together."""
        figures = list(super().figures(rows))
        for prefix in ("tool_name_", "tool_"):
            for kind, full in (("precision", "made"), ("recall", "expected")):
                parts = ("matched", full)
                name = f"{prefix}{kind}:calls"
                figures.append(evidence_figure(rows, f"{prefix}f1", parts, name, self.intervals))
        return figures


def _prf(
    prefix: str, matched: int, made: int, wanted: int, evidence: Mapping[str, Any]
) -> list[Score]:
    """Precision, recall and F1; where nothing is expected and nothing was called all are 1."""
    counts = {"matched": matched, "made": made, "expected": wanted}
    right = float(not made and not wanted)
    precision = matched / made if made else (right or None)
    recall = matched / wanted if wanted else (right or None)
    f1 = 2 * matched / (made + wanted) if made + wanted else 1.0
    return [
        _score(f"{prefix}precision", precision, "the agent made no call"),
        _score(f"{prefix}recall", recall, "no call is expected"),
        Score(f"{prefix}f1", f1, evidence={**counts, **evidence}),
    ]


def _score(metric: str, value: float | None, reason: str) -> Score:
    return Score(metric, value, reason if value is None else None)


def fits(call: Made, wanted: Expected, mode: str = "exact") -> bool:
    """Whether a call is the expected one.

    Args:
        call: the call that was made.
        wanted: the expected call; where its arguments are unknown only the name counts.
        mode: how arguments are compared: exact, ignore, subset or superset.
    """
    if call.name != wanted.name:
        return False
    if mode == "ignore" or (wanted.arguments is None and wanted.allowed is None):
        return True
    if call.arguments is None:
        return False
    known = wanted.argument_names()
    given_right = all(
        key in known and wanted.accepts(key, call.arguments) for key in call.arguments
    )
    all_there = all(wanted.accepts(key, call.arguments) for key in known)
    return {"exact": given_right and all_there, "subset": given_right, "superset": all_there}[mode]


def _argument_accuracy(made: Sequence[Made], wanted: Sequence[Expected]) -> Score:
    """Share of expected arguments that have a right value in the call that is paired."""
    right, total = 0, 0
    for name in dict.fromkeys(call.name for call in wanted):
        calls = [call for call in made if call.name == name and call.arguments is not None]
        theirs = [call for call in wanted if call.name == name]
        total += sum(len(call.argument_names()) for call in theirs)
        counts = [[_agreeing(item, other) for other in theirs] for item in calls]
        right += int(sum(counts[i][j] for i, j in assign(counts)))
    if not total:
        return Score("argument_accuracy", None, "no expected call has arguments")
    return Score("argument_accuracy", right / total, evidence={"right": right, "expected": total})


def _agreeing(call: Made, wanted: Expected) -> float:
    given = call.arguments or {}
    return float(sum(wanted.accepts(key, given) for key in wanted.argument_names()))


def _shown(call: Expected) -> dict[str, Any]:
    known = call.allowed if call.allowed is not None else call.arguments
    return {"name": cut(call.name), "arguments": cut(text_of(known or {}))}


KIND = ScorerKind(
    name="tool_f1",
    about="Precision, recall and F1 of tool calls, by names and by names with arguments, and the "
    "share of right arguments.",
    settings=ToolF1Settings,
    make=ToolF1Scorer,
)
