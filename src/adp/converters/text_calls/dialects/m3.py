"""M3: a thought in tags, then an action in the form of each of its students, or ``<FINAL>``.

The teacher writes ``<Action>{...}</Action>``, Qwen ``<tool_call>``, Mistral ``[TOOL_CALLS]`` and a
list, Granite ``<|tool_call|>`` and a list; stored runs have the bare object behind the thought.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from adp.converters.text_calls.dialect import Dialect, Marked, ParsedCall, ParsedResult, ParsedTurn
from adp.converters.text_calls.find import objects_from
from adp.converters.text_calls.frames import elements, scanned, tagged_results
from adp.converters.text_calls.objects import object_calls, skip_space, written_object
from adp.converters.text_calls.result_names import with_names
from adp.converters.text_calls.thoughts import trimmed

_FORMS = {
    "<Action>": "</Action>",
    "<ACTION>": "</ACTION>",
    "<tool_call>": "</tool_call>",
    "[TOOL_CALLS]": "",
    "<|tool_call|>": "",
}
_TAGS = "|".join(re.escape(opening) for opening in _FORMS)
_BARE = r"(?:(?<=</think>)|(?<=</Thought>))\s*(?=\{)"
_GOOD = "ToolCallSuccessful"
_STATUS = re.compile(r"\s*(?:ToolCallSuccessful|\w{1,60}Error)\b")
_RESULTS = {
    "<Observation>": "</Observation>",
    "<OBSERVATION>": "</OBSERVATION>",
    "<observation>": "</observation>",
    "<tool_response>": "</tool_response>",
    "[TOOL_RESULTS]": "[/TOOL_RESULTS]",
}


class M3Forms(Dialect):
    """The dialect ``m3``."""

    name = "m3"
    title = "M3 (`<think>`, `<Action>{...}</Action>`, `<FINAL>`)"
    example = '<think>I look.</think><Action>{"name": "f", "arguments": {"a": 1}}</Action>'
    marks = (*_FORMS, "<FINAL>", "</think>{", "</think>\n", "</think> ", "</Thought>")
    prompts = ("<FINAL>", "<Action>")
    results = (*_RESULTS, "ToolCallSuccessful", "ToolCallError")

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        turn = scanned(
            text, f"{_TAGS}|{_BARE}", lambda match: _calls(text, match), "an action is no call"
        )
        final = elements(text, ("FINAL",)) if "<FINAL>" in text and not turn.calls else []
        if not final:
            return turn
        _, span, inside = final[-1]
        return replace(turn, answer=Marked(span, trimmed(text, inside)))

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The results in a turn that follows calls."""
        for opening, closing in _RESULTS.items():
            if text.lstrip().startswith(opening):
                return with_names(text, tagged_results(text, opening, closing), calls)
        error = None if _STATUS.match(text) is None else not text.lstrip().startswith(_GOOD)
        return (ParsedResult(Marked((0, len(text)), (0, len(text))), is_error=error),)

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        return written_object(call)


def _calls(text: str, match: re.Match[str]) -> list[ParsedCall]:
    """The calls behind a tag, or behind a thought at the end of the text."""
    opening = match.group().strip()
    start = skip_space(text, match.end())
    matches = objects_from(text, start)
    if matches is None:
        return []
    end = matches[2]
    closing = _FORMS.get(opening, "")
    after = skip_space(text, end)
    if closing and text.startswith(closing, after):
        end = after + len(closing)
    elif after != len(text):
        return []
    first = match.start() if opening else start
    return object_calls(text, (first, end), matches[0])


DIALECT = M3Forms()
