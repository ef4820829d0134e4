"""A run of any format as one text in the form of Tiny Tool Use."""

from __future__ import annotations

from adp.converters.systems.objects import function_columns, report_content, result_columns
from adp.converters.unwritten_columns import report_columns, report_parts
from adp.converters.writing import is_seen, leave_out, parts_of, spoken_text
from adp_schema import jsontext, media
from adp_schema.extra_column import unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, ToolCall, Trajectory
from adp_schema.parts import JOINT

_STEP = frozenset({"source", "kind", "text", "content"})
_CALL = frozenset({"name", "arguments", "arguments_raw"})
_RESULT = frozenset({"text"})
_SPEAKERS = {"user": "Human", "agent": "Assistant", "system": "System"}


class BracketText:
    """Writes a run as one text: a turn goes on until the other side speaks.

    Args:
        run: the run.
        losses: takes what the text does not say.
    """

    def __init__(self, run: Trajectory, losses: Losses) -> None:
        self._run, self._losses = run, losses

    def whole(self) -> str:
        """The text."""
        turns: list[tuple[str, list[str]]] = []
        for number, step in enumerate(self._run.steps):
            path = f"$.steps[{number}]"
            speaker = _SPEAKERS.get(step.source or "user", "Human")
            words: list[str] = []
            if is_seen(step):
                words = self._step(step, path)
            else:
                leave_out(step, path, self._losses)
            for n, row in enumerate(step.observations):
                words += self._result(row, f"{path}.observations[{n}]")
            if turns and turns[-1][0] == speaker:
                turns[-1][1].extend(words)
            elif words:
                turns.append((speaker, words))
        return "\n".join(f"{speaker}: {JOINT.join(words)}" for speaker, words in turns)

    def _step(self, step: Step, path: str) -> list[str]:
        report_columns(step, _STEP, path, self._losses)
        if step.source not in _SPEAKERS:
            self._losses.add(f"{path}.source", f"{step.source} is written as Human")
        text = spoken_text(step, unpack(step.extra))
        parts = parts_of(step, text, unpack(step.extra))
        report_parts(parts, path, self._losses, "text", "reasoning")
        report_content(step, path, self._losses)
        words = [self._words(text)] if text else []
        for index, call in enumerate(step.calls):
            words.append(self._call(call, f"{path}.calls[{index}]"))
        return words

    def _call(self, call: ToolCall, path: str) -> str:
        report_columns(call, function_columns(call, _CALL), path, self._losses)
        arguments = jsontext.raw(call.arguments or "{}")
        if call.arguments is None and call.arguments_raw is not None:
            key = "code" if call.kind == "code" else "input"
            arguments = jsontext.raw(jsontext.text_of({key: self._words(call.arguments_raw)}))
        name = call.name or call.language or ""
        written = jsontext.encode({"name": jsontext.string(name), "parameters": arguments})
        text = jsontext.relayout(written, 0).decode("utf-8")
        return f"[TOOL_CALL]{text}[/TOOL_CALL]"

    def _result(self, row: Observation, path: str) -> list[str]:
        report_content(row, path, self._losses)
        report_columns(row, result_columns(self._run, row, _RESULT), path, self._losses)
        return [self._words(row.text or "")]

    def _words(self, text: str) -> str:
        return media.restore(text, self._run.media)
