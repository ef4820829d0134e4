"""The messages of a rollout, found by the steps whose tokens its rows hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adp.rendering.chat import Chat, Message, chats_of
from adp.trainers.export.messages import MessageOptions, plain_message
from adp.trainers.rollouts.sequence import TokenSequence
from adp_schema.model import Trajectory

AS_TEXT = MessageOptions.model_validate({}).model_copy(update={"arguments": "text"})


class RolloutMessages:
    """The chats of a rollout, and where in them a step stands.

    Args:
        trajectory: with its parent's steps.
    """

    def __init__(self, trajectory: Trajectory) -> None:
        self.chats: Sequence[Chat] = chats_of(trajectory).chats
        self._places: dict[int, tuple[int, int]] = {}
        for number, chat in enumerate(self.chats):
            for index, message in enumerate(chat.messages):
                if message.role == "assistant":
                    self._places.setdefault(message.step, (number, index))

    @property
    def tools(self) -> tuple[dict[str, Any], ...]:
        """The tools on offer."""
        return self.chats[0].tools if self.chats else ()

    def before(self, row: TokenSequence) -> list[dict[str, Any]]:
        """The messages before the first step of a row, in OpenAI's form."""
        messages = next(iter(self.turns(row)), ((), None))[0]
        return [plain_message(message, AS_TEXT) for message in messages]

    def turns(self, row: TokenSequence) -> list[tuple[tuple[Message, ...], Message | None]]:
        """For each step of a row: the messages since the one before it, and its own.

        A step that no chat holds, because nothing of it could be written, has none.
        """
        turns: list[tuple[tuple[Message, ...], Message | None]] = []
        last: tuple[int, int] | None = None
        for step in row.steps:
            place = self._places.get(step)
            if place is None:
                turns.append(((), None))
                continue
            number, index = place
            messages = self.chats[number].messages
            begin = last[1] + 1 if last is not None and last[0] == number else 0
            between = messages[begin:index] if last is None or last[0] == number else ()
            turns.append((between, messages[index]))
            last = place
        return turns
