"""What `adp evolve` and a stage of a loop are told, and the run that this makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from adp.rollouts.collecting.limits import Limits, limits_in
from adp.rollouts.collecting.offered_tools import check_tasks, closed, made
from adp.rollouts.collecting.run_file import kind_facts
from adp.rollouts.collecting.tasks import read_tasks
from adp.rollouts.environment import EnvironmentKind, Settings
from adp.rollouts.evolving.asking import ANALYSER, JUDGE, REFINER
from adp.rollouts.evolving.buffer_plan import chosen_operators
from adp.rollouts.evolving.carry_out import Evolver
from adp.rollouts.evolving.evolve import Watch, evolve_now
from adp.rollouts.evolving.report import EvolveReport
from adp.rollouts.evolving.settings import EvolveSettings, Rule
from adp.rollouts.evolving.sources import TaskJobs, read_jobs
from adp.rollouts.experts.spec import cast_of
from adp.rollouts.policy import POLICIES, Policy, PolicyKind
from adp.rollouts.spec import Named, load, load_environment, split_named
from adp_schema.store import Store

LIMITS = ("max_turns", "max_calls", "max_seconds")

_TRIED = 3
"""Tasks that are begun once, before anything is written."""


class EvolveOptions(Settings):
    """Options of `adp evolve`, by their names on the command line."""

    env: Named
    """Environment: NAME:key=value,... or an object with name and settings."""
    policy: Named
    """Policy that acts, likewise."""
    refiner: Named | None = None
    """Policy that finds steps and rewrites right trajectories."""
    analyser: Named | None = None
    """Policy that rewrites flawed steps; null: the refiner."""
    judge: Named | None = None
    """Policy that judges answers, for the rule math."""
    rounds: int = Field(default=3, ge=1)
    """Rounds for each task."""
    ops: tuple[str, ...] = ()
    """Operators; none: the six of adp."""
    correct: Rule = "environment"
    """Who says what is right."""
    additional_calls: int = Field(default=4, ge=0)
    """Calls beyond the budget when a run goes on."""
    tries: int = Field(default=4, ge=1)
    """How often an answer is asked for."""
    max_turns: int | None = Field(default=None, ge=1)
    """Turns of an episode, at most; null: what the environment says, or 30."""
    max_calls: int | None = Field(default=None, ge=1)
    """Calls of an episode, at most."""
    max_seconds: float | None = Field(default=None, gt=0)
    """Seconds of an episode, at most."""
    seed: int = 0
    """Seed of the run."""
    dataset: str | None = None
    """Data set of the trajectories."""
    concurrency: int = Field(default=16, ge=1)
    """Tasks that are worked on at once."""
    max_failures: int = Field(default=20, ge=1)
    """Stop when so many in a row broke for one reason."""
    retry_failed: bool = False
    """Make again what broke."""
    tagged: bool = False
    """The policy writes <search>, <python> and <answer>."""
    first_is_used: bool = False
    """Select as ET-Agent's code: the first counts as used."""
    no_times: bool = False
    """Keep no times, which differ from run to run."""
    unsafe_python: bool = False
    """Let the environment python run programs without a sandbox, with all your rights."""

    def environment(self) -> tuple[EnvironmentKind, Any]:
        """The environment with its checked settings.

        Raises:
            UsageError: a name or a setting is wrong.
        """
        spec, more = split_named(self.env)
        return load_environment(spec, unsafe_python=self.unsafe_python, **more)

    def models(self) -> dict[str, Named]:
        """Whom operators and verdicts ask: who -> the policy that is named."""
        specs = {REFINER: self.refiner, ANALYSER: self.analyser or self.refiner, JUDGE: self.judge}
        return {who: spec for who, spec in specs.items() if spec is not None}

    def check(self) -> None:
        """Check all names and settings; nothing is made yet.

        Raises:
            UsageError: one is wrong.
        """
        self.environment()
        chosen_operators(self.ops)
        for spec in (self.policy, *self.models().values()):
            _policy(spec)

    def settings(self) -> dict[str, Any]:
        """The fields of `EvolveSettings` that they give, but for the budgets."""
        same = ("dataset", "seed", "rounds", "correct", "additional_calls", "tries", "tagged")
        more = ("first_is_used", "concurrency", "max_failures", "retry_failed")
        return {
            **{name: getattr(self, name) for name in (*same, *more)},
            "operators": self.ops,
            "timed": not self.no_times,
        }

    def limits(self) -> Limits:
        """The budgets that are given."""
        given = {name: getattr(self, name) for name in LIMITS}
        return Limits.model_validate({k: value for k, value in given.items() if value is not None})


@dataclass(frozen=True)
class PreparedEvolve:
    """A run of operators that can begin.

    Attributes:
        source: the tasks with their trajectories.
        evolver: environments, policies and settings.
        policies: all that is closed at the end.
    """

    source: TaskJobs
    evolver: Evolver
    policies: Sequence[Policy]

    def run(self, out: str | Path, *, watch: Watch | None = None) -> EvolveReport:
        """Do the rounds that are missing; see `adp.rollouts.evolving.evolve.evolve`.

        Args:
            out: folder of the store.
            watch: told how far it is.
        """
        return evolve_now(out, self.source, self.evolver, watch=watch, policies=self.policies)


def _policy(spec: Named) -> tuple[PolicyKind, Any]:
    name, more = split_named(spec)
    return load(POLICIES, name, **more)


def prepare_evolve(
    options: EvolveOptions, store: str, *, seal: bool | None = None
) -> PreparedEvolve:
    """Read the tasks, and make the policies.

    Args:
        options: what is wanted.
        store: the store with the first trajectories.
        seal: end the store; None: when all is done and nothing broke.

    Raises:
        UsageError: a name or a setting is wrong, or the tasks are of another environment.
        InputError: a file cannot be read.
        EmptyResultError: there is nothing to work on.
    """
    kind, about = options.environment()
    policy_kind, policy_about = _policy(options.policy)
    source = read_jobs(Store.open(store), read_tasks(store, kind, about).tasks)
    check_tasks(kind, about, [job.task for job in source.jobs[:_TRIED]])
    policy = policy_kind.make(policy_about)
    cast = cast_of(policy)
    # A model that is named twice is loaded once.
    known: list[tuple[Named, Policy]] = [(options.policy, policy)]
    models: dict[str, Policy] = {}
    facts: dict[str, Any] = {
        "environment": kind_facts(kind.name, about),
        "policy": kind_facts(policy_kind.name, policy_about),
    }
    for who, spec in options.models().items():
        model_kind, model_about = _policy(spec)
        there = next((model for name, model in known if name == spec), None)
        if there is None:
            there = model_kind.make(model_about)
            known.append((spec, there))
        models[who] = there
        facts[who] = kind_facts(model_kind.name, model_about)
    first = made(kind, about)
    limits = limits_in(first, options.limits())
    closed(first)
    settings = EvolveSettings.model_validate(
        options.settings()
        | {"limits": limits, "environment": kind.name, "policy": policy.name, "seal": seal}
        | {"facts": {"made_with": facts}}
    )
    evolver = Evolver(lambda: kind.make(about), cast.actors, models, settings)
    return PreparedEvolve(source, evolver, [model for _, model in known])
