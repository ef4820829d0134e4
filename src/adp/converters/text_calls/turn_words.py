"""What is left of a text without its calls and thoughts: prose and reasoning of a turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adp.converters.text_calls.dialect import ParsedTurn, Span
from adp_schema.model import Columns
from adp_schema.parts import JOINT


def put_words(step: Columns, text: str, turn: ParsedTurn, parsed: dict[str, Any]) -> None:
    """Fill in prose and reasoning of a step.

    Args:
        step: its columns, which are changed.
        text: its words.
        turn: what a dialect says of them.
        parsed: takes what is needed to undo it.
    """
    taken = [call.span for call in turn.calls] + [thought.span for thought in turn.thoughts]
    if turn.answer is not None:
        parsed["answer"] = [*turn.answer.span, *turn.answer.words]
        (start, end), words = turn.answer
        taken += [(start, words[0]), (words[1], end)]
    if taken:
        step["prose"] = _without(text, sorted(taken))
    if turn.calls:
        parsed["calls"] = len(turn.calls)
    if turn.thoughts:
        parsed["thoughts"] = [[*thought.span, *thought.words] for thought in turn.thoughts]
        if step.get("reasoning") is not None:
            parsed["reasoning"] = step["reasoning"]
        pieces = [step.get("reasoning"), *(text[slice(*it.words)] for it in turn.thoughts)]
        step["reasoning"] = JOINT.join(piece for piece in pieces if piece)


def _without(text: str, spans: Sequence[Span]) -> str:
    """The text without some spans and the white space around what is left."""
    pieces, position = [], 0
    for start, end in spans:
        pieces.append(text[position:start])
        position = max(position, end)
    return "".join([*pieces, text[position:]]).strip()
