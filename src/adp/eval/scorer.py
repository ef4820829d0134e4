"""What a scorer is: a pure function of task and trajectory; and how its scores are added up.

    scores = scorer.score(item)          # one trajectory
    figures = scorer.figures(rows)       # all of them: means with intervals

A score is a number, or it is *unscored* with a reason; unscored is never 0. A trajectory that broke
for a reason that is not the agent's (`adp.rollouts.collecting.recorder`: infrastructure,
environment, policy) is unscored with ``infrastructure=True``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from adp.core.registry import Registry
from adp.rollouts.environment import Settings
from adp.stores.tasks import TaskKey
from adp_schema.model import Task, Trajectory


@dataclass(frozen=True, slots=True)
class Score:
    """One number about one trajectory.

    Attributes:
        metric: its name, such as ``tool_f1``.
        value: the number; booleans are 0 and 1; None is unscored.
        reason: why it is unscored; None when it is scored.
        evidence: what the number rests on, JSON: what was expected, what was found.
        infrastructure: whether it is unscored because something else than the agent failed.
    """

    metric: str
    value: float | None
    reason: str | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    infrastructure: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """What a scorer sees.

    Attributes:
        trajectory: with its steps, calls and observations; a branch with those of its parent.
        task: what is right, where it is known.
    """

    trajectory: Trajectory
    task: Task | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """A score and the trajectory that it is of, as it is read back from a table.

    Attributes:
        trajectory_id: the trajectory.
        task_id: id of its task; trajectories of one task are not independent.
        attempt: number of the attempt at the task.
        score: the score.
        task: what tells its task from others, which may have its id; None: the id alone does.
        branch: whether it is a branch, which begins in the midst of another one, and no attempt
            of its own, as rollouts that branched are.
    """

    trajectory_id: str
    task_id: str | None
    attempt: int | None
    score: Score
    task: TaskKey | None = None
    branch: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """A number about all trajectories, with how sure it is.

    Attributes:
        name: its name, such as ``success`` or ``pass^2``.
        value: the number; None when nothing was scored or it is undefined.
        low: lower end of the interval; None when there is none.
        high: upper end of the interval.
        method: how the interval was made, such as ``wilson`` or ``cluster``.
        count: trajectories that were scored.
        tasks: tasks that they belong to.
        unscored: trajectories that were not scored.
        infrastructure: of these, how many because something else than the agent failed.
        reason: why it is undefined, or has no interval.
        amount: whether it is an amount, such as seconds or calls: no share, even where it lies
            between 0 and 1.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    method: str | None = None
    count: int = 0
    tasks: int = 0
    unscored: int = 0
    infrastructure: int = 0
    reason: str | None = None
    amount: bool = False


class Scorer(Protocol):
    """Scores trajectories.

    One that asks an endpoint may have an attribute ``asks`` that is true: it then scores several
    trajectories at once, in threads, between calls of
    ``limit(requests)`` and ``close()``, where it has these methods. Its ``costs``, by the name of
    the model, are reported.

    Attributes:
        name: its name in the registry.
        version: raised when its numbers change.
    """

    name: str
    version: str

    def score(self, item: Item) -> Sequence[Score]:
        """Score one trajectory. Whatever is in it, it raises nothing."""
        ...

    def figures(self, rows: Sequence[Scored]) -> Sequence[Figure]:
        """Add the scores of this scorer up."""
        ...


@dataclass(frozen=True)
class ScorerKind:
    """A scorer that can be named on the command line.

    Attributes:
        name: its name.
        about: what it measures, one sentence, with the source of its definition.
        settings: its settings, a class with defaults.
        make: makes one.
    """

    name: str
    about: str
    settings: type[Settings]
    make: Callable[[Any], Scorer]


SCORERS: Registry[ScorerKind] = Registry(
    "scorer",
    "adp.scorers",
    has=("name", "about", "settings", "make"),
    builtin={
        "agent_reward": "adp.eval.scorers.agent_reward:KIND",
        "agent_training": "adp.eval.scorers.agent_training:KIND",
        "answer": "adp.eval.scorers.answer:KIND",
        "capability": "adp.eval.scorers.capability:KIND",
        "conciseness": "adp.eval.scorers.conciseness:KIND",
        "efficiency": "adp.eval.scorers.efficiency:KIND",
        "et_agent": "adp.eval.scorers.et_agent:KIND",
        "execution": "adp.eval.scorers.execution:KIND",
        "format": "adp.eval.scorers.format:KIND",
        "judge": "adp.eval.scorers.judge:KIND",
        "m3": "adp.eval.scorers.m3:KIND",
        "outcome": "adp.eval.scorers.outcome:KIND",
        "plan_evaluator": "adp.eval.scorers.plan_evaluator:KIND",
        "planning": "adp.eval.scorers.planning:KIND",
        "reasoning_length": "adp.eval.scorers.reasoning_length:KIND",
        "schema_validity": "adp.eval.scorers.schema_validity:KIND",
        "tool_f1": "adp.eval.scorers.tool_f1:KIND",
        "tool_productivity": "adp.eval.scorers.tool_productivity:KIND",
        "tool_verifier": "adp.eval.scorers.tool_verifier:KIND",
        "trajectory_match": "adp.eval.scorers.trajectory_match:KIND",
    },
)
