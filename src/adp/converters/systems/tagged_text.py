"""A run of any format as one text in the tags of ET-Agent."""

from __future__ import annotations

import json

from adp.converters.systems.objects import report_content, result_columns
from adp.converters.unwritten_columns import report_columns, report_parts
from adp.converters.writing import is_seen, leave_out, parts_of, spoken_text
from adp_schema import media
from adp_schema.extra_column import unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, ToolCall, Trajectory

_STEP = frozenset({"source", "kind", "text", "reasoning", "content"})
_CALL = frozenset({"kind", "name", "arguments", "arguments_raw"})
_RESULT = frozenset({"text"})
_QUERY = ("query", "q", "question")
_CODE = ("code", "source", "script", "command")


class TaggedText:
    """Writes steps as one text.

    Args:
        run: the run that they are of.
        losses: takes what the tags do not say.
        root: path of the run.
    """

    def __init__(self, run: Trajectory, losses: Losses, root: str) -> None:
        self._run, self._losses, self._root = run, losses, root

    def of(self, steps: list[Step], place: int) -> str:
        """The text.

        Args:
            steps: steps after the question.
            place: index of the first one in the run.
        """
        out: list[str] = []
        last = max((n for n, step in enumerate(steps) if step.source == "agent"), default=-1)
        for number, step in enumerate(steps):
            path = f"{self._root}.steps[{place + number}]"
            if not is_seen(step):
                leave_out(step, path, self._losses)
            elif step.source == "agent":
                out += self._turn(step, path, is_last=number == last)
            else:
                report_columns(step, frozenset(), path, self._losses)
                report_content(step, path, self._losses)
            for n, row in enumerate(step.observations):
                out += self._result(row, f"{path}.observations[{n}]")
        return "\n".join(piece for piece in out if piece)

    def _turn(self, step: Step, path: str, *, is_last: bool) -> list[str]:
        report_columns(step, _STEP, path, self._losses)
        spoken = spoken_text(step, unpack(step.extra)) or ""
        parts = parts_of(step, spoken, unpack(step.extra))
        report_parts(parts, path, self._losses, "text", "reasoning")
        report_content(step, path, self._losses)
        out = []
        if step.reasoning:
            out.append(f"<think>\n{self._words(step.reasoning)}\n</think>")
        text = self._words(spoken)
        if is_last and not step.calls and "<answer>" not in text:
            text = f"<answer>\n{text}\n</answer>"
        out.append(text)
        for index, call in enumerate(step.calls):
            out.append(self._call(call, f"{path}.calls[{index}]"))
        return out

    def _call(self, call: ToolCall, path: str) -> str:
        """A call in its tags; one of another tool is reported."""
        query = _argument(call, _QUERY) if (call.name or "").endswith("search") else None
        is_code = call.kind == "code" or (call.name or "") in ("python", "code_interpreter")
        code = _argument(call, _CODE) if is_code and call.language in (None, "python") else None
        if query is not None and not is_code:
            self._report(call, path, _CALL | {"language"}, "search", "function")
            return f"<search>{self._words(query)}</search>"
        if code is not None:
            self._report(call, path, _CALL | {"language"}, "python", "code")
            return f"<python>{self._words(code)}</python>"
        report_columns(call, frozenset(), path, self._losses)
        for column in ("name", "arguments", "arguments_raw"):
            if getattr(call, column) is not None:
                self._losses.add(f"{path}.{column}", "there are tags for search and python only")
        return ""

    def _report(
        self, call: ToolCall, path: str, carried: frozenset[str], tag: str, kind: str
    ) -> None:
        """Report what the tag of a call does not say."""
        report_columns(call, carried, path, self._losses)
        if call.name not in (None, tag):
            self._losses.add(f"{path}.name", f"it is written as {tag}")
        if call.kind not in (None, kind):
            self._losses.add(f"{path}.kind", f"a call of {tag} is one of kind {kind}")

    def _result(self, row: Observation, path: str) -> list[str]:
        report_content(row, path, self._losses)
        report_columns(row, result_columns(self._run, row, _RESULT), path, self._losses)
        return [f"<result>\n{self._words(row.text or '')}\n</result>"]

    def _words(self, text: str) -> str:
        return media.restore(text, self._run.media)


def _argument(call: ToolCall, keys: tuple[str, ...]) -> str | None:
    """The only text among the arguments, or the raw ones."""
    if call.arguments is None:
        return call.arguments_raw
    try:
        values = json.loads(call.arguments)
    except ValueError:
        return None
    if isinstance(values, str):
        return values
    named = [key for key in keys if isinstance(values, dict) and isinstance(values.get(key), str)]
    if len(named) != 1 or len(values) != 1:
        return None
    text: str = values[named[0]]
    return text
