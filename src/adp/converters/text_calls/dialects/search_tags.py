r"""Reasoning with tools in tags: ``<search>``, ``<python>``, ``<result>``, ``<answer>``.

ET-Agent, ARPO, Tool-Star and Search-R1 write a whole run as one text. Search-R1 and IKEA have
``<information>`` in place of ``<result>``. The answer is what stands in the last ``\boxed{}``.
"""

from __future__ import annotations

from collections.abc import Sequence

from adp.converters.text_calls.dialect import (
    Dialect,
    Marked,
    ParsedCall,
    ParsedResult,
    ParsedTurn,
    Piece,
    Span,
)
from adp.converters.text_calls.frames import (
    after_mark,
    code_call,
    elements,
    framed,
    split_at_results,
    tagged_results,
    unfenced,
    written_frame,
)
from adp.converters.text_calls.thoughts import trimmed

_RESULTS = ("result", "information")
_BOXED = "\\boxed{"
_MOST_QUERY = 5000


class SearchTags(Dialect):
    """The dialect ``search_tags``."""

    name = "search_tags"
    title = "Search and Python in tags (`<search>`, `<python>`, `<result>`, `<answer>`)"
    example = "<think>I look.</think> <search>height of Etna</search>"
    marks = ("<search>", "<python>", "<answer>")
    prompts = ("<search>", "</search>", "<python>")
    results = ("<result>", "<information>")

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        calls: list[ParsedCall] = []
        answer = None
        for tag, span, inside in elements(text, ("search", "python", "answer"), unclosed=False):
            if tag == "answer":
                answer = Marked(span, _answer(text, inside))
                continue
            call = _call(text, tag, span, inside)
            if call is not None:
                calls.append(call)
        if answer is not None and any(call.span[0] > answer.span[0] for call in calls):
            answer = None
        return ParsedTurn(tuple(calls), _unclosed(text, calls, answer), answer)

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The results in a turn that follows calls."""
        for tag in _RESULTS:
            if text.lstrip().startswith(f"<{tag}>"):
                return tagged_results(text, f"<{tag}>", f"</{tag}>")
        return after_mark(text, ("Observation:",)) or super().results_in(text, calls)

    def pieces(self, text: str) -> Sequence[Piece]:
        """The turns in a text that holds a whole run."""
        if "</search>" not in text and "</python>" not in text:
            return ()
        return split_at_results(text, "<(?:result|information)>", "</(?:result|information)>")

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        return written_frame(call) if call.name in ("search", "python") else None


def _call(text: str, tag: str, span: Span, inside: Span) -> ParsedCall | None:
    if tag == "python":
        return code_call(text, span, unfenced(text, inside), "python", closing="</python>")
    words = trimmed(text, inside)
    query = text[slice(*words)]
    if not query or len(query) > _MOST_QUERY or "</" in query:
        return None
    call = ParsedCall(span, "search")
    return framed(text, span, words, call, key="query", closing="</")


def _answer(text: str, inside: Span) -> Span:
    """What the last box of an answer holds; all of it when it has none."""
    start = text.rfind(_BOXED, *inside)
    if start < 0:
        return trimmed(text, inside)
    start += len(_BOXED)
    depth, position = 1, start
    while position < inside[1]:
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if not depth:
            return trimmed(text, (start, position))
        position += 1
    return trimmed(text, inside)


def _unclosed(text: str, calls: Sequence[ParsedCall], answer: Marked | None) -> tuple[Marked, ...]:
    """Reasoning that begins the text and ends with the first action, without a closing tag."""
    start = len(text) - len(text.lstrip())
    ends = [call.span[0] for call in calls] + ([answer.span[0]] if answer else [])
    if not ends or not text.startswith("<think>", start) or "</think>" in text:
        return ()
    end = min(ends)
    return (Marked((start, end), trimmed(text, (start + len("<think>"), end))),)


DIALECT = SearchTags()
