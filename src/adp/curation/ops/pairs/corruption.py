"""Damaged calls: what may be done to the text and the values of a call.

- ``tags_removed``: the tags around the call go, its JSON stays, and no program takes it as a call;
- ``json_broken``: a bracket, a quote or a colon of the JSON goes, so that it is none any more;
- ``argument_dropped``: one argument of the object is left out; it is a call still;
- ``tool_renamed``: a tool is called that is not on offer; it is a call still.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

import msgspec
import numpy as np

from adp_schema import jsontext

OPEN, CLOSE = "<tool_call>", "</tool_call>"
"""Tags that a call gets where the run holds it apart from the text."""

_TAGS = re.compile(
    r"</?tool_call>|\[/?TOOL_CALLS?\]|<\|/?tool_call\|?>|</?function_call>|</?Action>|<\|python_tag\|>"
)


@dataclass(frozen=True)
class StepCall:
    """A call of a step.

    Attributes:
        name: name of the tool.
        arguments: JSON text of the arguments.
        start: where it stands in the text; None when it is apart from it.
        end: the character after it.
    """

    name: str
    arguments: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class Damaged:
    """A step after the damage.

    Attributes:
        text: its text; None when it has none.
        call: the call that it still makes; None when nothing takes it as one.
    """

    text: str | None
    call: StepCall | None


def damage(
    kind: str, text: str | None, call: StepCall, offered: frozenset[str], rng: np.random.Generator
) -> Damaged | None:
    """Damage one call of a step; None when this cannot be done to it.

    Args:
        kind: one of the four.
        text: text of the step.
        call: the call.
        offered: names of the tools on offer.
        rng: draws what is left open.
    """
    body = f'{{"name": {_string(call.name)}, "arguments": {call.arguments}}}'
    inside = text is not None and call.start is not None and call.end is not None
    written = text[call.start : call.end] if text is not None and inside else ""
    if kind == "tags_removed":
        if inside and _TAGS.search(written) is None:
            return None
        bare = _TAGS.sub("", written).strip("\n") if inside else body
        return Damaged(_put(text, call, bare), None)
    if kind == "json_broken":
        tagged = written if inside else f"{OPEN}\n{body}\n{CLOSE}"
        broken = _broken(tagged, rng)
        return None if broken is None else Damaged(_put(text, call, broken), None)
    if kind == "argument_dropped":
        arguments = _without_one(call.arguments, rng)
        if arguments is None:
            return None
        return _changed(text, call, StepCall(call.name, arguments))
    name = f"{call.name}_tool"
    while name in offered:
        name += "_"
    return _changed(text, call, StepCall(name, call.arguments))


def _string(text: str) -> str:
    return jsontext.encode(text).decode("utf-8")


def _put(text: str | None, call: StepCall, written: str) -> str:
    """The text of the step with another one in the place of the call."""
    if text is not None and call.start is not None and call.end is not None:
        return text[: call.start] + written + text[call.end :]
    return f"{text}\n{written}" if text else written


def _broken(written: str, rng: np.random.Generator) -> str | None:
    """The text of a call with one character of its JSON left out, so that it is no JSON."""
    first, last = written.find("{"), written.rfind("}")
    if first < 0 or last < 0:
        return None
    places = [n for n in range(first, last + 1) if written[n] in '{}":']
    for place in rng.permutation(places)[:20]:
        body = written[first:place] + written[place + 1 : last + 1]
        if not jsontext.is_valid(body) and not _is_python(body):
            return written[:first] + body + written[last + 1 :]
    return None


def _is_python(text: str) -> bool:
    """Whether it is an expression of Python: calls are also read from such literals."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def _without_one(arguments: str, rng: np.random.Generator) -> str | None:
    """The arguments without one of them; all others keep their characters."""
    try:
        values = jsontext.decode_object(arguments.encode("utf-8"))
    except (msgspec.DecodeError, RecursionError):
        return None
    if not values:
        return None
    del values[list(values)[int(rng.integers(len(values)))]]
    kept = [f"{_string(key)}: {bytes(raw).decode('utf-8')}" for key, raw in values.items()]
    return "{" + ", ".join(kept) + "}"


def _changed(text: str | None, call: StepCall, new: StepCall) -> Damaged | None:
    """The step with another call in the place of the old one, in its text too."""
    if text is None or call.start is None or call.end is None:
        return Damaged(text, new)
    written = text[call.start : call.end]
    for old, now in ((call.arguments, new.arguments), (_string(call.name), _string(new.name))):
        if old == now:
            continue
        if written.count(old) != 1:
            return None
        written = written.replace(old, now)
    end = call.start + len(written)
    return Damaged(_put(text, call, written), StepCall(new.name, new.arguments, call.start, end))
