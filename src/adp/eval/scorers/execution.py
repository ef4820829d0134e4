"""Whether calls brought a result.

A result failed when the source marks it as an error, gives it a type of error, or an exit status
other than 0. Where the source says nothing, ET-Agent's rule over the text stands in: it is empty,
or holds "Execution Timeout", "Tool execute failed", or the letters "error" in any case (ET-Agent,
arXiv 2601.06860, ``radar/run.py``). That rule is wrong about results that only speak of errors, so
what rests on marks alone and what rests on texts alone are reported, too. ET-Agent's
``tool_execute_correct_ratio`` is ``execution_text:calls``; its ``errors_with_correctness_ratio`` is
the mean of ``correct_per_error``, correctness / failed calls (correctness alone without one).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from adp.eval.metrics import evidence_figure
from adp.eval.scorer import Figure, Item, Score, Scored, ScorerKind
from adp.eval.scorers.base import PerTrajectory, share, unscored
from adp.eval.scorers.correctness import WithCorrectness, correctness
from adp.rollouts.trajectory_reading import SHOWN, Made, WithActor, agent_calls, brief, cut
from adp_schema.model import Observation


class ExecutionSettings(WithCorrectness, WithActor):
    """Settings of the scorer ``execution``."""


class ExecutionScorer(PerTrajectory):
    """Scores how many calls succeed.

    Args:
        settings: its settings.
    """

    name = "execution"
    version = "2"
    metrics = ("execution_success", "execution_typed", "execution_text", "correct_per_error")

    def __init__(self, settings: ExecutionSettings) -> None:
        self.settings = settings

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a trajectory that ran as it should."""
        calls = agent_calls(item.trajectory, self.settings.actor)
        right = correctness(item, self.settings.correct)
        if not calls:
            more = {"from": right.source, "failed": 0}
            per_error = Score("correct_per_error", right.value, right.reason, more)
            return [*unscored(self.metrics[:3], "the agent made no call"), per_error]
        answered = [call for call in calls if call.results]
        marks = {id(call): marked(call) for call in answered}
        wrong = [call for call in answered if failed(call, marks[id(call)])]
        known = [mark for mark in marks.values() if mark is not None]
        by_text = sum(text_failed(call) for call in answered)
        evidence = {
            "good": len(answered) - len(wrong),
            "results": len(answered),
            "calls": len(calls),
            "types": _types(wrong),
            "failed": [brief(call) for call in wrong[:SHOWN]],
        }
        none = "no call has a recorded result"
        scores = [
            share("execution_success", len(answered) - len(wrong), len(answered), none, evidence),
            share(
                "execution_typed",
                len(known) - sum(known),
                len(known),
                "the source does not mark which results are errors",
                {"good": len(known) - sum(known), "results": len(known)},
            ),
            share(
                "execution_text",
                len(answered) - by_text,
                len(answered),
                none,
                {"good": len(answered) - by_text, "results": len(answered)},
            ),
        ]
        value = None if right.value is None else right.value / max(len(wrong), 1)
        more = {"from": right.source, "failed": len(wrong)}
        return [*scores, Score("correct_per_error", value, right.reason, more)]

    def figures(self, rows: Sequence[Scored]) -> Sequence[Figure]:
        """Means over trajectories, and shares of all calls."""
        means = list(super().figures(rows))
        parts = ("good", "results")
        return means + [
            evidence_figure(rows, name, parts, f"{name}:calls", self.intervals)
            for name in self.metrics[:3]
        ]


def marked(call: Made) -> bool | None:
    """Whether the source marks a call's result as failed; None when it marks nothing."""
    marks = [mark for mark in map(_marked, call.results) if mark is not None]
    return any(marks) if marks else None


def _marked(result: Observation) -> bool | None:
    if result.is_error or result.error_type or result.exit_code:
        return True
    return None if result.is_error is None and result.exit_code is None else False


def text_failed(call: Made) -> bool:
    """Whether the text of a call's result reads like a failure, by ET-Agent's rule."""
    return any(_reads_failed(result.text or "") for result in call.results)


def _reads_failed(text: str) -> bool:
    signs = ("Execution Timeout", "Tool execute failed")
    return not text or any(sign in text for sign in signs) or "error" in text.lower()


def failed(call: Made, mark: bool | None = None) -> bool:
    """Whether a call failed, by its mark or, without one, by the text.

    Args:
        call: the call, with results.
        mark: what `marked` says of it.
    """
    return text_failed(call) if mark is None else mark


def _types(failed: Sequence[Made]) -> dict[str, int]:
    kinds = Counter(
        next(
            (cut(result.error_type, 60) for result in call.results if result.error_type), "untyped"
        )
        for call in failed
    )
    return dict(sorted(kinds.items(), key=lambda item: (-item[1], item[0]))[:SHOWN])


KIND = ScorerKind(
    name="execution",
    about="Share of calls that succeed, by recorded errors and by ET-Agent's rule over texts; "
    "correctness for each error.",
    settings=ExecutionSettings,
    make=ExecutionScorer,
)
