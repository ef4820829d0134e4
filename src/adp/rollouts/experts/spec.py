"""Assistance as it is written on a command line: ``MODE[:key=value,...]``.

informed
informed:init_limit=3,overseer='openai:model=m,base_url=http://localhost:8000/v1'
random:expert_probability=0.2
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from adp.rollouts.collecting.actor import Actor, Alone
from adp.rollouts.collecting.recorder import About
from adp.rollouts.experts.counterfactual import check_forks
from adp.rollouts.experts.judges import Judges, overseer_of, rewriter_of, witness_of
from adp.rollouts.experts.modes import Assistance
from adp.rollouts.experts.settings import AssistSettings
from adp.rollouts.policy import POLICIES, Policy
from adp.rollouts.spec import load, read_spec, wrong_setting
from adp_schema.errors import UsageError
from adp_schema.model import Task

_JUDGES = {"overseer": overseer_of, "witness": witness_of, "rewriter": rewriter_of}


class AssistSpec(AssistSettings):
    """Settings of assistance with judges that are policies."""

    overseer: str | None = None
    """Policy that says who is stuck."""
    witness: str | None = None
    """Policy that says what was seen."""
    rewriter: str | None = None
    """Policy that rewrites thoughts."""


@dataclass(frozen=True)
class Cast:
    """Who plays in a run.

    Attributes:
        actors: makes the actor of an episode.
        policies: all policies, to be closed at the end.
        facts: what must not change while the store grows; JSON.
        assistance: how episodes are assisted; None: a policy acts alone.
    """

    actors: Callable[[About], Actor]
    policies: tuple[Policy, ...]
    facts: dict[str, Any] = field(default_factory=dict)
    assistance: Assistance | None = None

    def able(self, tasks: Iterable[Task], environment: Any) -> tuple[list[Task], list[str]]:
        """The tasks that can be done, and why each of the others cannot.

        Args:
            tasks: the tasks.
            environment: one of those that they would run in.

        Raises:
            UsageError: alternates are followed to the end, and the environment cannot be forked.
        """
        kept: list[Task] = []
        left_out = []
        if self.assistance is not None and self.assistance.settings.follows:
            check_forks(environment)
        for task in tasks:
            reason = self.assistance and self.assistance.missing(task, environment)
            if reason:
                left_out.append(f"task '{task.task_id}' is left out: {reason}")
            else:
                kept.append(task)
        return kept, left_out


def cast_of(policy: Policy, text: str | None = None) -> Cast:
    """Who plays, from a policy and a spec of assistance.

    Args:
        policy: the agent. A policy with an attribute ``actors``, such as ``expert``, brings its
            own way to act.
        text: the spec; None: no assistance.

    Raises:
        UsageError: a mode or a setting is unknown, or a value is wrong.
    """
    actors = getattr(policy, "actors", None)
    if text is None:
        if isinstance(actors, Assistance):
            return Cast(actors, (policy,), assistance=actors)
        return Cast(Alone(policy), (policy,))
    if actors is not None:
        raise UsageError(f"the policy '{policy.name}' acts alone; leave out the assistance")
    spec = read_assist(text)
    judging = {name: _policy(getattr(spec, name)) for name in _JUDGES if getattr(spec, name)}
    made = {name: _JUDGES[name](judge) for name, judge in judging.items()}
    assistance = Assistance(spec, policy, Judges(**made))  # type: ignore[arg-type]
    facts = {
        "assistance": spec.plain(),
        "judges": {name: judge.name for name, judge in judging.items()},
    }
    return Cast(assistance, (policy, *judging.values()), facts, assistance)


def read_assist(text: str) -> AssistSpec:
    """Read a spec of assistance.

    Raises:
        UsageError: the mode or a setting is unknown, or a value is wrong.
    """
    mode, given = read_spec(text)
    try:
        return AssistSpec.model_validate({"mode": mode, **given})
    except ValidationError as error:
        message = wrong_setting(error, AssistSpec)
        modes = "none, ground_truth, random, informed"
        raise UsageError(f"assistance '{mode}': {message}; modes: {modes}") from error


def _policy(text: str) -> Policy:
    kind, settings = load(POLICIES, text)
    return kind.make(settings)
