"""Terminus: batches of keystrokes for a terminal, as JSON or XML; one screen answers a batch.

Each entry of ``commands`` is a call ``terminal`` with its keystrokes and duration. A task that is
said to be complete is a call ``finish``. ``analysis`` and ``plan`` are reasoning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from adp.converters.text_calls.dialect import (
    Dialect,
    Marked,
    ParsedCall,
    ParsedResult,
    ParsedTurn,
    Span,
)
from adp.converters.text_calls.find import Object, objects_from
from adp.converters.text_calls.frames import FramedCall, framed, written_frame
from adp.converters.text_calls.objects import json_of
from adp.converters.text_calls.thoughts import Openings, trimmed
from adp_schema import jsontext

_OPEN = r"(?:^|(?<=>))[ \t]*(?:```(?:json)?[ \t]*\r?\n[ \t]*)?(?=\{)|<response>"
_FENCE = re.compile(r"\s*```[ \t]*$", re.MULTILINE)
_MOST_FAILED = 50
_REASONING = (("analysis", "plan"), ("state_analysis", "explanation"))
_SCREEN = re.compile(r"New Terminal Output:\r?\n?|Current Terminal Screen:\r?\n?")
_PREVIOUS = re.compile(r"Previous response had (parsing errors|warnings|errors):")
_KEYS = re.compile(
    r'\s*<keystrokes((?:\s+[\w-]{1,40}="[^"<>\n]{0,40}")*)\s*>(.*?)</keystrokes>', re.DOTALL
)
_DURATION = re.compile(r'<keystrokes[^>]{0,100}\bduration="(\d{1,9}(?:\.\d{1,9})?)"')


class Terminus(Dialect):
    """The dialect ``terminus``."""

    name = "terminus"
    title = 'Terminus (`"commands": [{"keystrokes": ...}]`, `<keystrokes>`)'
    example = (
        '{"analysis": "Empty.", "plan": "List it.", "commands": '
        '[{"keystrokes": "ls\\n", "duration": 0.1}], "task_complete": false}'
    )
    marks = ('"commands"', "<commands>", '"task_complete"', '"is_task_complete"')
    prompts = ('"keystrokes"', "<keystrokes>")
    results = ("New Terminal Output:", "Previous response had", "Current Terminal Screen:")

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        failed, position = 0, 0
        walk = Openings(text, _OPEN)
        left = None
        while failed < _MOST_FAILED and (match := walk.after(position)) is not None:
            is_xml = match.group() == "<response>"
            turn = _xml(text, match) if is_xml else _batch(text, match.start(), match.end())
            if turn is not None:
                return turn
            failed += 1
            position = max(match.end(), match.start() + 1)
            left = "a batch of commands is no JSON of its form"
        return ParsedTurn(left=left if '"commands"' in text else None)

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The screen after a batch: it answers the last of its calls."""
        before = _PREVIOUS.match(text, len(text) - len(text.lstrip()))
        screen = _SCREEN.search(text)
        start = 0
        if screen is not None and (before or not text[: screen.start()].strip()):
            start = screen.end()
        last = len(calls) - 1 if calls else None
        is_error = True if before and "error" in before[1] and not start else None
        marked = Marked((0, len(text)), (start, len(text)))
        return (ParsedResult(marked, call=last, is_error=is_error),)

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        if call.name != "terminal" or not isinstance(call, FramedCall) or call.arguments is None:
            return None
        if not call.key:
            return written_frame(call)
        values = json.loads(call.arguments)
        words = values.get("keystrokes")
        if not isinstance(words, str) or values != {**_attributes(call.source), call.key: words}:
            return None
        return written_frame(call, words)


def _batch(text: str, start: int, position: int) -> ParsedTurn | None:
    """The calls of an object with commands."""
    matches = objects_from(text, position)
    if matches is None or matches[1] or not matches[0]:
        return None
    value = matches[0][0]
    commands = value.members.get("commands")
    complete = value.members.get("task_complete") or value.members.get("is_task_complete")
    if commands is None and complete is None:
        return None
    listed = _commands(text, value)
    done = complete is not None and text[complete.start : complete.end] in ("true", '"true"')
    if listed is None or not (listed or done):
        return ParsedTurn() if listed == [] else None
    fence = _FENCE.match(text, value.end) if "```" in text[start:position] else None
    span = (start, fence.end() if fence else value.end)
    return _turn(text, span, value, listed, done)


def _commands(text: str, value: Object) -> list[Object] | None:
    """The commands of a batch; None when they are no list of keystrokes."""
    commands = value.members.get("commands")
    if commands is None or text[commands.start : commands.end].strip("[] \t\r\n") == "":
        return []
    matches = objects_from(text, commands.start)
    if matches is None or not matches[1]:
        return None
    listed = matches[0]
    good = all("keystrokes" in it.members and it.members["keystrokes"].text is not None
               for it in listed)  # fmt: skip
    return listed if good else None


