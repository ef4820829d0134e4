"""What an operator is: it says how a trajectory begins that is made of another one.

An operator asks who it needs, and answers with a `Change`; `adp.rollouts.evolving.carry_out` does
the rest. A file an operator; `OPERATORS` lists them in the order of a round.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from adp.core.registry import Registry
from adp.rollouts.evolving.asking import Asking
from adp.rollouts.evolving.written_steps import DoneStep, written_steps, written_tools
from adp.rollouts.turns import Tool, Turn
from adp_schema.errors import AdpError
from adp_schema.model import Task, Trajectory


class UnchangedError(AdpError):
    """There is nothing to change about a trajectory; the message says why."""


@dataclass(frozen=True)
class ParentRun:
    """A trajectory that another one is made of.

    Attributes:
        trajectory: the trajectory.
        steps: the turns of the agent with their results.
        tools: the tools that were on offer.
        task: the task.
    """

    trajectory: Trajectory
    steps: Sequence[DoneStep]
    tools: Sequence[Tool]
    task: Task

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the agent."""
        return tuple(step.turn for step in self.steps)

    @property
    def is_answered(self) -> bool:
        """Whether its last turn is an answer."""
        return bool(self.steps) and is_answer(self.steps[-1].turn)

    def facts(self, steps: int | None = None) -> str:
        """Task, tools and the first steps as text for a model; None: all steps."""
        parts = [
            f"# Task\n{self.task.instruction or 'not recorded'}",
            f"# Tools\n{written_tools(self.tools) or 'none'}",
            f"# Steps\n{written_steps(self.steps[:steps]) or 'none yet'}",
        ]
        return "\n\n".join(parts)


@dataclass(frozen=True)
class Change:
    """How a trajectory begins that is made of another one.

    Attributes:
        turns: the turns that are carried out first, really, in a fresh environment.
        kept: how many of them are the parent's, unchanged.
        step: number of the parent's turn from which on it differs, from 1.
        opening: how the policy's thought after these turns begins; None leaves it to the policy.
        rewritten: the trajectory, when nothing is to be carried out again.
    """

    turns: tuple[Turn, ...] = ()
    kept: int = 0
    step: int = 1
    opening: str | None = None
    rewritten: Trajectory | None = None


class Operator(Protocol):
    """Makes a change of a trajectory.

    Attributes:
        name: its name.
        about: what it does, one sentence.
        applies_to: what it is for: trajectories that are right, or those that are not.
        asks: whom it asks, `adp.rollouts.evolving.asking.REFINER` and so on.
    """

    name: str
    about: str
    applies_to: Literal["correct", "incorrect"]
    asks: tuple[str, ...]

    async def change(self, parent: ParentRun, asking: Asking, rng: random.Random) -> Change:
        """What to change.

        Args:
            parent: the trajectory.
            asking: asks refiner and analyser.
            rng: for what is drawn; the same for the same task, round and operator.

        Raises:
            UnchangedError: there is nothing to change.
            GaveUpError: who was asked gave no answer that can be used.
        """
        ...


BUILTIN = (
    *("re_rollout", "redundant_step", "global_refinement"),
    *("step_refine", "step_hint", "trajectory_hint"),
)
"""The operators of this package, in the order of a round."""

OPERATORS: Registry[Operator] = Registry(
    "operator",
    "adp.operators",
    {name: f"adp.rollouts.evolving.{name}:OPERATOR" for name in BUILTIN},
)


def is_answer(turn: Turn) -> bool:
    """Whether a turn is an answer: it can be read and calls nothing."""
    return turn.malformed is None and not turn.calls
