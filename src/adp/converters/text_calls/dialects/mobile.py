"""Actions of phones: ``CLICK <point>[[512,873]]</point>``, ``SCROLL [UP]``, ``TYPE [words]``.

MobileIAR and OS-Atlas write them, alone or behind ``Actions:`` with ``Thoughts:`` before.
Names stay as written; the arguments are ``x`` and ``y``, ``direction``, ``text`` and ``app``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, ParsedTurn, Span
from adp.converters.text_calls.frames import framed, written_frame
from adp.converters.text_calls.labels import label_pattern, same_values, sections, thought, trim

_POINT = r"<point>\[\[(\d{1,5}), ?(\d{1,5})\]\]</point>"
_PLAIN = (
    "PRESS_BACK", "PRESS_HOME", "PRESS_ENTER", "PRESS_RECENT", "ENTER", "WAIT", "COMPLETE",
    "IMPOSSIBLE",
)  # fmt: skip
_FORMS: tuple[tuple[re.Pattern[str], tuple[str, ...], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), names, form)
    for pattern, names, form in (
        (rf"(CLICK|LONG_PRESS|TAP|DOUBLE_CLICK) {_POINT}", ("x", "y"),
         "{} <point>[[{},{}]]</point>"),
        (rf"(SWIPE|DRAG) {_POINT} ?{_POINT}", ("x", "y", "to_x", "to_y"),
         "{} <point>[[{},{}]]</point> <point>[[{},{}]]</point>"),
        (r"(SCROLL) \[(UP|DOWN|LEFT|RIGHT)\]", ("direction",), "{} [{}]"),
        (r"(TYPE) \[([^\n]*)\]", ("text",), "{} [{}]"),
        (r"(OPEN_APP) \[([^\n]{1,100})\]", ("app",), "{} [{}]"),
        (rf"({'|'.join(_PLAIN)})", (), "{}"),
    )
)  # fmt: skip
_NUMBERS = ("x", "y", "to_x", "to_y")
_PATTERN = label_pattern(("Thoughts", "Thought", "thoughts", "Actions", "Action", "actions"))


class Mobile(Dialect):
    """The dialect ``mobile``."""

    name = "mobile"
    title = "Phones (`CLICK <point>[[512,873]]</point>`, `SCROLL [UP]`)"
    example = "CLICK <point>[[512,873]]</point>"
    marks = ("<point>[[", "SCROLL [", "TYPE [", "OPEN_APP [", *_PLAIN)

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        if not any(mark in text for mark in self.marks):
            return ParsedTurn()
        parts = sections(text, _PATTERN)
        if not any(part.label in ("action", "actions") for part in parts):
            return ParsedTurn(_calls(text, trim(text, (0, len(text))), None))
        calls = list(_calls(text, trim(text, (0, parts[0].span[0])), None))
        thoughts: list[Marked] = []
        left = None
        for index, part in enumerate(parts):
            end = parts[index + 1].span[0] if index + 1 < len(parts) else part.span[1]
            if part.label.startswith("thought"):
                thoughts.append(thought(part, end))
            else:
                listed = _calls(text, part.words, part.span[0])
                calls += listed
                if not listed:
                    left = "it is no action of a phone"
        if not calls:
            return ParsedTurn(left=left)
        return ParsedTurn(tuple(calls), tuple(thoughts), left=left)

    def write(self, call: ParsedCall) -> str | None:
        """A call in the place of the old one, or as all of a turn."""
        values = json.loads(call.arguments or "{}")
        for _, names, form in _FORMS:
            if set(names) == set(values):
                written = form.format(call.name, *(values[name] for name in names))
                if (result := same_values(self, written, call)) is not None:
                    return written_frame(call, result) or result
        return None


def _calls(text: str, words: Span, start: int | None) -> tuple[ParsedCall, ...]:
    """The actions that words are, a line each; none when a line is something else."""
    results: list[ParsedCall] = []
    position = words[0]
    while position < words[1]:
        end = text.find("\n", position, words[1])
        end = words[1] if end < 0 else end
        line = trim(text, (position, end))
        if line[0] < line[1]:
            begin = line[0] if results or start is None else start
            call = _call(text[slice(*line)], (begin, line[1]))
            if call is None:
                return ()
            results.append(framed(text, call.span, line, call))
        position = end + 1
    return tuple(results)


def _call(words: str, span: Span) -> ParsedCall | None:
    for pattern, names, _ in _FORMS:
        match = pattern.fullmatch(words)
        if match is not None:
            pairs = zip(names, match.groups()[1:], strict=True)
            values = {key: int(value) if key in _NUMBERS else value for key, value in pairs}
            return ParsedCall(span, match[1], json.dumps(values, ensure_ascii=False), kind="gui")
    return None


DIALECT = Mobile()
