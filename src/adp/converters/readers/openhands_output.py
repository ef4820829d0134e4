"""Rows of OpenHands' evaluations (``output.jsonl``): a run, its task, and what came of it.

The history holds events of version 0 or 1, or pairs of an action and its observation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.session import LogReader, SessionLog, first_item, inner, word
from adp.converters.kit.source_object import SourceObject, embedded
from adp.converters.kit.usage import set_totals
from adp.converters.readers import openhands_v0, openhands_v1
from adp.converters.readers.openhands_v0.turns import METRICS
from adp.converters.reading import BRACKET
from adp_schema import jsontext
from adp_schema.protocols import Match


class OpenHandsRow(SessionLog):
    """One row."""

    agent: ClassVar[str | None] = "openhands"

    def line(self, source: SourceObject) -> None:
        """Read the history, and then what the row says about it."""
        self._history(source)
        columns = self.run.columns
        columns["task_id"] = columns["source_id"] = source.name("instance_id")
        metadata = source.child("metadata")
        model = word(metadata.child("llm_config").values, "model") or word(
            metadata.child("llm").values, "model"
        )
        columns["agent_model"] = model or columns.get("agent_model")
        self._outcome(source)
        self._metrics(source)
        issue = inner(source.values, "issue")
        if columns["task_id"] is None and "number" in issue:
            number = bytes(issue["number"]).decode("utf-8")
            columns["task_id"] = f"{word(issue, 'owner')}/{word(issue, 'repo')}#{number}"
        if columns["task_id"] and source.word("instruction"):
            task = {"task_id": columns["task_id"], "instruction": source.text("instruction")}
            self.builder.task(task)
        self.run.extra.update(source.rest())

    def _history(self, source: SourceObject) -> None:
        events: list[Raw] = []
        for item in source.items("history"):
            pair = jsontext.first_byte(item) == BRACKET
            events += jsontext.decode_array(item) if pair else [item]
        if not events:
            return
        first = SourceObject(events[0], "$.history[0]", self.losses)
        new = "kind" in first and "action" not in first.values
        log_class = openhands_v1.OpenHandsSdkLog if new else openhands_v0.OpenHandsLog
        data = jsontext.text_of(events).encode("utf-8")
        log = log_class(replace(self.record, data=data, side_files={}), self.builder, self.losses)
        log.read_lines()
        log.finish()
        self.run = log.run

    def _outcome(self, source: SourceObject) -> None:
        """Success where a report is in the row; the error that ended the run."""
        columns = self.run.columns
        result = source.child("test_result")
        places = [result.child("report"), result.child("result"), source.child("report"), source]
        for place in places:
            value = place.flag("resolved", "success")
            if value is not None:
                columns["success"] = value
                break
        patch = result.text("git_patch") or source.text("git_patch")
        columns["final_answer"] = patch or columns.get("final_answer")
        columns["error_message"] = source.text("error") or columns.get("error_message")

    def _metrics(self, source: SourceObject) -> None:
        metrics = source.json_object("metrics")
        if metrics is None:
            return
        self.run.columns["final_metrics"] = metrics
        set_totals(embedded(metrics, "$.metrics", self.losses), self.run.columns, METRICS)


class OpenHandsRowReader(LogReader):
    """The format ``openhands_output``."""

    name = "openhands_output"
    title = "Rows of OpenHands' evaluations"
    container = "jsonl"
    recognised = "a history of events, beside an instance, an instruction or metrics"
    versions = "reads rows with events of version 0 or 1, and with pairs of events"
    log = OpenHandsRow

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """Events, or pairs of them, in the history."""
        if not {"instance_id", "instruction", "metrics"} & set(record):
            return Match.NO
        event = first_item(record, "history") or first_item(
            {"item": _first(record.get("history"))}, "item"
        )
        old = {"action", "args"} <= set(event) or {"action", "action_risk"} <= set(event)
        pair = openhands_v0.is_event(event) or openhands_v1.is_event(event) or old
        return Match.STAMP if pair else Match.NO


def _first(raw: Raw | None) -> Raw:
    items = jsontext.decode_array(raw) if raw and jsontext.first_byte(raw) == BRACKET else []
    return items[0] if items else Raw(b"null")


CONVERTER = OpenHandsRowReader()
