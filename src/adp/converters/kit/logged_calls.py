"""The calls of a log by their ids, for the objects that later say more of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import (
    CallDraft,
    ObservationDraft,
    StepDraft,
    TrajectoryDraft,
    merge_extra,
)
from adp.converters.kit.source_object import SourceObject
from adp_schema import jsontext

_ARGUMENTS = ("arguments", "arguments_raw", "arguments_kind")


@dataclass(slots=True, eq=False)
class LoggedCall:
    """A call of a log.

    Attributes:
        run: the trajectory that it is in.
        step: the step that it is in.
        draft: the call.
        started: when it was started.
        result: its result.
    """

    run: TrajectoryDraft
    step: StepDraft
    draft: CallDraft
    started: datetime | None = None
    result: ObservationDraft | None = None

    @property
    def index(self) -> int:
        """Its place among the calls of its step."""
        return next(place for place, it in enumerate(self.step.calls) if it is self.draft)

    def link_subagent(self, **columns: Any) -> None:
        """Link the trajectory of the subagent that it started."""
        self.run.link("subagent", self.step, call=self.index, **columns)

    def set_duration(self, end: datetime | None) -> None:
        """Set how long it took, when both times are known."""
        if self.started is not None and end is not None:
            took = end - self.started
            self.draft.columns["duration_ms"] = took.total_seconds() * 1000

    def drop_repeated(self, source: SourceObject, name_key: str, arguments_key: str) -> None:
        """Drop the name and the arguments of an object that says them again."""
        columns, raw = self.draft.columns, source.values.get(arguments_key)
        source.drop_text(name_key, columns.get("name"))
        if raw is not None and jsontext.one_line(raw) == columns.get("arguments"):
            source.drop(arguments_key)

    def replace_arguments(self, source: SourceObject, key: str) -> None:
        """Take the arguments of an update; others that were there before go to ``extra``."""
        columns, changed = self.draft.columns, call_columns(None, None, source.take(key))
        before = {name: columns.pop(name) for name in _ARGUMENTS if name in columns}
        after = {name: changed[name] for name in _ARGUMENTS if name in changed}
        columns.update(after)
        if before and before != after:
            merge_extra(self.draft.extra, {key: before})


class LoggedCalls:
    """The calls of a log, by the trajectory and the id."""

    def __init__(self) -> None:
        self._calls: dict[tuple[int, str], LoggedCall] = {}

    def add(self, run: TrajectoryDraft, step: StepDraft, draft: CallDraft) -> LoggedCall:
        """Note a call; it stands for its id from there on."""
        call = LoggedCall(run, step, draft)
        if (call_id := draft.columns.get("call_id")) is not None:
            self._calls[id(run), call_id] = call
        return call

    def of(self, run: TrajectoryDraft, call_id: str | None) -> LoggedCall | None:
        """The last call of a trajectory with an id."""
        return self._calls.get((id(run), call_id)) if call_id else None

    def all(self) -> list[LoggedCall]:
        """The calls with an id, in their order."""
        return list(self._calls.values())
