"""From structure back to texts: the inverse of `adp.converters.text_calls.apply`.

A trajectory that is written to the format that it was read from gets the turns back that its source
had. What was edited since shows: a call, a thought or a result that says something else is written
into the text in its place, and all other characters stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from adp.converters.null_members import without_nulls
from adp.converters.text_calls.dialect import Dialect, ParsedCall, Span
from adp.converters.text_calls.numbering import StepNumbers, pair_changes
from adp.converters.text_calls.offered import tool_names
from adp.converters.text_calls.registry import dialect
from adp_schema.extra_column import unpack, without_parsed
from adp_schema.losses import Losses
from adp_schema.model import Observation, Pair, Step, ToolCall, Trajectory

_RESULT_COLUMNS = ("name", "is_error", "exit_code")
_NOT_WRITTEN = "the dialect {} has no way to write it; the text keeps what it said"

Edit = tuple[Span, str]


def restore(run: Trajectory, losses: Losses) -> None:
    """Give a trajectory and its branches the turns that its source had; it is changed in place.

    Args:
        run: the trajectory.
        losses: takes edits that a text cannot show.
    """
    numbers: dict[str, StepNumbers] = {}
    _restore(run, losses, numbers)
    if numbers:
        pairs = {id(pair): pair for pair in _pairs(run)}
        for pair in pairs.values():
            for column, value in pair_changes(pair.__dict__, numbers).items():
                setattr(pair, column, value)


def _pairs(run: Trajectory) -> Iterator[Pair]:
    yield from run.pairs
    for branch in run.branches:
        yield from _pairs(branch)


def _restore(run: Trajectory, losses: Losses, numbers: dict[str, StepNumbers]) -> None:
    parsed = unpack(run.extra).parsed
    for column in parsed.get("columns", ()):
        setattr(run, column, None)
    for column, value in parsed.get("replaced", {}).items():
        setattr(run, column, value)
    run.extra = without_parsed(run.extra)
    for step in run.steps:
        for call in step.calls:
            _restore_call(call)
    parent = numbers.get(run.parent_id or "")
    if parent is not None and run.parent_step is not None:
        run.parent_step = parent.border(run.parent_step)
    if parent is not None or any(map(_is_parsed, run.steps)):
        restored = _RestoredRun(run, losses)
        restored.go()
        numbers[run.trajectory_id or ""] = restored.numbers
    for branch in run.branches:
        _restore(branch, losses, numbers)


def _restore_call(call: ToolCall) -> None:
    """Give a call the arguments that it was read with; an edit of them stays."""
    if call.extra is None or '"$parsed"' not in call.extra:
        return
    before = unpack(call.extra).parsed.get("replaced", {}).get("arguments")
    if before is not None and without_nulls(before) == call.arguments:
        call.arguments = before
    call.extra = without_parsed(call.extra)


def _is_parsed(step: Step) -> bool:
    texts = [step.extra, *(observation.extra for observation in step.observations)]
    return any('"$parsed"' in text for text in texts if text is not None)


class _RestoredRun:
    """One trajectory while its turns are put together again."""

    def __init__(self, run: Trajectory, losses: Losses) -> None:
        self._run = run
        self._losses = losses
        self._tools = tool_names(run.tools)
        self._steps: list[Step] = []
        self.numbers = StepNumbers()

    def go(self) -> None:
        """Put all turns together, and number them."""
        run = self._run
        first = run.parent_step or 0
        for step in run.steps:
            old = step.step if step.step is not None else first + len(self._steps)
            joined = self._step(step, f"$.steps[{old}]")
            start = first + len(self._steps) - (0 if joined else 1)
            self.numbers.add(old, start, kept=not joined)
            observations, step.observations = step.observations, []
            for observation in observations:
                self._observation(observation)
        self.numbers.end = first + len(self._steps)
        self._number(first)

    def _number(self, first: int) -> None:
        numbers = self.numbers
        for number, step in enumerate(self._steps, first):
            step.step = number
            for name in ("edit_from", "edit_to"):
                if getattr(step, name) is not None:
                    setattr(step, name, numbers.border(getattr(step, name)))
            if step.parent_step is not None:
                step.parent_step = numbers.step(step.parent_step)
            for call in step.calls:
                call.step = number
            for order, observation in enumerate(step.observations):
                observation.step, observation.order = number, order
                if observation.call_step is not None:
                    observation.call_step = numbers.step(observation.call_step)
        for link in self._run.links:
            if link.step is not None:
                link.step = numbers.step(link.step)
        self._run.steps = self._steps

    # ---- steps -----------------------------------------------------------------------------

    def _step(self, step: Step, path: str) -> bool:
        """Give a step its text alone; whether it was joined to the step before."""
        parsed = unpack(step.extra).parsed
        if not parsed:
            self._steps.append(step)
            return False
        step.extra = without_parsed(step.extra)
        if step.text is not None and "dialect" in parsed:
            self._text(step, dialect(parsed["dialect"]), parsed, path)
        if parsed.get("behind") and self._last is not None:
            self._last.text = (self._last.text or "") + (step.text or "")
            return True
        if not parsed.get("apart"):
            step.calls = []
        step.prose = None
        if "thoughts" in parsed:
            step.reasoning = parsed.get("reasoning")
        if parsed.get("joined") and self._steps:
            before = self._steps[-1]
            before.text = (before.text or "") + (step.text or "")
            return True
        self._steps.append(step)
        return False

    def _text(self, step: Step, grammar: Dialect, parsed: dict[str, Any], path: str) -> None:
        """Write what was edited into the text of a step."""
        text = step.text or ""
        count = parsed.get("calls", 0)
        there = grammar.parse(text, self._tools).calls if count else ()
        is_as_read = len(there) == count  # else another version read it
        kept = _matched(there, step.calls, in_order=is_as_read)
        edits: list[Edit] = []
        expected: list[ParsedCall] = []
        changed: list[int] = []
        for index, call in enumerate(there):
            row = kept.get(index)
            wanted = None if row is None else _wanted(call, row)
            if wanted is None and (row is not None or not is_as_read):
                expected.append(call)
                continue
            written = "" if wanted is None else _written(grammar, wanted)
            if written is None:
                self._not_written(grammar, path, [index])
                expected.append(call)
                continue
            changed.append(index)
            edits.append((call.span, written))
            if wanted is not None:
                expected.append(wanted)
        if changed and not self._says(grammar, _edited(text, edits), expected):
            self._not_written(grammar, path, changed)
            edits = []
        edits += self._thoughts(step, text, parsed, path)
        step.text = _edited(text, edits)

    def _says(self, grammar: Dialect, text: str, expected: list[ParsedCall]) -> bool:
        """Whether an edited text says the calls that it shall."""
        read = grammar.parse(text, self._tools).calls
        return [_values(call) for call in read] == [_values(call) for call in expected]

    def _not_written(self, grammar: Dialect, path: str, calls: list[int]) -> None:
        for index in calls:
            reason = _NOT_WRITTEN.format(grammar.name)
            self._losses.add(f"{path}.calls[{index}].arguments", reason)

    def _thoughts(self, step: Step, text: str, parsed: dict[str, Any], path: str) -> list[Edit]:
        """The reasoning of a step, when it is not the one of the text."""
        spans = [(start, end) for _, _, start, end in parsed.get("thoughts", ())]
        words = [parsed.get("reasoning"), *(text[slice(*span)] for span in spans)]
        if not spans or step.reasoning == "\n\n".join(word for word in words if word):
            return []
        if len(spans) == 1 and parsed.get("reasoning") is None:
            return [(spans[0], step.reasoning or "")]
        self._losses.add(f"{path}.reasoning", "the text keeps the reasoning that it had")
        return []

    # ---- observations ----------------------------------------------------------------------

    def _observation(self, row: Observation) -> None:
        """Make the turn of an observation that was one."""
        parsed = unpack(row.extra).parsed
        target = self._steps[-1] if self._steps else None
        if not parsed or target is None:
            (self._run.early_observations if target is None else target.observations).append(row)
            return
        text = parsed.get("before", "") + (row.text or "") + parsed.get("after", "")
        row.extra = without_parsed(row.extra)
        if parsed.get("joined"):
            self._join(target, text)
        elif parsed.get("piece"):
            target.text = (target.text or "") + text
            self._last = target
        elif "step" in parsed:
            step = _step_of(row, text, parsed["step"])
            self._steps.append(step)
            self._last = step
        else:
            if row.text is None:
                text = row.text  # a page or a picture
            row.text, row.call_step, row.call, row.call_id = text, None, None, None
            for name in _RESULT_COLUMNS:
                setattr(row, name, parsed.get("row", {}).get(name))
            target.observations.append(row)
            self._last = row

    _last: Step | Observation | None = None
    """What a further result of the same turn is joined to."""

    def _join(self, target: Step, text: str) -> None:
        last = self._last if self._last is not None else target
        last.text = (last.text or "") + text


def _written(grammar: Dialect, call: ParsedCall) -> str | None:
    """The characters of a call; None when the dialect cannot say it, or no text could."""
    with suppress(ValueError, RecursionError):  # nested too deep, or a number too long
        return grammar.write(call)
    return None


def _step_of(row: Observation, text: str, columns: dict[str, Any]) -> Step:
    """The turn that an observation was."""
    values = {name: value for name, value in columns.items() if name in Step.model_fields}
    shared = ("timestamp", "timestamp_text", "timestamp_zone_known", "content", "reward", "extra")
    values |= {name: getattr(row, name) for name in shared}
    return Step.model_construct(**{"source": "user", **values, "text": text})


def _matched(
    there: tuple[ParsedCall, ...], rows: list[ToolCall], *, in_order: bool
) -> dict[int, ToolCall]:
    """Index of a call in the text -> the row that it became, if it is still there."""
    if in_order and len(there) == len(rows):
        return dict(enumerate(rows))
    spans = {(row.span_start, row.span_end): row for row in rows}
    return {index: spans[call.span] for index, call in enumerate(there) if call.span in spans}


def _wanted(call: ParsedCall, row: ToolCall) -> ParsedCall | None:
    """What a call shall say; None when it says that."""
    if (row.name, row.arguments, row.arguments_raw) == (call.name, call.arguments, call.raw):
        return None
    return replace(call, name=row.name or "", arguments=row.arguments, raw=row.arguments_raw)


def _values(call: ParsedCall) -> tuple[Any, ...]:
    """What a call says, however it is written."""
    arguments: Any = call.arguments
    if arguments is not None:
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments, parse_int=str, parse_float=str)
    return call.name, arguments, call.raw


def _edited(text: str, edits: list[Edit]) -> str:
    out, position = [], 0
    for (start, end), words in sorted(edits):
        if start < position:
            continue
        out += [text[position:start], words]
        position = end
    return "".join([*out, text[position:]])
