"""Results that say which tool they are of: they answer the call of that name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from adp.converters.text_calls.dialect import Marked, ParsedCall, ParsedResult, Span
from adp.converters.text_calls.find import Object, objects_from, python_objects_in
from adp.converters.text_calls.objects import skip_space, spread
from adp.converters.text_calls.thoughts import trimmed

_NAMES = ("name", "tool_name", "tool", "function")


def with_names(
    text: str, results: Sequence[ParsedResult], calls: Sequence[ParsedCall]
) -> tuple[ParsedResult, ...]:
    """Results with the names of the tools that they say, where several calls wait.

    A ``name`` that no waiting call has is a part of the result. A list of objects with the names of
    waiting calls is as many results.

    Args:
        text: the words of the turn.
        results: its results.
        calls: the calls that wait.
    """
    names = {call.name for call in calls}
    if len(calls) < 2:
        return tuple(results)
    out: list[ParsedResult] = []
    for result in results:
        parts = _objects_with_names(text, result.marked.words, names)
        if len(parts) < 2:
            name = parts[0][1] if parts else result.name
            out.append(replace(result, name=name))
            continue
        spans = spread([value for value, _ in parts], result.marked.span)
        out += [
            replace(result, marked=Marked(span, (value.start, value.end)), name=name)
            for (value, name), span in zip(parts, spans, strict=True)
        ]
    return tuple(out)


def _objects_with_names(text: str, words: Span, names: set[str]) -> list[tuple[Object, str]]:
    """The objects that a result is, with their names; none when one of them has none."""
    start, end = trimmed(text, words)
    if text[start : start + 1] not in ("{", "["):
        return []
    matches = objects_from(text, start) or python_objects_in(text, start, end)
    if matches is None or skip_space(text, matches[2]) < end or matches[2] > end:
        return []
    out = []
    for value in matches[0]:
        members = (value.members[key].text for key in _NAMES if key in value.members)
        name = next((it for it in members if it in names), None)
        if name is None:
            return []
        out.append((value, name))
    return out
