"""Turns of a policy that writes ET-Agent's tags in its text instead of calling tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from adp.core.answers.extraction import extract
from adp.core.tagged_run import first_action
from adp.rollouts.evolving.written_steps import tag_call
from adp.rollouts.turns import Tool, Turn

_THOUGHT = re.compile(r"<think>(.*?)(?:</think>|(?=<(?:search|python|answer)>)|\Z)", re.DOTALL)


def turn_of_tags(turn: Turn, tools: Sequence[Tool]) -> Turn:
    """A turn whose text holds tags, as calls or an answer; any other turn as it is.

    An end tag at which the server stopped, and did not write it, may be missing. What stands after
    the first action is left out: the model has not seen a result yet.

    Args:
        turn: what the policy answered.
        tools: tools on offer.
    """
    text = turn.text
    action = first_action(text)
    if turn.calls or turn.malformed is not None or (action is None and "<think>" not in text):
        return turn
    head = text[: action.start()] if action else text
    thoughts = [match[1].strip() for match in _THOUGHT.finditer(head)]
    loose = _THOUGHT.sub("", head).replace("</think>", "").strip()
    words = [part for part in (turn.reasoning, *thoughts, loose) if part]
    # What the model wrote is kept by its text; ids of tokens of it would no longer be those of it.
    bare = replace(
        turn, reasoning="\n".join(words) or None, text="", completion_token_ids=None,
        logprobs=None, extra={**turn.extra, "tagged_text": text},
    )  # fmt: skip
    if action is None:
        return replace(bare, malformed="the turn is a thought alone; write a call or an answer")
    tag, inside = action[1], action[2].strip()
    if tag == "answer":
        return replace(bare, text=extract(inside))
    call = tag_call(tag, inside, tools)
    if call is None:
        return replace(bare, malformed=f"there is no tool for <{tag}>")
    return replace(bare, calls=(call,))
