"""Writing calls into text: only the characters of what was edited change."""

from __future__ import annotations

import json
from dataclasses import dataclass

from adp.converters.text_calls.find import CLOSE, OPEN, CallGroup, Object, TextCall, Values

Span = tuple[int | None, int | None]


@dataclass(slots=True)
class CallEdit:
    """A call as it shall be.

    Attributes:
        values: what it shall say.
        kind: how its arguments are written; see `adp_schema.model.ToolCall`.
        span: where it stood in the text when it was read, if it did.
    """

    values: Values
    kind: str | None
    span: Span = (None, None)


def json_string(text: str) -> str:
    """A JSON string with its characters as they are; lone surrogates become escapes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(text)
    return json.dumps(text, ensure_ascii=False)


def write_call(name: str, arguments: str) -> str:
    """The JSON of a call.

    Args:
        name: name of the tool.
        arguments: JSON text of the arguments.
    """
    return f'{{"name": {json_string(name)}, "arguments": {arguments}}}'


def rewrite(
    text: str, groups: list[CallGroup], wanted: list[CallEdit], *, tagged: bool = True
) -> str:
    """Write a text whose calls were edited.

    Args:
        text: the text as it was read, or with other words.
        groups: the calls in it.
        wanted: the calls that it shall have.
        tagged: whether new calls get tags; else they join the list of the first group.
    """
    there = [call for group in groups for call in group.calls]
    kept, new = _match(there, wanted)
    added = [_new_call(item) for item in new]
    pieces, position = [], 0
    for group in groups:
        piece = _group(text, group, kept)
        if added and not tagged and not text.startswith(OPEN, group.start):
            piece, added = _joined(piece, group, added), []
        pieces += [text[position : group.start], piece]
        position = group.end
    out = "".join([*pieces, text[position:]])
    if not added:
        return out
    if tagged or out.strip():
        blocks = [f"{OPEN}\n{call}\n{CLOSE}" for call in added]
        return "\n".join([*([out] if out else []), *blocks])
    return added[0] if len(added) == 1 else f"[{', '.join(added)}]"


def _joined(piece: str, group: CallGroup, added: list[str]) -> str:
    """A group without tags, with further calls."""
    more = ", ".join(added)
    if not piece:
        return more if len(added) == 1 else f"[{more}]"
    if group.listed:
        return f"{piece[:-1]}, {more}]"
    return f"[{piece}, {more}]" if len(group.calls) == 1 else "\n".join([piece, *added])


def with_member(text: str, result: Object, key: str, value: str) -> str:
    """Replace the string that is the value of a key.

    Args:
        text: the text that the object is in.
        result: the object.
        key: a key of it.
        value: the new string.
    """
    member = result.members[key]
    written = repr(value) if result.python else json_string(value)
    return text[: member.start] + written + text[member.end :]


def _match(
    there: list[TextCall], wanted: list[CallEdit]
) -> tuple[dict[Span, CallEdit], list[CallEdit]]:
    """Which call of the text is which wanted one, by span of the text; and those not in it.

    A call is known by its place. When the words were edited the places moved: then calls that
    are as many as before keep their order, and else those that say the same are the same.
    """
    spans = {call.span for call in there}
    matched: dict[Span, CallEdit] = {}
    left: list[CallEdit] = []
    for item in wanted:
        if item.span in spans and item.span not in matched:
            matched[item.span] = item
        else:
            left.append(item)
    places = [call for call in there if call.span not in matched]
    if len(left) == len(places):
        matched.update({call.span: result for call, result in zip(places, left, strict=True)})
        return matched, []
    for call in places:
        same = next((entry for entry in left if entry.values == call.values), None)
        if same is not None:
            matched[call.span] = same
            left.remove(same)
    return matched, left


def _group(text: str, group: CallGroup, kept: dict[Span, CallEdit]) -> str:
    """The text of a group with the calls that are kept."""
    calls = [call for call in group.calls if call.span in kept]
    if not calls:
        return ""
    pieces = [text[group.start : group.calls[0].object.start]]
    for call in calls:
        if call is not calls[0]:
            before = group.calls[group.calls.index(call) - 1]
            pieces.append(text[before.object.end : call.object.start])
        pieces.append(_edited(text, call, kept[call.span]))
    pieces.append(text[group.calls[-1].object.end : group.end])
    return "".join(pieces)


def _edited(text: str, call: TextCall, wanted: CallEdit) -> str:
    """The text of a call; only values that differ are written anew."""
    result = call.object
    old, new = call.values, wanted.values
    changes: list[tuple[tuple[int, int], str]] = []
    for key in ("call_id", "name"):
        value = getattr(new, key)
        if value != getattr(old, key) and value is not None and key in call.places:
            written = repr(value) if result.python else json_string(value)
            changes.append((call.places[key], written))
    if (new.arguments, new.raw) != (old.arguments, old.raw):
        written = _arguments(wanted, python=result.python)
        if "arguments" in call.places:
            changes.append((call.places["arguments"], written))
        else:
            key = repr("arguments") if result.python else '"arguments"'
            changes.append(((result.end - 1, result.end - 1), f", {key}: {written}"))
    out, position = [], result.start
    for (start, end), written in sorted(changes):
        out += [text[position:start], written]
        position = end
    return "".join([*out, text[position : result.end]])


def _arguments(wanted: CallEdit, *, python: bool) -> str:
    """The arguments in the way that they were written."""
    arguments, raw = wanted.values.arguments, wanted.values.raw
    quote = repr if python else json_string
    if arguments is not None:
        if wanted.kind == "json_string":
            return quote(arguments)
        return _python(arguments) if python else arguments
    if raw is None:
        return "None" if python else "null"
    verbatim = wanted.kind == ("python_literal" if python else "object")
    return raw if verbatim else quote(raw)


def _python(arguments: str) -> str:
    """JSON as a Python literal; as a string when it holds a number that Python refuses."""
    try:
        return repr(json.loads(arguments))
    except (ValueError, RecursionError):
        return repr(arguments)


def _new_call(wanted: CallEdit) -> str:
    arguments = _arguments(wanted, python=False)
    if (wanted.values.arguments, wanted.values.raw) == (None, None):
        arguments = "{}"
    return write_call(wanted.values.name or "", arguments)
