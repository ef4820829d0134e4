"""Looking at bounds of figures before a run begins, so that a slip is not found out at its end."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

from adp.eval.scorer import SCORERS, Item, Scored
from adp.eval.scoring import ChosenScorer
from adp_schema.errors import UsageError, unknown_name
from adp_schema.model import Observation, Step, Task, ToolCall, Trajectory

BROKEN = "broken"
"""What a bound calls the share of the episodes that broke."""

SHARE = re.compile(r"(outcome\.)?(success|truncated|terminated|error|broken|pass[@^]\d+)")
"""Figures that lie between 0 and 1 whatever the run."""

_ASKS = ("judge", "conciseness")
"""Scorers that may ask a model, and are not tried out."""

_NEAR = 0.8


def check_bounds(bounds: Iterable[Mapping[str, float]], scorers: Sequence[ChosenScorer]) -> None:
    """Refuse bounds that can never hold, as far as that is known before a run.

    Which figures scorers give depends on the run, so an unknown name is refused only when it is
    near to one that they always give.

    Args:
        bounds: figure -> limit.
        scorers: the scorers of the run.

    Raises:
        UsageError: a share has a bound that is none; a scorer is not in the run; a figure is
            misspelt.
    """
    given = {name: limit for bound in bounds for name, limit in bound.items()}
    names = {item.scorer.name for item in scorers}
    for name, limit in given.items():
        if not limit == limit:  # NaN
            raise UsageError(f"the bound of {name} is no number")
        if SHARE.fullmatch(name) and not 0 <= limit <= 1:
            raise UsageError(f"{name} is a share, between 0 and 1; its bound is {limit:g}")
        scorer, dot, _ = name.partition(".")
        if dot and scorer not in names:
            raise UsageError(f"{name}: {unknown_name('scorer of this run', scorer, names)}")
    known = _known(scorers)
    for name in given:
        figure = name.rpartition(".")[2]
        if known and figure not in known and figure.isidentifier():
            near = difflib.get_close_matches(figure, known, n=3, cutoff=_NEAR)
            if near:
                raise UsageError(f"no scorer gives '{name}'; did you mean {' or '.join(near)}?")


def _known(scorers: Sequence[ChosenScorer]) -> set[str]:
    """Figures of a run of one episode; empty when not all scorers can be tried out."""
    known = {BROKEN}
    for scorer in scorers:
        if scorer.scorer.name in _ASKS or scorer.scorer.name not in SCORERS.builtin:
            return set()
        scores = scorer.scorer.score(_episode())
        rows = [Scored("a", "t", 0, score) for score in scores]
        known.update(figure.name for figure in scorer.scorer.figures(rows))
    return known


def _episode() -> Item:
    """An episode with all that most scorers look at."""
    call = ToolCall(call_id="c", kind="function", name="f", arguments="{}", arguments_kind="object")
    result = Observation(call_id="c", text="1", is_error=False)
    steps = [
        Step(step=0, source="user", kind="message", text="1?"),
        Step(step=1, source="agent", kind="llm_turn", calls=[call], observations=[result]),
        Step(step=2, source="agent", kind="llm_turn", text="1"),
    ]
    trajectory = Trajectory(trajectory_id="a", steps=steps, final_answer="1")
    trajectory.success, trajectory.reward = True, 1.0
    trajectory.terminated, trajectory.truncated = True, False
    return Item(trajectory, Task(task_id="t", instruction="1?", answers='["1"]'))
