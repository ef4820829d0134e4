"""What happened since the user last spoke, as rules, experts and judges look at it.

M3 calls it the history of the current turn. A turn of the user ends when the user speaks again or
when the environment rewrites the conversation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from adp.rendering.arguments import object_of
from adp.rollouts.collecting.actor import Past
from adp.rollouts.turns import Call, Result, Turn

AGENT = "agent"
EXPERT = "expert"

ErrorRule = Literal["typed", "text"]
"""When a result is an error: it has a type of error, or (M3) its text contains ``error``."""


@dataclass(frozen=True, slots=True)
class ActionResult:
    """One action and what came back.

    Attributes:
        actor: who acted.
        thought: reasoning before it.
        call: the call; None for an answer, or for a turn that could not be read.
        text: the answer, or what could not be read; empty for a call.
        observation: what came back.
        error: whether that is an error.
    """

    actor: str | None
    thought: str | None
    call: Call | None
    text: str
    observation: str
    error: bool

    def fields(self) -> dict[str, object]:
        """The item for a prompt."""
        action = {"name": self.call.name, "arguments": self.call.arguments} if self.call else None
        return {
            "thought": self.thought,
            "action": action if action is not None else self.text,
            "observation": self.observation,
        }


def is_final(turn: Turn) -> bool:
    """Whether a turn is an answer: it can be read and calls nothing."""
    return turn.malformed is None and not turn.calls


def current(past: Sequence[Past]) -> Sequence[Past]:
    """What was carried out since the user last spoke."""
    for index in range(len(past) - 1, -1, -1):
        if _ends(past[index]):
            return past[index + 1 :]
    return past


def user_turn(past: Sequence[Past]) -> int:
    """Number of the user's turn, from 0."""
    return sum(map(_ends, past))


def _ends(past: Past) -> bool:
    return bool(past.outcome.messages) or past.outcome.context is not None


def is_error(result: Result, rule: ErrorRule = "typed") -> bool:
    """Whether a result is an error."""
    if rule == "text":
        return "error" in result.text.lower()
    return result.error is not None


def items(past: Sequence[Past], rule: ErrorRule = "typed") -> Iterator[ActionResult]:
    """The actions one by one; a turn with several calls is several."""
    for item in past:
        turn, results = item.acted.turn, item.outcome.results
        actor, thought = item.acted.actor, turn.reasoning
        if turn.malformed is not None or not turn.calls:
            seen = "\n".join(result.text for result in results)
            wrong = any(is_error(result, rule) for result in results)
            yield ActionResult(actor, thought, None, turn.text, seen, wrong)
            continue
        answers = {result.call_id: result for result in results}
        for call in turn.calls:
            result = answers.get(call.call_id) or Result("")
            yield ActionResult(actor, thought, call, "", result.text, is_error(result, rule))


def action_key(turn: Turn) -> tuple[str, ...]:
    """What makes two actions the same: M3's ``type:json(arguments)``, the keys in order."""
    if turn.malformed is not None:
        return ("unreadable", turn.text)
    if not turn.calls:
        return ("final", turn.text)
    return tuple(call_key(call) for call in turn.calls)


def call_key(call: Call) -> str:
    """A call as a text that does not depend on the layout of its arguments."""
    value, valid = object_of(call.arguments or "{}")
    text = json.dumps(value, sort_keys=True) if valid else call.arguments
    return f"{call.name}:{text}"
