"""Who acts in an episode that begins with given turns: these first, then the policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adp.rollouts.collecting.actor import Acted, Actor, ActorView, Reflection
from adp.rollouts.collecting.episode import turn_seed
from adp.rollouts.evolving.asking import POLICY, Asking
from adp.rollouts.evolving.prompts import prompt
from adp.rollouts.evolving.tagged_turns import turn_of_tags
from adp.rollouts.evolving.written_steps import fitted
from adp.rollouts.judging.answers import no_answer
from adp.rollouts.policy import AgentLimitError, InfrastructureError, Request
from adp.rollouts.turns import Turn


@dataclass
class Continuing:
    """The actor of such an episode.

    Attributes:
        actor: who goes on.
        asking: counts the turns of the policy that cannot be used.
        seed: seed of the policy's turns; the environment has that of the parent.
        turns: what is carried out first.
        kept: how many of these are the parent's; a further one was written by another model.
        opening: how the thought of the policy's first turn begins.
        tagged: read calls and answers in what the policy writes in tags.
        author: who wrote the turn that is not the parent's.
    """

    actor: Actor
    asking: Asking
    seed: int
    turns: Sequence[Turn] = ()
    kept: int = 0
    opening: str | None = None
    tagged: bool = False
    author: str | None = None
    _given: bool = field(default=False, init=False)

    async def act(self, request: Request, view: ActorView) -> Acted:
        """The next given turn, or one of the policy."""
        number = request.turn
        if number < len(self.turns):
            turn = fitted(self.turns[number], request.tools)
            return Acted(turn, None if number < self.kept else self.author)
        seeded = replace(request, seed=turn_seed(self.seed, number))
        opening = self.opening if number == len(self.turns) else None
        if opening is not None:
            note = {"role": "user", "content": hint_message(opening)}
            seeded = replace(seeded, messages=[*request.messages, note])
        acted = await self._usable(seeded, view)
        return acted if opening is None else replace(acted, turn=opened(acted.turn, opening))

    async def _usable(self, request: Request, view: ActorView) -> Acted:
        """Ask the policy again while its server fails or its turn is empty."""
        for number in range(self.asking.tries):
            again = replace(request, seed=turn_seed(request.seed, number)) if number else request
            last = number + 1 == self.asking.tries
            try:
                acted = await self.actor.act(again, view)
            except InfrastructureError as error:
                self.asking.note(POLICY, no_answer(error))
                if last:
                    raise
                continue
            turn = turn_of_tags(acted.turn, request.tools) if self.tagged else acted.turn
            if turn.calls or turn.text.strip() or turn.malformed is not None:
                return replace(acted, turn=turn)
            self.asking.note(POLICY, "empty", turn.reasoning or "")
        raise InfrastructureError("empty", f"the policy answered {number + 1} times with nothing")

    async def reflect(self, request: Request, view: ActorView) -> Reflection:
        """What the actor adds to turns of its own."""
        if request.turn < len(self.turns):
            return Reflection()
        return await self.actor.reflect(request, view)

    def summary(self) -> Mapping[str, Any]:
        """What the actor keeps."""
        return self.actor.summary()

    async def close(self) -> None:
        """Free what the actor holds."""
        await self.actor.close()


def hint_message(opening: str) -> str:
    """The message that asks the policy to begin its thought with given words."""
    return f"{prompt('opening')}\n{opening}"


def opened(turn: Turn, opening: str) -> Turn:
    """A turn whose thought begins with given words.

    The ids of its tokens go: they are those of another prompt and of a part of the thought.
    """
    thought = "\n".join(part for part in (opening, turn.reasoning) if part)
    return replace(
        turn, reasoning=thought, prompt_token_ids=None, completion_token_ids=None, logprobs=None
    )


class Nobody:
    """An actor that does not go on: the episode ends with the given turns."""

    async def act(self, request: Request, view: ActorView) -> Acted:
        """End the episode.

        Raises:
            AgentLimitError: always.
        """
        raise AgentLimitError("recording_ended", "the recorded turns are at their end")

    async def reflect(self, request: Request, view: ActorView) -> Reflection:
        """Nothing to add."""
        return Reflection()

    def summary(self) -> Mapping[str, Any]:
        """Nothing to keep."""
        return {}

    async def close(self) -> None:
        """Nothing to free."""


def nobody(about: object) -> Nobody:
    """The actor of an episode that only repeats given turns."""
    return Nobody()
