"""Reading what a model writes in a wire form of M3, with M3's names for what is wrong.

In this order: the text ends at the first of M3's stop sequences; there must be exactly one thought;
``<FINAL>`` is an answer; anything else must be a call. Of several calls the forms between tags make
an error, and those with a list take the first and drop the others.
"""

from __future__ import annotations

import json
import re
from typing import Any

from adp.rendering.call_form import WrittenCall
from adp.rendering.m3_forms import FORMS, STOPS, M3Form

_THOUGHT = re.compile(r"<think>(.*?)</think>", re.DOTALL)
_FINAL = re.compile(r"<FINAL>(.*?)</FINAL>", re.DOTALL)
_STOP = re.compile("|".join(map(re.escape, STOPS)))


class _NoActionError(ValueError):
    """A turn that is no action; the message begins with M3's name of the error."""


def read_action(
    text: str, wire_form: str
) -> tuple[str, str | None, tuple[WrittenCall, ...], str | None]:
    """Read a turn.

    Args:
        text: what the model wrote.
        wire_form: name of the form.

    Returns:
        The text of the answer, the thought, the call, and why it cannot be read; then the text is
        what the model wrote.
    """
    stop = _STOP.search(text)
    text = text[: stop.start()] if stop else text
    thoughts = _THOUGHT.findall(text)
    if len(thoughts) != 1:
        name = "MultipleThoughtsError" if thoughts else "NoThoughtError"
        why = f"{name}: write exactly one thought between <think> and </think> before the action"
        return text, None, (), why
    thought, action = thoughts[0].strip(), _THOUGHT.sub("", text).lstrip("\n")
    final = _FINAL.search(action)
    if final is not None:
        return final[1].strip(), thought, (), None
    try:
        return "", thought, (_call(action, FORMS[wire_form]),), None
    except _NoActionError as error:
        return text, None, (), str(error)


def _call(action: str, form: M3Form) -> WrittenCall:
    value = _value(_inside(action, form))
    if form.listed and isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        raise _NoActionError("ParsingError: a call is a JSON object with name and arguments")
    missing = [key for key in ("name", "arguments") if key not in value]
    if missing:
        error = "MissingKeyError" if len(missing) == 1 else "MissingKeysError"
        names = " and ".join(missing)
        raise _NoActionError(f"{error}({','.join(missing)}): the call lacks {names}")
    name, arguments = value["name"], value["arguments"]
    if isinstance(arguments, str):
        arguments = _value(arguments)
    if not isinstance(arguments, dict) or not isinstance(name, str):
        raise _NoActionError("ParsingError: name is a text, and arguments is a JSON object")
    return WrittenCall(name, arguments, json.dumps(arguments, ensure_ascii=False))


def _inside(action: str, form: M3Form) -> str:
    """The JSON of the call."""
    opening, closing = (mark.strip() for mark in form.call)
    if form.listed:
        # The mark is a special token, which some programs leave out of the text.
        return action.strip().removeprefix(opening)
    bodies = re.findall(f"{re.escape(opening)}(.*?){re.escape(closing)}", action, re.DOTALL)
    if len(bodies) > 1:
        raise _NoActionError(
            "ParallelToolCallingError: call one tool at a time; none of these was called"
        )
    if not bodies:
        raise _NoActionError(f"ParsingError: write a call between {opening} and {closing}")
    return str(bodies[0])


def _value(text: str) -> Any:
    try:
        return json.loads(text.strip(), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise _NoActionError("JSONDecodeError: the call is no valid JSON") from error


def _refuse(word: str) -> None:
    raise ValueError(word)
