"""The calls of an ACP log, which updates change by their id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import ObservationDraft, StepDraft, append_extra, merge_extra
from adp.converters.kit.key_tables import exit_code
from adp.converters.kit.logged_calls import LoggedCall, LoggedCalls
from adp.converters.kit.session import SessionLog
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time, time_of
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE
from adp_schema import jsontext
from adp_schema.losses import Losses

_DONE = ("completed", "failed", "cancelled")


class UpdatedCalls:
    """Reads calls and their updates into the trajectory of a session.

    A result is made with the first update that has an output or says that the call is over.
    """

    def __init__(self, log: SessionLog) -> None:
        self.log = log
        self._calls = LoggedCalls()
        self._contents: dict[int, Raw] = {}

    def update(
        self, source: SourceObject, update: SourceObject, step_of: Callable[[], StepDraft]
    ) -> None:
        """Take a call, or what an update says of it.

        Args:
            source: the line.
            update: the update in it.
            step_of: the step that a new call belongs to.
        """
        call_id = update.text("toolCallId") or ""
        known = self._calls.of(self.log.run, call_id)
        if known is None:
            time = time_of(source.values.get("timestamp"))[0]
            step = step_of()
            name = _tool_name(update) or update.text("title")
            columns = call_columns(name, call_id, update.take("rawInput"))
            known = self._calls.add(self.log.run, step, step.call(columns))
            known.started = time or step.columns.get("timestamp")
        elif "rawInput" in update:
            known.replace_arguments(update, "rawInput")
        columns, extra = known.draft.columns, known.draft.extra
        status = update.text("status")
        if status is not None:
            if columns.get("status") is not None:
                append_extra(extra, "statuses", columns["status"])
            columns["status"] = status
        if update.first("content") == BRACKET:
            if (content := self._contents.get(id(known))) is not None:
                merge_extra(extra, {"content": content})
            self._contents[id(known)] = update.values.pop("content")
        if status in _DONE or update.first("rawOutput") not in (0, NULL):
            self._result(known, call_id, source, update)
        if rest := source.rest():
            merge_extra(extra, rest)

    def _result(
        self, known: LoggedCall, call_id: str, source: SourceObject, update: SourceObject
    ) -> None:
        if known.result is None:
            known.result = self.log.run.observe(
                {"name": known.draft.columns["name"]}, answers=call_id
            )
        columns = known.result.columns
        if "timestamp" not in columns:
            take_time(source, columns, "timestamp")
            known.set_duration(columns.get("timestamp"))
        if (code := exit_code(update.peek("rawOutput"))) is not None:
            columns["exit_code"] = code
        if known.draft.columns.get("status") in _DONE:
            columns["is_error"] = known.draft.columns["status"] == "failed"
        if update.first("rawOutput") in (0, NULL):
            return
        if columns.get("structured") is not None:
            before = jsontext.raw(columns["structured"])
            merge_extra(known.result.extra, {"rawOutput": before})
        columns["structured"] = update.json("rawOutput")

    def finish(self) -> None:
        """Give each result the content that its call had at the end."""
        for known in self._calls.all():
            content, result = self._contents.get(id(known)), known.result
            if result is None:
                merge_extra(known.draft.extra, {} if content is None else {"content": content})
                continue
            for item in jsontext.decode_array(content) if content else []:
                self._content(SourceObject(item, "content", self.log.losses), item, result)
            if not content and (text := _printed(result.columns.get("structured"))):
                result.parts.text(self.log.builder.text(text))

    def _content(self, item: SourceObject, raw: Raw, result: ObservationDraft) -> None:
        """An item of the content of a call: content, a diff, or a terminal."""
        if item.word("type") == "content" and item.first("content") == BRACE:
            item.drop("type")
            self.log.blocks.part(item.take_child("content"), result.parts)
            merge_extra(result.extra, item.rest())
        elif item:
            result.parts.opaque(item.rest())
        else:
            result.parts.opaque(jsontext.raw(jsontext.one_line(raw)))


def _tool_name(update: SourceObject) -> str | None:
    """The name of a tool, which agents write beside the title that users see."""
    meta = update.peek("_meta")
    for place in meta.values:
        tool = meta.peek(place)
        if name := tool.word("name") or tool.word("toolName"):
            return name
    return meta.word("toolName") or None


def _printed(structured: Any) -> str | None:
    """The text of a raw output that is one, or has one."""
    if structured is None:
        return None
    raw = jsontext.raw(structured)
    if jsontext.first_byte(raw) == QUOTE:
        return str(jsontext.decode_value(raw))
    output = SourceObject(raw, "rawOutput", Losses())
    names = ("text", "output", "content", "stdout", "message", "error")
    return next((text for name in names if (text := output.word(name))), None)
