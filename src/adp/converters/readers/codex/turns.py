"""The model's turns of a Codex log: the items of one call of the model become one step."""

from __future__ import annotations

from typing import Any

from adp.converters.kit.drafts import StepDraft, TrajectoryDraft, merge_extra
from adp.converters.kit.repeats import Repeats
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import OPENAI, set_numbers, set_usage, whole_numbers
from adp.converters.reading import BRACE, begins
from adp_schema import jsontext
from adp_schema.model import Columns


def rest_of(line: SourceObject) -> dict[str, Any]:
    """The keys of a line that no column took, with those of its payload and of the item in that."""
    left = line.rest()
    for key in ("payload", "item"):
        value = left.get(key)
        if isinstance(value, dict):
            del left[key]
            merge_extra(left, value)
    return left


class ModelTurns:
    """Groups items into agent steps, and gives each step its usage, once.

    A report of usage (``token_count`` with a new total, or ``token_usage_record``) ends a call of
    the model. Versions around 0.40 wrote the report before the items of its call. Without
    reports, an item after a result begins a new call.

    Attributes:
        model: model of the turn.
        effort: its reasoning effort.
        reports_first: whether a report stands before the items of its call.
        latest: the last agent step.
        total: the last total of tokens that the log has, as JSON text.
    """

    def __init__(self, run: TrajectoryDraft) -> None:
        self.model: str | None = None
        self.effort: str | None = None
        self.reports_first = False
        self.latest: StepDraft | None = None
        self._run = run
        self._open: StepDraft | None = None
        self._answered = False
        self.total = b""
        self._kind = ""
        self._waiting: tuple[Columns, dict[str, Any]] | None = None
        self._limits = Repeats()

    def item(self) -> StepDraft:
        """The step that an item of the model belongs to."""
        if self._open is None or (self._answered and not self.reports_first):
            step = self._run.step("agent", "llm_turn", model=self.model)
            if self.effort is not None:
                step.columns["reasoning_effort"] = self.effort
            self._open = self.latest = step
            self._answered = False
            if self._waiting is not None:
                columns, extra = self._waiting
                step.columns |= columns
                merge_extra(step.extra, extra)
                self._waiting = None
        return self._open

    def result(self) -> None:
        """A result came back: what the model writes next is another turn."""
        self._answered = True

    def end(self) -> None:
        """The turn is over: the user speaks, or the context changes."""
        self._open = None
        if not self.reports_first:
            return
        self._put_waiting()

    def _put_waiting(self) -> None:
        """Keep the usage of a call whose items are not in the log with an event."""
        if self._waiting is not None:
            columns, extra = self._waiting
            self._waiting = None
            step = self._run.step("environment", "event", visibility="none", **columns)
            merge_extra(step.extra, extra)

    def token_count(self, line: SourceObject, payload: SourceObject) -> None:
        """Take an event ``token_count``; a total that was there before is no new call."""
        info = payload.child("info")
        total = info.values.get("total_token_usage")
        columns: Columns = {}
        if "last_token_usage" in info and (total is None or bytes(total) != self.total):
            columns = self._usage(info, "last_token_usage")
            self.total = b"" if total is None else bytes(total)
        elif payload.child("usage"):
            columns = self._usage(payload, "usage")
        payload.drop("type")
        extra: dict[str, Any] = {}
        self._limits.drop("token_count", payload, extra)
        extra.update(rest_of(line))
        self._report("token_count", columns, extra)

    def usage_record(self, line: SourceObject, payload: SourceObject) -> None:
        """Take a ``token_usage_record``: one response of the API."""
        response = payload.text("response_id")
        columns = self._usage(payload, "usage")
        step = self._report("token_usage_record", columns, rest_of(line))
        step.columns["response_id"] = response

    def _usage(self, source: SourceObject, key: str) -> Columns:
        columns: Columns = {}
        raw = source.values.get(key)
        if begins(raw, BRACE) and (numbers := whole_numbers(raw)):
            columns["usage"] = jsontext.text_of(jsontext.decode_object(raw))
            set_numbers(numbers, columns, OPENAI)
            source.drop(key)
            return columns
        inner = source.child(key)
        values = inner.values.copy()
        if values:
            columns["usage"] = jsontext.text_of(values)
            set_usage(inner, columns, OPENAI)
            inner.drop(*values)
        return columns

    def _report(self, kind: str, columns: Columns, extra: dict[str, Any]) -> StepDraft:
        """Give usage to the step that it is about; without new usage it only adds to ``extra``."""
        named = {kind: extra}
        latest = self.latest
        if not columns or self._is_reported(kind, columns):
            if latest is not None and columns.get("usage", "") != latest.columns.get("usage"):
                extra |= {"usage": jsontext.raw(columns["usage"])} if columns else {}
            if latest is None:
                latest = self._run.step("environment", "event", visibility="none")
            merge_extra(latest.extra, named)
            return latest
        self._kind = kind
        if self.reports_first:
            self._put_waiting()
            self._open, self._waiting = None, (columns, named)
            return self.item() if kind == "token_usage_record" else StepDraft({})
        target = self._open if self._open is not None else latest
        if target is None or "usage" in target.columns:
            target = self._run.step("environment", "event", visibility="none")
        target.columns |= columns
        merge_extra(target.extra, named)
        self._open = None
        return target

    def _is_reported(self, kind: str, columns: Columns) -> bool:
        """Whether a report of the other kind has given this usage to the last step already."""
        step = self.latest
        if step is None or self._open is not None or kind == self._kind:
            return False
        names = ("tokens_in", "tokens_out")
        return "usage" in step.columns and all(
            step.columns.get(name) == columns.get(name) for name in names
        )
