"""A conversation: a person, a policy and an environment, played as an episode turn by turn.

What the user says first is the instruction of the episode's task, and what follows are messages of
its trajectory. The episode itself is `adp.rollouts.collecting.episode.RunningEpisode`, so the rows
are those of `adp collect`; ``success`` is null.

Undoing goes back to a copy that was made before the last message. What was undone is kept as a
trajectory of its own, with the ``stop_reason`` ``undone``; what follows is a branch of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.episode import RunningEpisode
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.recorder import About
from adp.rollouts.conversations.conversation_store import ConversationStore
from adp.rollouts.conversations.user_environment import UserEnvironment
from adp.rollouts.environment import AsyncEnvironment, CannotForkError, Environment, as_async
from adp.rollouts.policy import Policy
from adp.rollouts.turns import Outcome, Tool, Turn
from adp_schema.errors import UsageError
from adp_schema.ids import digest
from adp_schema.model import Task

DATASET = "chat"
_DONE: Mapping[str, Any] = {"terminated": True, "truncated": False, "stop_reason": "user"}
_UNDONE: Mapping[str, Any] = {"terminated": False, "truncated": True, "stop_reason": "undone"}
_KILLED: Mapping[str, Any] = {"terminated": False, "truncated": True, "stop_reason": "killed"}


class ConversationWatch(Protocol):
    """Told what happens, as it happens."""

    def turn(self, turn: Turn) -> None:
        """The policy made a turn; its calls are carried out next."""
        ...

    def outcome(self, outcome: Outcome) -> None:
        """The calls of that turn were carried out."""
        ...

    def ended(self, columns: Mapping[str, Any]) -> None:
        """The turn broke, or the environment ended the episode; columns of the trajectory."""
        ...

    def turns_used_up(self, turns: int) -> None:
        """The policy made so many turns and has not answered."""
        ...


@dataclass(frozen=True)
class ConversationPlan:
    """Who talks, and where.

    Attributes:
        policy: who answers.
        environments: makes the environment of an episode.
        environment: its name; None: there is none.
        max_turns: turns of the policy after a message, at most.
        seed: seed of the first episode.
    """

    policy: Policy
    environments: Callable[[], Environment | AsyncEnvironment]
    environment: str | None = None
    max_turns: int = 10
    seed: int = 0


class _Talk(RunningEpisode):
    """An episode that a person talks into."""

    async def begin(self) -> Mapping[str, Any] | None:
        """Write down the first messages; the columns of an episode that cannot begin."""
        columns: Mapping[str, Any] | None = await self._ended(self._begin)
        self._begun = columns is None
        return columns

    def hear(self, text: str) -> None:
        """Write down what the user says."""
        self._recorder.hear(text)

    def tools(self) -> Sequence[Tool]:
        """The tools on offer now."""
        return list(self.environment.tools())

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        return self._recorder.steps


class InteractiveChat:
    """Talks on, message by message. One episode is under way, or none.

    Args:
        plan: who talks, and where.
        watch: told what happens.
        store: where what was said goes; None: nowhere.
    """

    def __init__(
        self, plan: ConversationPlan, watch: ConversationWatch, store: ConversationStore | None
    ) -> None:
        self._plan, self._watch, self.store = plan, watch, store
        self._actor = Alone(plan.policy)
        self._episode: _Talk | None = None
        self._before: list[_Talk | None] = []
        """The episode before each message; None where it cannot be copied."""
        self._shared = 0
        """Steps that the episode has in common with what was undone."""
        self._broke: Mapping[str, Any] | None = None

    async def say(self, text: str) -> bool:
        """Say something, and let the policy act until it answers.

        Args:
            text: what is said.

        Returns:
            Whether nothing broke.

        Raises:
            UsageError: the policy cannot be called like this.
            MissingExtraError: a package is missing.
        """
        self._broke = None
        if self._episode is None:
            self._episode = self._begun_with(text)
            self._before, self._shared = [], 0
            try:
                self._broke = await self._episode.begin()
            except BaseException:
                episode, self._episode = self._episode, None
                await episode.close()
                raise
            if self._broke is not None:
                self._watch.ended(self._broke)
                await self._end(self._broke)
                return False
        else:
            self._before.append(self._copied(self._episode))
            self._episode.hear(text)
        await self.keep()
        await self._act(self._episode)
        return self._broke is None

    async def _act(self, episode: _Talk) -> None:
        for _ in range(self._plan.max_turns):
            carried_out = len(episode.past)
            columns = await episode.advance()
            if len(episode.past) == carried_out:  # it broke
                self._broke = columns
                self._watch.ended(columns or {})
                return
            last = episode.past[-1]
            self._watch.outcome(last.outcome)
            await self.keep()
            if columns is not None:
                self._watch.ended(columns)
                await self._end(columns)
                return
            answered = last.acted.turn.malformed is None and not last.acted.turn.calls
            if answered or last.outcome.stop_reason == "stopped":
                return
        self._watch.turns_used_up(self._plan.max_turns)

    async def tools(self) -> Sequence[Tool]:
        """The tools on offer now; before the first message, those of a fresh environment."""
        if self._episode is not None:
            return self._episode.tools()
        fresh = as_async(self._plan.environments())
        try:
            return list(fresh.tools())
        finally:
            await fresh.close()

    async def reset(self) -> None:
        """End the episode; the next message begins another one."""
        if self._episode is not None:
            await self._end(self._broke or _DONE)

    async def undo(self) -> bool:
        """Go back to before the last message.

        Returns:
            Whether there was one.

        Raises:
            CannotForkError: the environment cannot be copied.
        """
        if self._episode is None:
            return False
        if not self._before:
            await self._end(_UNDONE)
            return True
        last = self._before[-1]
        if last is None:
            raise CannotForkError("this environment cannot be copied, so nothing can be undone")
        self._before.pop()
        before, self._before = self._before, []
        after = last.fork(self._numbered(last.about, last.about.attempt + 1), self._actor)
        await last.close()
        await self._end(_UNDONE)
        self._episode, self._before, self._shared = after, before, after.steps
        return True

    async def keep(self) -> None:
        """Write down what was said until now, so that it outlives a kill of this process."""
        if self.store is not None and self._episode is not None:
            self.store.keep(await self._episode.judged(dict(_KILLED)))

    async def _end(self, columns: Mapping[str, Any]) -> None:
        episode, self._episode = self._episode, None
        assert episode is not None
        try:
            if self.store is not None:
                if episode.steps > self._shared:
                    self.store.finish(await episode.judged(dict(columns)))
                else:
                    self.store.drop()
        finally:
            self._shared, self._broke = 0, None
            for other in (episode, *self._before):
                if other is not None:
                    await other.close()
            self._before = []

    def _begun_with(self, text: str) -> _Talk:
        name = digest(text.encode("utf-8", "replace"))[:12]
        about = About(
            dataset=DATASET,
            task=Task(task_id=f"chat-{name}", instruction=text),
            policy=self._plan.policy.name,
            environment=self._plan.environment,
            seed=self._plan.seed,
        )
        inner = as_async(self._plan.environments())
        environment = UserEnvironment(inner, self._watch.turn)
        return _Talk(self._numbered(about, 0), environment, self._actor, Limits(max_turns=None))

    def _numbered(self, about: About, attempt: int) -> About:
        """The first attempt from here on that the store does not hold."""
        about = replace(about, attempt=attempt)
        while self.store is not None and self.store.holds(about.trajectory_id):
            about = replace(about, attempt=about.attempt + 1)
        return about

    def _copied(self, episode: _Talk) -> _Talk | None:
        try:
            return episode.fork(episode.about, self._actor)
        except UsageError:
            return None
