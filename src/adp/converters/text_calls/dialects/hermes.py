"""Hermes: ``<tool_call>`` around JSON, ``<tool_response>`` around results, ``<think>`` before."""

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
    Piece,
)
from adp.converters.text_calls.find import CLOSE, OPEN, objects_from, tagged_group
from adp.converters.text_calls.frames import (
    after_mark,
    scanned,
    split_at_results,
    tagged_results,
)
from adp.converters.text_calls.objects import (
    checked,
    json_of,
    object_calls,
    skip_space,
    written_object,
)
from adp.converters.text_calls.result_names import with_names
from adp.converters.text_calls.thoughts import trimmed

_RESULTS = (("<tool_response>", "</tool_response>"), ("<obs>", "</obs>"))
_ANSWER = re.compile(r"</think>\s*(<answer>((?:(?!<answer>).)*)</answer>)\s*\Z", re.DOTALL)
_KEYED = re.compile(r"<tool_call>\s*([\w.:-]+)\s*(?=<arg_key>)")
_KEY = re.compile(r"\s*<arg_key>([^<]*)</arg_key>\s*<arg_value>")


class Hermes(Dialect):
    """The dialect ``hermes``."""

    name = "hermes"
    title = "Hermes and Qwen (`<tool_call>` JSON, `<tool_response>`)"
    example = (
        '<think>I look.</think>\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    )
    marks: tuple[str, ...] = (OPEN, "<answer>")
    prompts: tuple[str, ...] = ("<tools>", "<tool_response>")
    results: tuple[str, ...] = ("<tool_response>", "<obs>", "Observation:", "OBSERVATION:")

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        turn = scanned(
            text,
            re.escape(OPEN),
            lambda match: _calls_at(text, match.start()),
            "the text between the tags of a call is no call",
        )
        answer = None if turn.calls else _ANSWER.search(text)
        marked = answer and Marked(answer.span(1), trimmed(text, answer.span(2)))
        return replace(turn, answer=marked)

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The results in a turn that follows calls."""
        for opening, closing in _RESULTS:
            if text.lstrip().startswith(opening):
                return with_names(text, tagged_results(text, opening, closing), calls)
        return after_mark(text, self.results) or super().results_in(text, calls)

    def pieces(self, text: str) -> Sequence[Piece]:
        """The turns in a text that holds a whole run."""
        if CLOSE not in text or not any(opening in text for opening, _ in _RESULTS):
            return ()
        return split_at_results(text, "<tool_response>|<obs>", "</tool_response>|</obs>")

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        written = written_object(call)
        if written is not None or call.arguments is None:
            return written
        keys = [f"<tool_call>{call.name}"]
        for key, value in json.loads(call.arguments).items():
            if not isinstance(value, str):
                return None
            keys.append(f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>")
        return checked(self, call, "\n".join([*keys, CLOSE]))


def _calls_at(text: str, start: int) -> list[ParsedCall]:
    """The calls of a pair of tags."""
    keyed = _keyed_call(text, start)
    if keyed is not None:
        return [keyed]
    inside = skip_space(text, start + len(OPEN))
    matches = objects_from(text, inside)
    if matches is not None:
        stop = skip_space(text, matches[2])
        if text.startswith(OPEN, stop):  # the closing tag was forgotten
            return object_calls(text, (start, stop), matches[0])
    group = tagged_group(text, start)
    if group is None:
        return []
    return object_calls(text, (group.start, group.end), [call.object for call in group.calls])


def _keyed_call(text: str, start: int) -> ParsedCall | None:
    """A call whose arguments stand in pairs of tags, as GLM writes it."""
    match = _KEYED.match(text, start)
    if match is None:
        return None
    values: dict[str, str] = {}
    position = match.end()
    while (key := _KEY.match(text, position)) is not None:
        end = text.find("</arg_value>", key.end())
        if end < 0 or key[1].strip() in values:
            return None
        values[key[1].strip()] = text[key.end() : end]
        position = end + len("</arg_value>")
    end = text.find(CLOSE, position)
    if end < 0 or text[position:end].strip():
        return None
    return ParsedCall((start, end + len(CLOSE)), match[1], json_of(values), None, "dsl")


DIALECT = Hermes()
