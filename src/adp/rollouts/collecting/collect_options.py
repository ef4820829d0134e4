"""What `adp collect` and a stage of a loop are told, and the run that this makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from adp.rollouts.collecting.branching.settings import (
    BranchingSettings,
    load_policy,
    read_branching,
)
from adp.rollouts.collecting.collect import Watch, collect_now
from adp.rollouts.collecting.counts import CollectReport
from adp.rollouts.collecting.offered_tools import closed, made
from adp.rollouts.collecting.run_file import kind_facts
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.collecting.task_files import TaskSet
from adp.rollouts.collecting.tasks import own_tasks, read_tasks
from adp.rollouts.environment import (
    AsyncEnvironment,
    Environment,
    EnvironmentKind,
    Settings,
    as_async,
)
from adp.rollouts.experts.spec import Cast, cast_of, read_assist
from adp.rollouts.policy import PolicyKind
from adp.rollouts.spec import Named, load_environment, split_named
from adp.rollouts.step_rewards import StepRewarded, StepRewardSettings, read_step_rewards

LIMITS = ("max_turns", "max_calls", "max_tokens", "max_seconds")


class CollectOptions(Settings):
    """Options of `adp collect`, by their names on the command line."""

    env: Named
    """Environment: NAME:key=value,... or an object with name and settings."""
    policy: Named
    """Policy, likewise."""
    tasks: str | None = None
    """File of tasks, store, or SPLIT:COUNT[:SEED]; null: 100 of the environment's."""
    split: str | None = None
    """Of a file or a store, only the tasks of this split."""
    skip: int = Field(default=0, ge=0)
    """Tasks at the beginning that are left out."""
    expert_mode: str | None = None
    """An expert beside the policy: none, ground_truth, random or informed, with settings."""
    branching: str | None = None
    """Let attempts branch where the model is unsure: arpo, or key=value,..."""
    n: int = Field(default=1, ge=1)
    """Attempts at each task."""
    concurrency: int = Field(default=64, ge=1)
    """Episodes that run at once."""
    seed: int = 0
    """Seed of the run."""
    dataset: str | None = None
    """Data set of the trajectories."""
    max_turns: int | None = Field(default=None, ge=1)
    """Turns of an episode, at most; null: what the environment says, or 30."""
    max_calls: int | None = Field(default=None, ge=1)
    """Calls of an episode, at most."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens written in an episode, at most."""
    max_seconds: float | None = Field(default=None, gt=0)
    """Seconds of an episode, at most."""
    total_tokens: int | None = Field(default=None, ge=1)
    """Begin no episode when the store has cost so many tokens."""
    total_cost: float | None = Field(default=None, gt=0)
    """Begin none when it has cost so many US dollars."""
    total_seconds: float | None = Field(default=None, gt=0)
    """Begin none after so many seconds of this call."""
    max_failures: int = Field(default=20, ge=1)
    """Stop when so many in a row broke for one reason."""
    retry_failed: bool = False
    """Try the broken episodes again."""
    step_rewards: str | None = None
    """Reward each step by the rules of SAGE's collector: sage, or sage:key=value,..."""
    no_times: bool = False
    """Keep no times, which differ from run to run."""
    unsafe_python: bool = False
    """Let the environment python run programs without a sandbox, with all your rights."""

    def kinds(self) -> tuple[EnvironmentKind, Any, PolicyKind, Any]:
        """Environment and policy with their checked settings; nothing is made yet.

        Raises:
            UsageError: a name or a setting is wrong.
            InputError: a file cannot be read.
        """
        spec, more = split_named(self.env)
        kind, about = load_environment(spec, unsafe_python=self.unsafe_python, **more)
        spec, more = split_named(self.policy)
        policy_kind, policy_about = load_policy(spec, self._branching(), **more)
        if self.expert_mode is not None:
            read_assist(self.expert_mode)
        self.rewards()
        return kind, about, policy_kind, policy_about

    def rewards(self) -> StepRewardSettings | None:
        """How steps are rewarded; None: as the environment does.

        Raises:
            UsageError: the name or a setting is wrong.
        """
        return None if self.step_rewards is None else read_step_rewards(self.step_rewards)

    def _branching(self) -> BranchingSettings | None:
        return None if self.branching is None else read_branching(self.branching)

    def settings(self) -> dict[str, Any]:
        """The fields of `CollectSettings` that they give."""
        limits = {name: getattr(self, name) for name in LIMITS}
        return {
            "dataset": self.dataset,
            "seed": self.seed,
            "limits": {name: value for name, value in limits.items() if value is not None},
            "timed": not self.no_times,
            "branching": self._branching(),
            "n": self.n,
            "concurrency": self.concurrency,
            "totals": {
                "tokens": self.total_tokens,
                "cost": self.total_cost,
                "seconds": self.total_seconds,
            },
            "max_failures": self.max_failures,
            "retry_failed": self.retry_failed,
        }


