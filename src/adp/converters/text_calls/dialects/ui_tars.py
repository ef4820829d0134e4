"""UI-TARS: ``Action: click(start_box='(495,30)')`` in function notation, several a turn perhaps.

Strings that hold their own quotation mark (``type(content='it's')``) are read when they are the
only argument. Arguments have names. ``finished(content='words')`` is a call like the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, ParsedTurn, Span
from adp.converters.text_calls.labels import (
    label_pattern,
    object_text,
    same_values,
    sections,
    thought,
)
from adp.converters.text_calls.literals import call_at
from adp.converters.text_calls.write_literals import write_arguments

_PATTERN = label_pattern(("Thought", "Reflection", "Action_Summary", "Action"))
ACTIONS = (
    "click", "left_double", "left_single", "right_single", "double_click", "drag", "hotkey", "type",
    "scroll", "wait", "finished", "call_user", "long_press", "open_app", "press_home", "press_back",
    "select", "hover", "swipe", "press_enter", "press", "release", "navigate", "navigate_back",
    "release_key", "press_key", "error_env",
)  # fmt: skip
_LOOSE = re.compile(r"(\w{1,20})\((content|key|app_name)=(['\"])(.*)\3\)")


class UiTars(Dialect):
    """The dialect ``ui_tars``."""

    name = "ui_tars"
    title = "UI-TARS (`Action: click(start_box='(495,30)')`)"
    example = "Thought: I open it.\nAction: click(start_box='<|box_start|>(495,30)<|box_end|>')"
    marks = tuple(f"{name}(" for name in ACTIONS)

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        if not any(mark in text for mark in self.marks):
            return ParsedTurn()
        parts = sections(text, _PATTERN)
        calls: list[ParsedCall] = []
        thoughts: list[Marked] = []
        left = None
        for index, part in enumerate(parts):
            end = parts[index + 1].span[0] if index + 1 < len(parts) else part.span[1]
            if part.label in ("thought", "reflection"):
                thoughts.append(thought(part, end))
            elif part.label == "action":
                listed = _calls(text, part.words, part.span[0])
                calls += listed
                if not listed:
                    left = "it is no action of a screen"
        if not calls:
            return ParsedTurn(left=left)
        return ParsedTurn(tuple(calls), tuple(thoughts), left=left)

    def write(self, call: ParsedCall) -> str | None:
        """A call behind its label."""
        written = None if call.arguments is None else write_arguments(call.arguments)
        return (
            None if written is None else same_values(self, f"Action: {call.name}({written})", call)
        )


def _calls(text: str, words: Span, start: int) -> list[ParsedCall]:
    """The calls in some words, a line each; those before the first other line."""
    results: list[ParsedCall] = []
    position = words[0]
    while position < words[1]:
        call = call_at(text, position, end=words[1])
        if call is not None and call.name in ACTIONS and all(it.name for it in call.arguments):
            name, arguments, end = call.name, call.json(), call.span[1]
        else:
            line_end = text.find("\n", position, words[1])
            line_end = words[1] if line_end < 0 else line_end
            loose = _LOOSE.fullmatch(text[position:line_end].rstrip())
            if loose is None or loose[1] not in ACTIONS:
                break
            name, arguments = loose[1], object_text(**{loose[2]: loose[4]})
            end = position + len(loose[0])
        begin = position if results else start
        results.append(ParsedCall((begin, end), name, arguments, kind="gui"))
        rest = text[end : words[1]]
        position = end + len(rest) - len(rest.lstrip(" \n\r\t;"))
        if "\n" not in text[end:position]:
            break
    return results


DIALECT = UiTars()
