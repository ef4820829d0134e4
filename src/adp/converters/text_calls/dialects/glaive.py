"""Glaive: ``<functioncall>`` with arguments in single quotes, ``FUNCTION RESPONSE:`` after it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from adp.converters.text_calls.dialect import Dialect, ParsedCall, ParsedResult, ParsedTurn, Piece
from adp.converters.text_calls.find import objects_from
from adp.converters.text_calls.frames import (
    after_mark,
    framed,
    json_arguments,
    scanned,
    written_frame,
)
from adp.converters.text_calls.objects import object_calls, skip_space, written_object

_OPEN = r"<functioncall>\s*"
_QUOTED = re.compile(r"\{\s*\"name\"\s*:\s*\"([^\"\n]{1,300})\"\s*,\s*\"arguments\"\s*:\s*'")
_QUOTED_END = re.compile(r"'\s*\}")
_LAST_END = re.compile(r"'\s*\}(?=\s*(?:<\|endoftext\|>|\Z|\n))")
_END = re.compile(r"\s*(?:</functioncall>|<\|endoftext\|>)")
_TURN = re.compile(
    r"(?:^|(?<=<\|endoftext\|>))\s*(FUNCTION RESPONSE:|ASSISTANT:|USER:)", re.MULTILINE
)


class Glaive(Dialect):
    """The dialect ``glaive``."""

    name = "glaive"
    title = "Glaive (`<functioncall> {..., \"arguments\": '{...}'}`)"
    example = '<functioncall> {"name": "f", "arguments": \'{"a": "it\'s"}\'} <|endoftext|>'
    marks = ("<functioncall>",)
    prompts = ("Use them if required",)
    results = ("FUNCTION RESPONSE:",)

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        reason = "the text after a mark of a call is no call"
        return scanned(text, _OPEN, lambda match: _calls(text, match), reason)

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The results in a turn that follows calls."""
        return after_mark(text, self.results) or super().results_in(text, calls)

    def pieces(self, text: str) -> Sequence[Piece]:
        """The turns in a text that goes on after the answers of functions."""
        if "FUNCTION RESPONSE:" not in text or "<functioncall>" not in text:
            return ()
        pieces = [Piece("agent", (0, len(text)))]
        for match in _TURN.finditer(text):
            if match[1] == "USER:":
                return ()
            start = match.start(1)
            before = pieces.pop()
            if not text[before.span[0] : start].strip():
                return ()
            source = "result" if match[1].startswith("F") else "agent"
            pieces += [
                Piece(before.source, (before.span[0], start)),
                Piece("result" if source == "result" else "agent", (start, len(text))),
            ]
        return pieces if len(pieces) > 1 else ()

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        written = written_frame(call)
        return written_object(call) if written is None else written


def _calls(text: str, match: re.Match[str]) -> list[ParsedCall]:
    """The call behind a mark."""
    quoted = _QUOTED.match(text, match.end())
    if quoted is not None:
        call = _quoted(text, match.start(), quoted)
        return [call] if call is not None else []
    matches = objects_from(text, match.end())
    if matches is None:
        return []
    return object_calls(text, (match.start(), _end(text, matches[2])), matches[0])


def _quoted(text: str, start: int, match: re.Match[str]) -> ParsedCall | None:
    """A call whose arguments stand in single quotes, which may hold such quotes."""
    first = match.end()
    matches = objects_from(text, first) if text.startswith("{", skip_space(text, first)) else None
    closing = None
    if matches is not None and len(matches[0]) == 1:
        closing = _QUOTED_END.match(text, matches[2])
    closing = closing or _LAST_END.search(text, first)
    if closing is None:
        return None
    value = (first, closing.start())
    token = text[slice(*value)]
    call = json_arguments(token)
    if call.arguments is None:
        unescaped = json_arguments(token.replace("\\'", "'"))
        call = replace(unescaped, written_as="dsl") if unescaped.arguments is not None else call
    span = (start, _end(text, closing.end()))
    return framed(text, span, value, replace(call, name=match[1]), name=match.span(1))


def _end(text: str, position: int) -> int:
    """The end of a call, with the mark after it."""
    match = _END.match(text, position)
    return match.end() if match else position


DIALECT = Glaive()