def _turn(text: str, span: Span, value: Object, listed: list[Object], done: bool) -> ParsedTurn:
    """Share the characters of a batch among its reasoning and its calls."""
    thoughts = _reasoning(text, span[0], value, listed)
    start = thoughts[-1].span[1] if thoughts else span[0]
    complete = value.members.get("task_complete") or value.members.get("is_task_complete")
    complete = complete if done else None
    finish_first = complete is not None and bool(listed) and complete.start < listed[0].start
    places = [(it.start, it.end) for it in listed]
    if complete is not None:
        place = (complete.start, complete.end)
        places = [place, *places] if finish_first else [*places, place]
    borders = [start, *(place[0] for place in places[1:]), span[1]]
    calls: list[ParsedCall] = []
    for index, place in enumerate(places):
        shared = (borders[index], borders[index + 1])
        if complete is not None and place[0] == complete.start:
            calls.append(ParsedCall(shared, "finish", '{"task_complete": true}', None, "dsl"))
            continue
        token = text[slice(*place)]
        valid = jsontext.is_valid(token)
        call = ParsedCall(shared, "terminal", token if valid else _strict(text, listed, place))
        call = replace(call, written_as="object" if valid else "dsl")
        calls.append(framed(text, shared, place, call))
    return ParsedTurn(tuple(calls), thoughts)


def _strict(text: str, listed: Sequence[Object], place: Span) -> str | None:
    """JSON of keystrokes whose strings hold line breaks as they are."""
    value = next(it for it in listed if it.start == place[0])
    return json_of({key: member.text if member.text is not None else text[member.start:member.end]
                    for key, member in value.members.items()})  # fmt: skip


def _reasoning(
    text: str, start: int, value: Object, listed: Sequence[Object]
) -> tuple[Marked, ...]:
    """Analysis and plan, when both stand before the commands and have no escapes."""
    keys = next((pair for pair in _REASONING if pair[0] in value.members), _REASONING[0])
    members = [value.members.get(key) for key in keys]
    if not listed or any(it is None or it.text is None for it in members):
        return ()
    first, second = (it for it in members if it is not None)
    if not start <= first.start < second.start < listed[0].start:
        return ()
    if "\\" in text[first.start : first.end] + text[second.start : second.end]:
        return ()
    return (
        Marked((start, first.end), (first.start + 1, first.end - 1)),
        Marked((first.end, second.end), (second.start + 1, second.end - 1)),
    )


def _xml(text: str, match: re.Match[str]) -> ParsedTurn | None:
    """The calls of a batch in elements."""
    end = text.find("</response>", match.end())
    stop = len(text) if end < 0 else end + len("</response>")
    first = text.find("<commands>", match.end(), stop)
    if first < 0:
        return None
    thoughts: list[Marked] = []
    start = match.start()
    for tag in ("analysis", "plan"):
        opened = text.find(f"<{tag}>", start, first)
        closed = text.find(f"</{tag}>", opened, first) if opened >= 0 else -1
        if closed >= 0:
            last = closed + len(f"</{tag}>")
            thoughts.append(Marked((start, last), trimmed(text, (opened + len(tag) + 2, closed))))
            start = last
    items: list[tuple[re.Match[str], str]] = []
    position = first + len("<commands>")
    while (keys := _KEYS.match(text, position, stop)) is not None:
        values = {"keystrokes": keys[2], **_attributes(keys.group())}
        items.append((keys, json_of(values) or "{}"))
        position = keys.end()
    done = re.search(r"<task_complete>\s*true\s*</task_complete>", text[position:stop])
    if not items and not done:
        return ParsedTurn()
    return _xml_turn(
        text, (start, stop), items, position + done.start() if done else None, thoughts
    )


def _attributes(source: str) -> dict[str, float]:
    """The duration that an element of keystrokes has."""
    match = _DURATION.search(source)
    return {"duration": float(match[1])} if match else {}


def _xml_turn(
    text: str,
    span: Span,
    items: list[tuple[re.Match[str], str]],
    done: int | None,
    thoughts: list[Marked],
) -> ParsedTurn:
    starts = [keys.start() for keys, _ in items] + ([] if done is None else [done])
    borders = [span[0], *starts[1:], span[1]]
    calls: list[ParsedCall] = []
    for index, (keys, arguments) in enumerate(items):
        place = (borders[index], borders[index + 1])
        call = ParsedCall(place, "terminal", arguments, None, "dsl")
        framed_call = framed(text, place, keys.span(2), call, closing="</keystrokes>")
        calls.append(replace(framed_call, key="keystrokes"))
    if done is not None:
        place = (borders[len(items)], borders[len(items) + 1])
        calls.append(ParsedCall(place, "finish", '{"task_complete": true}', None, "dsl"))
    return ParsedTurn(tuple(calls), tuple(thoughts))


DIALECT = Terminus()