@dataclass(frozen=True)
class PreparedCollect:
    """A run of episodes that can begin.

    Attributes:
        kind: the environment.
        about: its settings.
        cast: who plays.
        tasks: the tasks, and what was no task.
        tasks_text: where they come from.
        settings: settings of the run.
        rewards: how steps are rewarded; None: as the environment does.
    """

    kind: EnvironmentKind
    about: Any
    cast: Cast
    tasks: TaskSet
    tasks_text: str
    settings: CollectSettings
    rewards: StepRewardSettings | None = None

    def run(
        self,
        out: str | Path,
        *,
        since: Sequence[str] = (),
        seal: bool | None = None,
        watch: Watch | None = None,
    ) -> CollectReport:
        """Run the episodes that are missing; see `adp.rollouts.collecting.collect.collect`.

        Args:
            out: folder of the store.
            since: finished stores of the same run; what they hold is left out.
            seal: end the store; None: when all is done and nothing broke.
            watch: told how far it is.
        """
        changes: dict[str, Any] = {"since": tuple(since), "seal": seal}
        return collect_now(
            out,
            self._environment,
            self.cast.actors,
            self.tasks.tasks,
            self.settings.model_copy(update=changes),
            watch=watch,
            policies=self.cast.policies,
        )

    def _environment(self) -> Environment | AsyncEnvironment:
        """A fresh environment."""
        environment = self.kind.make(self.about)
        if self.rewards is None:
            return environment
        return StepRewarded(as_async(environment), self.rewards)


def prepare_collect(options: CollectOptions) -> PreparedCollect:
    """Read the tasks and make the policy.

    Raises:
        UsageError: a name or a setting is wrong.
        InputError: a file cannot be read, or there are no tasks.
    """
    kind, about, policy_kind, policy_about = options.kinds()
    text = options.tasks or own_tasks(kind)
    tasks = read_tasks(text, kind, about, split=options.split)
    if options.skip:
        count = min(options.skip, len(tasks.tasks))
        reasons = [f"it is one of the first {options.skip:,} tasks"] * count
        tasks.leave(tasks.tasks[count:], reasons)
    if not options.tasks:
        tasks.notes.append("made by the environment; choose others with --tasks")
    policy = policy_kind.make(policy_about)
    cast = cast_of(policy, options.expert_mode)
    first = made(kind, about)
    if cast.assistance is not None:
        tasks.leave(*cast.able(tasks.tasks, first))
    closed(first)
    facts = {
        "environment": kind_facts(kind.name, about),
        "policy": kind_facts(policy_kind.name, policy_about),
        **cast.facts,
    }
    rewards = options.rewards()
    if rewards is not None:
        facts["step_rewards"] = rewards.model_dump()
    given = options.settings() | {
        "environment": kind.name,
        "policy": policy.name,
        "facts": {"made_with": facts},
    }
    settings = CollectSettings.model_validate(given).within(first)
    return PreparedCollect(kind, about, cast, tasks, text, settings, rewards)
