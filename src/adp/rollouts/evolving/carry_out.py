"""From a change to a trajectory: it is carried out in a fresh environment, and judged."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from adp.rollouts.collecting.actor import Actor
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.recorder import ENVIRONMENT, INFRASTRUCTURE, About, Recorder
from adp.rollouts.environment import AsyncEnvironment, Environment
from adp.rollouts.evolving.asking import JUDGE, Asking, GaveUpError
from adp.rollouts.evolving.continuing import Continuing
from adp.rollouts.evolving.correctness import Correctness, judge_trajectory
from adp.rollouts.evolving.lineage import NOT_MADE, UNCHANGED, Derivation, hint_of, mark, note_kept
from adp.rollouts.evolving.operator import Change, Operator, ParentRun, UnchangedError
from adp.rollouts.evolving.settings import EvolveSettings
from adp.rollouts.judging.answers import seed_of
from adp.rollouts.plugin_errors import error_text, stops
from adp.rollouts.policy import Policy
from adp_schema.errors import MissingExtraError, UsageError
from adp_schema.model import Trajectory


@dataclass(frozen=True)
class Evolver:
    """Makes trajectories of others; the same one for all tasks of a run.

    Attributes:
        environments: makes the environment of an episode.
        actors: makes who goes on in an episode; `adp.rollouts.collecting.collect.alone` for a
            policy.
        models: whom operators and verdicts ask, by `adp.rollouts.evolving.asking.REFINER`, ...
        settings: everything else.
    """

    environments: Callable[[], Environment | AsyncEnvironment]
    actors: Callable[[About], Actor]
    models: Mapping[str, Policy]
    settings: EvolveSettings

    async def make(
        self, operator: Operator, parent: ParentRun, about: About, *, number: int = 1
    ) -> Trajectory:
        """Let an operator make a trajectory.

        Whatever comes of it is a trajectory: where none could be made, it has no steps, and its
        ``error_type`` and ``error_message`` say why.

        Args:
            operator: the operator.
            parent: what it starts from.
            about: task, attempt, and the seed of the environment, that of the parent.
            number: number of the round.

        Raises:
            UsageError: a model cannot be called like this.
            MissingExtraError: a package is missing.
        """
        seed = seed_of(self.settings.seed, about.task_id, number, operator.name, about.tries)
        asking = self.asking(seed)
        origin = Derivation(operator.name, number, parent.trajectory.trajectory_id)
        try:
            change = await operator.change(parent, asking, random.Random(seed))
        except UnchangedError as error:
            return _not_made(about, origin, asking, error, UNCHANGED)
        except GaveUpError as error:
            return _not_made(about, origin, asking, error, error.who)
        except (UsageError, MissingExtraError):
            raise
        except BaseException as error:
            if stops(error):
                raise
            return _not_made(about, origin, asking, error, operator.name)
        origin = replace(origin, step=change.step)
        return await self._made(operator, parent, change, about, origin, asking)

    async def _made(
        self,
        operator: Operator,
        parent: ParentRun,
        change: Change,
        about: About,
        origin: Derivation,
        asking: Asking,
    ) -> Trajectory:
        if change.rewritten is not None:
            trajectory = adopted(change.rewritten, about, keep_judge=True)
        else:
            author = operator.asks[-1] if operator.asks else None
            trajectory = await self.run(change, about, asking, author)
            same = note_kept(trajectory, parent, change, operator.name)
            more = {"kept_turns": change.kept, "same_results": same, **hint_of(trajectory, change)}
            origin = replace(origin, more=more)
        return await self.judged(trajectory, about, origin, asking)

    async def run(
        self, change: Change, about: About, asking: Asking, author: str | None = None
    ) -> Trajectory:
        """Carry a change out in a fresh environment, and let the policy go on."""
        settings = self.settings
        actor = Continuing(
            self.actors(about), asking, asking.seed, change.turns, change.kept, change.opening,
            settings.tagged, author,
        )  # fmt: skip
        limits = _more(settings.limits, settings.additional_calls if change.turns else 0)
        try:
            return await run_episode(about, self.environments(), actor, limits)
        except MissingExtraError:
            raise
        except UsageError as error:  # the environment refuses this task
            return _broken(about, ENVIRONMENT, str(error))
        except BaseException as error:
            if stops(error):
                raise
            return _broken(about, ENVIRONMENT, error_text(error))

    async def judged(
        self, trajectory: Trajectory, about: About, origin: Derivation, asking: Asking
    ) -> Trajectory:
        """Judge a trajectory, and write down where it comes from.

        One whose judge could not be reached is broken, so that it is judged when it can be.
        """
        verdict: Correctness | None = None
        if trajectory.error_type is None and about.task is not None:
            verdict = await judge_trajectory(trajectory, about.task, self.settings.correct, asking)
        mark(trajectory, origin, asking, verdict)
        if verdict is not None and verdict.unreachable is not None:
            trajectory.error_type, trajectory.stop_reason = INFRASTRUCTURE, JUDGE
            trajectory.error_message = verdict.unreachable
        return trajectory

    def asking(self, seed: int) -> Asking:
        """What asks the models about one trajectory."""
        return Asking(self.models, self.settings.tries, seed)


def adopted(trajectory: Trajectory, about: About, *, keep_judge: bool = False) -> Trajectory:
    """A copy of a trajectory as one of a buffer: its ids are those of the buffer.

    Args:
        trajectory: any trajectory; it stays as it is.
        about: what the copy is.
        keep_judge: whether to keep what a judge said.
    """
    columns: dict[str, Any] = {**about.columns(), "agent_name": trajectory.agent_name}
    columns |= dict.fromkeys(_OF_SOURCE)
    columns |= {} if keep_judge else {"judge": trajectory.judge}
    return trajectory.model_copy(
        update={
            **columns,
            "trajectory_id": about.trajectory_id,
            "source_id": about.source_id,
            "task": about.task,
            "branches": [],
            "links": [],
            "raw": [],
            "pairs": [],
        }
    )


_OF_SOURCE = (
    *("seq", "source_version", "source_file", "source_records", "source_offsets"),
    *("source_lengths", "source_hash", "converter", "converter_version", "losses"),
    *("parent_id", "parent_step", "branch_kind"),
)
"""Columns that say where a record was read; a copy was read nowhere."""


def _more(limits: Limits, calls: int) -> Limits:
    """The budgets of a trajectory that goes on: so many more calls, and turns for them."""
    more = {
        name: value + calls
        for name in ("max_turns", "max_calls")
        if (value := getattr(limits, name)) is not None
    }
    return limits.model_copy(update=more)


def _not_made(
    about: About, origin: Derivation, asking: Asking, error: BaseException, reason: str
) -> Trajectory:
    unreachable = isinstance(error, GaveUpError) and error.unreachable
    text = str(error) if isinstance(error, GaveUpError | UnchangedError) else error_text(error)
    trajectory = _broken(about, INFRASTRUCTURE if unreachable else NOT_MADE, text, reason)
    mark(trajectory, origin, asking)
    return trajectory


def _broken(about: About, kind: str, text: str, reason: str | None = None) -> Trajectory:
    return Recorder(about).end(
        terminated=False, error_type=kind, error_message=text, stop_reason=reason or kind
    )
