"""WebVoyager: ``Action: Type [2]; words``, ``Scroll [WINDOW]; down``, ``ANSWER; words``.

The arguments are ``element`` (the number of the label), ``content`` and ``direction``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, ParsedTurn
from adp.converters.text_calls.labels import (
    Labelled,
    label_pattern,
    object_text,
    same_values,
    sections,
    string_members,
    thought,
)

_PATTERN = label_pattern(("Thought", "Action", "Observation"))
_FORMS: tuple[tuple[re.Pattern[str], tuple[str, ...], str], ...] = tuple(
    (re.compile(pattern, re.DOTALL), names, form)
    for pattern, names, form in (
        (r"(Click) \[?(\d{1,5})\]?", ("element",), "{} [{}]"),
        (r"(Type) \[?(\d{1,5})\]?[;,]? \[?(.*?)\]?", ("element", "content"), "{} [{}]; {}"),
        (r"(Scroll) \[?(\d{1,5}|WINDOW)\]?[;,]? \[?(up|down)\]?", ("element", "direction"),
         "{} [{}]; {}"),
        (r"(Wait|GoBack|Google)", (), "{}"),
    )
)  # fmt: skip
_ANSWER = re.compile(r"ANSWER[;,]? \[?(.*?)\]?", re.DOTALL)


class WebVoyager(Dialect):
    """The dialect ``webvoyager``."""

    name = "webvoyager"
    title = "WebVoyager (`Action: Type [2]; words`, `ANSWER; words`)"
    example = "Thought: I search for it.\n\nAction: Type [2]; red shoes"
    marks = ("Action:",)
    prompts = ("Type [Numerical_Label]; [Content]",)

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        parts = sections(text, _PATTERN)
        calls: list[ParsedCall] = []
        thoughts: list[Marked] = []
        answer: Marked | None = None
        left = None
        for index, part in enumerate(parts):
            end = parts[index + 1].span[0] if index + 1 < len(parts) else part.span[1]
            if part.label == "thought":
                thoughts.append(thought(part, end))
            elif part.label == "action":
                match = _ANSWER.fullmatch(text, *part.words)
                call = None if match is not None else _call(text, part)
                if match is not None:
                    answer = Marked(part.span, match.span(1))
                elif call is not None:
                    calls.append(call)
                elif part.words[0] < part.words[1]:
                    left = "it is no action of a browser"
        if not calls and answer is None:
            return ParsedTurn(left=left)
        return ParsedTurn(tuple(calls), tuple(thoughts), answer, left)

    def write(self, call: ParsedCall) -> str | None:
        """A call behind its label."""
        members = string_members(call.arguments)
        for _, names, form in _FORMS:
            if members is not None and set(names) == set(members):
                written = form.format(call.name, *(members[name] for name in names))
                if (result := same_values(self, f"Action: {written}", call)) is not None:
                    return result
        return None


def _call(text: str, part: Labelled) -> ParsedCall | None:
    for pattern, names, _ in _FORMS:
        match = pattern.fullmatch(text, *part.words)
        if match is not None:
            pairs = dict(zip(names, match.groups()[1:], strict=True))
            return ParsedCall(part.span, match[1], object_text(**pairs))
    return None


DIALECT = WebVoyager()
