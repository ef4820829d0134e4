"""All attempts at one task, which branch from each other.

They go on turn by turn together, as in ARPO: all that are under way play a turn, then it is decided
in the order of their numbers which of them branch. While none is under way and there are fewer
attempts than asked for, one begins at the beginning. So what comes out depends on the seeds and on
what the model says, and not on how many groups run at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from adp.rollouts.collecting.actor import Actor
from adp.rollouts.collecting.branching.rule import (
    ActivePath,
    branch_draw,
    choose_branches,
    turn_entropy,
)
from adp.rollouts.collecting.branching.settings import BranchingSettings
from adp.rollouts.collecting.episode import RunningEpisode
from adp.rollouts.collecting.foreign_code import broken
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environment import AsyncEnvironment, Environment, as_async
from adp.rollouts.plugin_errors import stops
from adp.rollouts.policy import Policy
from adp.rollouts.turns import Outcome, Turn
from adp_schema.errors import AdpError, UsageError
from adp_schema.model import Trajectory

INITIAL, BRANCH, REFILL = "initial", "branch", "refill"
"""How an attempt began: with the group; from another one; later, at the beginning."""

_NO_ENTROPIES = (
    "the policy '{name}' gives no log probabilities of the likeliest tokens, and by these it is "
    "decided where to branch; use transformers, vllm, or openai with a server that answers "
    "top_logprobs"
)

_PLACES = 6
"""Digits of an entropy that are kept."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """An attempt of a group.

    Attributes:
        about: what is known of it; its seed begins its world, where it begins at the beginning.
        actor: who acts in it; its turns give entropies.
        seed: seed of what is drawn for its branches.
    """

    about: About
    actor: Actor
    seed: int


@dataclass(eq=False)
class _Path:
    """An attempt: its episode, and what is known of its turns.

    Attributes:
        number: its number in the group.
        kind: how it began.
        world_seed: the seed with which its world began.
        episode: None when the world could not be made.
        first: the entropy that later turns are compared with.
        entropies: of its turns, without those of the attempt that it branched from.
        refused: branches that the world did not allow.
        trajectory: what came out; None while it is under way.
    """

    number: int
    kind: str
    world_seed: int
    episode: RunningEpisode | None
    first: float | None = None
    entropies: list[float | None] = field(default_factory=list)
    refused: int = 0
    trajectory: Trajectory | None = None

    def facts(self) -> dict[str, Any]:
        """What is kept of it in the column ``extra``."""
        entropies = [None if value is None else round(value, _PLACES) for value in self.entropies]
        first = None if self.first is None else round(self.first, _PLACES)
        facts = {"kind": self.kind, "first_entropy": first, "entropies": entropies}
        return {"branching": facts | ({"refused": self.refused} if self.refused else {})}


class BranchingGroup:
    """The attempts at one task.

    Args:
        members: the attempts; there are as many as are asked for.
        environments: makes the environment of an attempt.
        limits: budgets of an attempt; a branch has used what it has in common with its parent.
        settings: how they branch.
        vocabulary: how many tokens the model knows; see `vocabulary_of`.
    """

    def __init__(
        self,
        members: Sequence[GroupMember],
        environments: Callable[[], Environment | AsyncEnvironment],
        limits: Limits,
        settings: BranchingSettings,
        vocabulary: int,
    ) -> None:
        self._members, self._settings = members, settings
        self._environments, self._limits = environments, limits
        self._vocabulary = vocabulary
        self._paths: list[_Path] = []

    async def run(self) -> list[Trajectory]:
        """Play all attempts to their ends.

        Returns:
            The trajectories, in the order of the attempts, each with all of its steps; a branch
            stands behind its parent. `branch_alone` is what a store holds of one.

        Raises:
            UsageError: the environment cannot do the task, the policy cannot be called like this,
                or it gives no entropies.
            MissingExtraError: a package is missing.
        """
        try:
            for _ in range(min(self._settings.initial, len(self._members))):
                self._begin()
            while (active := self._active()) or self._slots:
                await _together([self._advance(path) for path in active])
                await self._grow()
        finally:
            for path in self._paths:
                if path.trajectory is None and path.episode is not None:
                    await path.episode.close()
        return [path.trajectory for path in self._paths if path.trajectory is not None]

    def _active(self) -> list[_Path]:
        return [path for path in self._paths if path.trajectory is None]

    @property
    def _slots(self) -> int:
        return len(self._members) - len(self._paths)

    def _begin(self) -> None:
        """Begin an attempt at the beginning."""
        number = len(self._paths)
        member = self._members[number]
        about = member.about
        # One that is run alone is the missing attempt of a group.
        place = number if len(self._members) > 1 else about.attempt
        kind = INITIAL if place < self._settings.initial else REFILL
        path = _Path(number, kind, about.seed, None)
        try:
            environment = as_async(self._environments())
        except BaseException as error:
            if isinstance(error, AdpError) or stops(error):
                raise
            path.trajectory = broken(about, error)
        else:
            path.episode = RunningEpisode(
                about, environment, member.actor, self._limits, self._settings.call_limit
            )
        self._paths.append(path)

    async def _advance(self, path: _Path) -> None:
        """Play a turn of an attempt; judge it when it has ended."""
        episode = path.episode
        assert episode is not None  # else it ended as it began
        before = len(episode.past)
        columns = await episode.advance()
        if len(episode.past) > before:
            self._note(path, episode.past[-1].acted.turn)
        if columns is None:
            return
        episode.note(path.facts())
        path.trajectory = await episode.judged(columns)
        await episode.close()

    def _note(self, path: _Path, turn: Turn) -> None:
        """Note how unsure the model was in a turn."""
        entropy = None
        if turn.entropies is not None:
            entropy = turn_entropy(turn.entropies, self._vocabulary, self._settings.tokens)
        elif turn.malformed is None:
            raise UsageError(_NO_ENTROPIES.format(name=self._members[path.number].about.policy))
        path.entropies.append(entropy)
        if path.first is None:
            path.first = entropy

    async def _grow(self) -> None:
        """Let attempts branch; when none is under way, begin one."""
        if self._slots <= 0:
            return
        active = self._active()
        if not active:
            self._begin()
            return
        paths = [ActivePath(path.number, path.entropies[-1], path.first) for path in active]
        for number in choose_branches(paths, self._slots, self._settings, self._draw):
            await self._branch(self._paths[number])

    def _draw(self, number: int, branch: int) -> float:
        episode = self._paths[number].episode
        assert episode is not None
        return branch_draw(self._members[number].seed, len(episode.past) - 1, branch)

    async def _branch(self, source: _Path) -> None:
        """Begin an attempt where another one is."""
        number = len(self._paths)
        assert source.episode is not None
        episode = await self._fork(source, source.episode, self._members[number])
        if episode is None:
            source.refused += 1
            return
        first = source.first if self._settings.baseline == "path" else None
        self._paths.append(_Path(number, BRANCH, source.world_seed, episode, first))

    async def _fork(
        self, source: _Path, episode: RunningEpisode, member: GroupMember
    ) -> RunningEpisode | None:
        """An episode that goes on where another one is; None when its world cannot be had."""
        try:
            return episode.fork(member.about, member.actor)
        except Exception:  # what cannot be copied may raise anything
            if self._settings.without_fork == "skip":
                return None
        return await self._replayed(source, episode, member)

    async def _replayed(
        self, source: _Path, episode: RunningEpisode, member: GroupMember
    ) -> RunningEpisode | None:
        """The same, in a new world in which the calls were carried out again."""
        try:
            environment = as_async(self._environments())
        except Exception:
            return None
        same = False
        try:
            await environment.reset(member.about.task, seed=source.world_seed)
            same = True
            for past in episode.past:
                environment.tools()
                same = same and alike(await environment.step(past.acted.turn), past.outcome)
        except Exception:
            same = False
        finally:
            if not same:
                await environment.close()
        return episode.gone_on_in(environment, member.about, member.actor) if same else None


def vocabulary_of(policy: Policy, settings: BranchingSettings) -> int:
    """How many tokens the model of a policy knows.

    Raises:
        UsageError: nothing says so, or it gives no entropies.
    """
    known = settings.vocabulary or getattr(policy, "vocabulary", None)
    if settings.vocabulary is None and not hasattr(policy, "vocabulary"):
        raise UsageError(_NO_ENTROPIES.format(name=policy.name))
    if not isinstance(known, int) or known < 2:
        raise UsageError(
            f"the policy '{policy.name}' does not say how many tokens its model knows, by which "
            "entropies are divided; give --branching ...,vocabulary=N"
        )
    return known


def alike(outcome: Outcome, other: Outcome) -> bool:
    """Whether two worlds answered the same."""
    texts, others = (
        [(item.text, item.error) for item in part.results] for part in (outcome, other)
    )
    ends = (outcome.terminated, outcome.truncated) == (other.terminated, other.truncated)
    rest = (outcome.messages, outcome.context) == (other.messages, other.context)
    return texts == others and ends and rest


async def _together(jobs: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run all of them; when one fails, stop the others."""
    tasks = [asyncio.ensure_future(job) for job in jobs]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
