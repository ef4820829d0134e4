"""Runs that stand in the prompts of the judge of ToolAlpaca, with its verdicts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from adp.converters.datasets.turns import DatasetRow, DatasetTurn, TurnCall

_PART = re.compile(
    r"^## (Task Instruction|Standard Answer|AI Assistant's Solution)\n", re.MULTILINE
)
_STEP = re.compile(
    r"^\d{1,3}\. (?:Function: (?P<name>[^\n]+)|(?P<final>Final Response: ))", re.MULTILINE
)
_CALL = re.compile(r"\nParameters: ([^\n]*)(?:\nRetruns: ?(.*))?", re.DOTALL)
_END = "\n## Analysis"
_VERDICTS = ("process_correctness", "final_response_correctness")


def turns(row: DatasetRow) -> Iterator[DatasetTurn]:
    """The instruction, the calls with their results, and the final response."""
    words = [row.look(name) for name in _VERDICTS]
    verdicts = [bytes(it) if it is not None else b"" for it in words]
    if b'"No"' in verdicts:
        row.run.columns["success"] = False
    elif verdicts == [b'"Yes"', b'"Yes"']:
        row.run.columns["success"] = True
    prompt = row.take_text("input[0].content") or ""
    parts = {match[1]: match for match in _PART.finditer(prompt)}
    yield DatasetTurn("user", _body(prompt, parts.get("Task Instruction")).strip())
    solution = _body(prompt, parts.get("AI Assistant's Solution")).rpartition(_END)[0]
    yield from _solution(solution)


def _body(prompt: str, start: re.Match[str] | None) -> str:
    """The words behind a heading, up to the next one that is known."""
    if start is None:
        return ""
    later = _PART.search(prompt, start.end())
    return prompt[start.end() : later.start() if later else len(prompt)]


def _solution(text: str) -> Iterator[DatasetTurn]:
    steps = list(_STEP.finditer(text))
    for number, match in enumerate(steps):
        end = steps[number + 1].start() if number + 1 < len(steps) else len(text)
        body = text[match.end() : end].strip("\n")
        if match["final"]:
            yield DatasetTurn("agent", body)
            continue
        call = _CALL.match(text[match.end() : end].rstrip("\n"))
        given = call[1] if call else None
        yield DatasetTurn("agent", None, [TurnCall(match["name"].strip(), given)])
        if call and call[2] is not None:
            yield DatasetTurn("result", call[2])
