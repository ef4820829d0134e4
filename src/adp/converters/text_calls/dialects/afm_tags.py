"""Chain-of-agents: each agent and each tool has a tag, and a run is one text.

``<plan>``, ``<reflection>``, ``<double_check>`` and ``<suggested_answer>`` are reasoning, beside
``<think>``. An observation may hold HTML: it ends where a known tag, or nothing, follows.
"""

from __future__ import annotations

import json
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
    code_call,
    elements,
    framed,
    json_arguments,
    split_at_results,
    unfenced,
    written_frame,
)
from adp.converters.text_calls.thoughts import trimmed

_KEYS = {"web_search": "query", "wiki_search": "query", "crawl_page": "url"}
_TOOLS = (*_KEYS, "code", "visual_inspector")
_REASONING = ("plan", "reflection", "double_check", "suggested_answer")
_ALL = "|".join((*_TOOLS, *_REASONING, "think", "answer"))
_OBSERVED, _OBSERVED_END = "<observation>", "</observation>"
_END = rf"</observation>(?=\s*(?:<(?:{_ALL})>|<observation>|\Z))"


class AfmTags(Dialect):
    """The dialect ``afm_tags``."""

    name = "afm_tags"
    title = "Chain-of-agents (`<plan>`, `<web_search>`, `<observation>`, `<answer>`)"
    example = "<think>I look.</think><web_search>height of Etna</web_search>"
    marks = (*(f"<{tag}>" for tag in _TOOLS), *(f"<{tag}>" for tag in _REASONING), "<answer>")
    prompts = ("<wiki_search>", "<web_search>", "<crawl_page>", "<visual_inspector>")
    results = (_OBSERVED,)

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        calls: list[ParsedCall] = []
        thoughts: list[Marked] = []
        answer = None
        for tag, span, inside in elements(text, (*_TOOLS, *_REASONING, "answer")):
            if tag in _REASONING:
                thoughts.append(Marked(span, trimmed(text, inside)))
            elif tag == "answer":
                answer = Marked(span, trimmed(text, inside))
            elif (call := _call(text, tag, span, inside)) is not None:
                calls.append(call)
        if answer is not None and any(call.span[0] > answer.span[0] for call in calls):
            answer = None
        return ParsedTurn(tuple(calls), tuple(thoughts), answer)

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The results in a turn that follows calls: all of it, as it may hold tags of its own."""
        start = len(text) - len(text.lstrip())
        if not text.startswith(_OBSERVED, start):
            return super().results_in(text, calls)
        stop = len(text.rstrip())
        closed = text.endswith(_OBSERVED_END, start + len(_OBSERVED), stop)
        end = stop - len(_OBSERVED_END) if closed else stop
        words = trimmed(text, (start + len(_OBSERVED), max(end, start + len(_OBSERVED))))
        return (ParsedResult(Marked((0, len(text)), words)),)

    def pieces(self, text: str) -> Sequence[Piece]:
        """The turns in a text that holds a whole run."""
        return split_at_results(text, _OBSERVED, _END) if _OBSERVED in text else ()

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        is_code = call.kind == "code" and call.name == "code"
        return written_frame(call) if is_code or call.name in _TOOLS[:-2] + _TOOLS[-1:] else None


def _call(text: str, tag: str, span: Span, inside: Span) -> ParsedCall | None:
    words = trimmed(text, inside)
    value = text[slice(*words)]
    closing = f"</{tag}>"
    if not value:
        return None
    if tag in _KEYS:
        return framed(text, span, words, ParsedCall(span, tag), key=_KEYS[tag], closing=closing)
    if tag == "visual_inspector":
        place = trimmed(text, unfenced(text, inside))
        given = json_arguments(text[slice(*place)])
        values = (given.arguments, given.raw, given.written_as)
        return framed(text, span, place, ParsedCall(span, tag, *values), closing=closing)
    return _code(text, span, inside) if value.startswith("```") else None


def _code(text: str, span: Span, inside: Span) -> ParsedCall | None:
    """A block of Python, perhaps with a second one that is its input."""
    code = unfenced(text, inside)
    if code != inside:
        return code_call(text, span, code, "python", name="code", closing="</code>")
    pieces = text[slice(*inside)].strip().split("```")
    if len(pieces) != 5 or pieces[0] or pieces[2].strip() or pieces[4]:
        return None
    values = [piece.partition("\n")[2].strip("\n") for piece in (pieces[1], pieces[3])]
    arguments = json.dumps({"code": values[0], "stdin": values[1]}, ensure_ascii=False)
    return ParsedCall(span, "code", arguments, None, "dsl")


DIALECT = AfmTags()
