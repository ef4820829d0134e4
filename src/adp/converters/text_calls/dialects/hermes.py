"""Hermes: ``<tool_call>`` around JSON, ``<tool_response>`` around results, ``<think>`` before."""

from __future__ import annotations

import re
from collections.abc import Sequence

from adp.converters.text_calls.dialect import (
    Dialect,
    Marked,
    ParsedCall,
    ParsedResult,
    ParsedTurn,
)
from adp.converters.text_calls.find import CLOSE, OPEN, objects_from, tagged_group
from adp.converters.text_calls.objects import (
    after_mark,
    checked,
    json_call,
    json_of,
    object_calls,
    skip_space,
    tagged_results,
)
from adp.converters.text_calls.thoughts import Openings, stands_alone, trimmed

_MOST_FAILED = 200
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
    marks = (OPEN, "<answer>")
    prompts = ("<tools>", "<tool_response>")
    results = ("<tool_response>", "<obs>", "Observation:", "OBSERVATION:")

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        calls: list[ParsedCall] = []
        left, failed, position = None, 0, 0
        walk = Openings(text, re.escape(OPEN))
        while failed < _MOST_FAILED and (match := walk.after(position)) is not None:
            more = _calls_at(text, match.start())
            if more and (calls or stands_alone(text, (match.start(), more[-1].span[1]))):
                while more:
                    calls += more
                    position = more[-1].span[1]
                    more = _continued(text, position)
                continue
            failed += 1
            position = match.end()
            if not more and stands_alone(text, match.span()):
                left = "the text between the tags of a call is no call"
        answer = None if calls else _ANSWER.search(text)
        marked = answer and Marked(answer.span(1), trimmed(text, answer.span(2)))
        return ParsedTurn(tuple(calls), answer=marked, left=left)

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The results in a turn that follows calls."""
        for opening, closing in _RESULTS:
            if text.lstrip().startswith(opening):
                return tagged_results(text, opening, closing)
        return after_mark(text, self.results) or super().results_in(text, calls)

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        written = json_call(call)
        return checked(self, call, None if written is None else f"{OPEN}\n{written}\n{CLOSE}")


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


def _continued(text: str, position: int) -> list[ParsedCall]:
    """Calls between a closing tag and the next one: those of a group whose first was edited."""
    start = skip_space(text, position)
    matches = objects_from(text, start) if text.startswith("{", start) else None
    if matches is None or not text.startswith(CLOSE, skip_space(text, matches[2])):
        return []
    return object_calls(text, (start, skip_space(text, matches[2]) + len(CLOSE)), matches[0])


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
