"""Kimi K2: ``<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{...}`` and an end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from adp.converters.text_calls.dialect import Dialect, ParsedCall, ParsedResult, ParsedTurn
from adp.converters.text_calls.frames import scanned, written_frame
from adp.converters.text_calls.special_tokens import end_of, token_call

_BEGIN, _ARGUMENTS = "<|tool_call_begin|>", "<|tool_call_argument_begin|>"
_CLOSE = "<|tool_call_end|>"
_OPEN = (
    r"(?:<\|tool_calls_section_begin\|>\s*)?<\|tool_call_begin\|>\s*"
    r"(?P<id>(?:functions\.)?(?P<name>[^\s<|:]{1,200})(?::\d{1,9})?)\s*"
    r"<\|tool_call_argument_begin\|>"
)
_SECTION_END = re.compile(r"\s*<\|tool_calls_section_end\|>")
_RETURN = re.compile(r"\s*## Return of [^\n]{1,300}\n")


class KimiTags(Dialect):
    """The dialect ``kimi_tags``."""

    name = "kimi_tags"
    title = "Kimi K2 (`<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{...}`)"
    example = (
        f"<|tool_calls_section_begin|>{_BEGIN}functions.f:0{_ARGUMENTS}"
        f'{{"a": 1}}{_CLOSE}<|tool_calls_section_end|>'
    )
    marks = (_BEGIN,)
    prompts = ("tool_declare",)
    results = ("## Return of",)

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        missing: set[str] = set()
        reason = "the tokens of a call hold no call"
        return scanned(text, _OPEN, lambda match: _calls(text, match, missing), reason)

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The results in a turn that follows calls."""
        (result,) = super().results_in(text, calls)
        start = end_of(text, _RETURN, 0)
        if start == 0:
            return (result,)
        return (ParsedResult(result.marked._replace(words=(start, len(text)))),)

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        return written_frame(call)


def _calls(text: str, match: re.Match[str], missing: set[str]) -> list[ParsedCall]:
    """The call that begins here."""
    end = -1 if _CLOSE in missing else text.find(_CLOSE, match.end())
    if end < 0:
        missing.add(_CLOSE)
        return []
    span = (match.start(), end_of(text, _SECTION_END, end + len(_CLOSE)))
    call = token_call(text, span, match.span("name"), (match.end(), end), _CLOSE)
    return [] if call is None else [replace(call, call_id=match["id"])]


DIALECT = KimiTags()
