"""ToolRL: ``<think>``, ``<tool_call>`` with an object a line, ``<response>``; ``<obs>`` results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from adp.converters.text_calls.dialect import Marked, ParsedTurn
from adp.converters.text_calls.dialects.hermes import Hermes
from adp.converters.text_calls.frames import elements
from adp.converters.text_calls.thoughts import trimmed


class Rlla(Hermes):
    """The dialect ``rlla``."""

    name = "rlla"
    title = "ToolRL (`<tool_call>` with an object a line, `<response>`, `<obs>`)"
    example = (
        '<think> I look. </think>\n<tool_call>\n{"name": "f", "parameters": {"a": 1}}\n'
        '{"name": "g", "parameters": {}}\n</tool_call>'
    )
    marks = ("<tool_call>", "<response>")
    prompts = ("<response> AI's final response </response>", "<obs>")
    results = ("<obs>",)

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        is_own = '"parameters"' in text or '"arguments"' not in text  # else it is Hermes
        turn = super().parse(text, tools) if is_own and "<tool_call>" in text else ParsedTurn()
        if "<response>" not in text:
            return replace(turn, answer=None)
        answer = None
        for _, span, inside in elements(text, ("response",)):
            if all(span[1] <= call.span[0] or call.span[1] <= span[0] for call in turn.calls):
                answer = Marked(span, trimmed(text, inside))
        return replace(turn, answer=answer)


DIALECT = Rlla()
