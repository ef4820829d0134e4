"""What session logs share: tables of lines, headers, steps with their line, calls by id, totals."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import ClassVar

import pytest

from adp.converters.kit.chat import add_call
from adp.converters.kit.drafts import StepDraft
from adp.converters.kit.key_tables import copy_words, exit_code, take_columns
from adp.converters.kit.logged_calls import LoggedCalls
from adp.converters.kit.session import SessionLog
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.tree import split
from adp.converters.kit.usage import RunningTotals
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.protocols import RawRecord


class Bakery(SessionLog):
    """A log with a line of each kind."""

    agent = "baker"
    id_key = "id"
    parent_key = "after"
    constants = ("oven",)
    handlers: ClassVar = {"open": "header", "say": "say"}
    notes: ClassVar = {"fire": {"error_type": "data.kind"}}
    edits: ClassVar = {"sweep": ("replace", "left")}

    def header(self, source: SourceObject) -> None:
        if self.is_first_header(source, "id"):
            self.run.extra.update(source.rest())

    def say(self, source: SourceObject) -> None:
        step = self.begin_step(source, source.text("who") or "user")
        self.blocks.take_text(source, step.parts, "text")
        self.end_step(source, step)


def read(*lines: dict) -> Bakery:
    losses = Losses()
    data = json.dumps(list(lines)).encode()
    record = RawRecord(data, "bakery.jsonl", 1, 0, len(data))
    log = Bakery(record, RowBuilder(), losses)
    log.read_lines()
    return log


def source(**values: object) -> SourceObject:
    return SourceObject(json.dumps(values).encode(), "$", Losses())


def plain(extra: dict) -> dict:
    return json.loads(json.dumps(extra, default=lambda raw: json.loads(bytes(raw))))


def test_tables_say_what_lines_become():
    log = read(
        {"type": "open", "id": "s", "oven": 1},
        {"type": "say", "id": "a", "text": "Bread!", "timestamp": "2026-01-02T03:04:05Z"},
        {"type": "say", "id": "b", "who": "agent", "text": "Soon.", "after": "a", "oven": 2},
        {"type": "fire", "data": {"kind": "smoke"}, "oven": 1},
        {"type": "sweep", "left": "crumbs"},
        {"type": "open", "id": "other"},
        {"type": "cake"},
    )
    steps = log.run.steps
    expected = {"source_id": "s", "session_id": "s", "error_type": "smoke"}
    assert log.run.columns == {"agent_name": "baker", **expected}
    assert [(it.columns["source"], it.columns["kind"]) for it in steps] == [
        ("user", "message"), ("agent", "llm_turn"), ("environment", "event"),
        ("system", "context_edit"), ("environment", "event"), ("environment", "event")]  # fmt: skip
    assert steps[0].columns["timestamp"] == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert plain(steps[1].extra) == {"oven": 2}  # the parent is the step before
    assert plain(steps[2].extra) == {"type": "fire", "data": {"kind": "smoke"}}
    assert (steps[3].columns["edit_summary"], plain(steps[3].extra)) == (
        "crumbs",
        {"type": "sweep"},
    )
    assert plain(steps[4].extra) == {"type": "open"}
    assert log.losses.unknown_items == ["record type cake"]
    assert plain(log.run.extra) == {"oven": 1}


def test_columns_are_taken_by_their_type():
    item, columns = source(n=7, t=1767323045, d=1.5, m=3, ok=False), {}
    take_columns(item, columns, {"native_id": "n", "timestamp": ("x", "t"), "duration_ms": "d",
                                 "model": "m", "is_error": "ok"})  # fmt: skip
    assert (columns["native_id"], columns["duration_ms"], columns["is_error"]) == ("7", 1.5, False)
    assert columns["timestamp"] == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert "model" not in columns
    assert plain(item.rest()) == {"m": 3}


def test_words_and_peeks_stay():
    item, columns = source(a={"b": "word", "list": ["x", 1, "y"]}), {"stop_reason": "old"}
    copy_words(item, columns, {"error_type": "a.b", "stop_reason": "a.none"})
    assert columns == {"error_type": "word", "stop_reason": None}
    assert item.peek("a").words("list") == ["x", "y"]
    assert item.peek("a").text("b") == item.child("a").text("b") == "word"
    assert item.peek("a").word("b") == ""
    assert exit_code(source(), source(exitCode=3)) == 3
    rows = source(parts='[{"a":1}]', broken="[1", words='"x"')
    assert [plain(it.rest()) for it in rows.parsed_objects("parts")] == [{"a": 1}]
    assert rows.parsed_objects("broken") == rows.parsed_objects("words") == []
    assert plain(rows.rest()) == {"broken": "[1", "words": '"x"'}


def test_what_counts_grew_by():
    totals, columns = RunningTotals(), {"total_tokens_out": 9}
    assert totals.grown({"tokens_in": 5, "tokens_out": 2}) == {"tokens_in": 5, "tokens_out": 2}
    assert totals.grown({"tokens_in": 8, "tokens_out": 1}) == {"tokens_in": 3}
    totals.finish(columns)
    assert columns == {"total_tokens_in": 8, "total_tokens_out": 9}


@pytest.mark.parametrize(("count", "place"), [(0, None), (1, 2), (2, 0), (3, None)])
def test_a_rollback_keeps_what_is_before_the_last_prompts(count, place):
    run = read({"type": "say", "text": "1"}, {"type": "say", "who": "agent"},
               {"type": "say", "text": "2"}).run  # fmt: skip
    edit = run.step("user", "context_edit")
    run.roll_back(edit, count)
    assert edit.columns.get("edit_to") is (None if place is None else run.steps[place])


def test_calls_by_id_take_what_events_say_later():
    run, calls = read({"type": "say", "who": "agent"}).run, LoggedCalls()
    step = run.steps[0]
    step.call({"call_id": "first", "name": "other"})
    call = calls.add(run, step, add_call(source(id="c", name="bake", arguments={"n": 1}), step))
    assert calls.of(run, "c") is call
    assert calls.of(read({"type": "cake"}).run, "c") is calls.of(run, None) is None
    call.link_subagent(target_id="s")
    assert run.links[0].columns == {"kind": "subagent", "call": 1, "target_id": "s"}
    event = source(tool="bake", input={"n": 1}, more=2)
    call.drop_repeated(event, "tool", "input")
    assert plain(event.rest()) == {"more": 2}
    call.replace_arguments(source(input={"n": 2}), "input")
    assert call.draft.columns["arguments"] == '{"n": 2}'
    assert call.draft.extra == {"input": {"arguments": '{"n": 1}', "arguments_kind": "object"}}


def test_a_call_of_the_content_stands_once_and_equal_ids_of_a_list_twice():
    step = StepDraft({})
    step.call({"call_id": "c", "name": "bake"})
    known = list(step.calls)
    for _ in range(2):
        add_call(source(id="c", type="function", function={"name": "bake"}), step, known)
        add_call(source(id="d", type="function", function={"name": "bake"}), step, known)
    assert [call.columns["call_id"] for call in step.calls] == ["c", "d", "d"]


def test_a_line_without_an_id_makes_no_branch():
    """It stands behind the entry that it comes after, also where two lines leave that one."""
    ids = ["a", "b", None, "c", "d", None]
    line = split(ids, [None, "a", None, "b", "b", None])
    assert line.entries == [0, 1, 2, 4, 5]
    assert [(branch.entries, branch.after) for branch in line.branches] == [([3], 2)]
    again = split(["a", "b", "c", "d"], [None, "a", "ROOT", "c"], root="ROOT")
    assert again.entries == [2, 3]
    assert [(branch.entries, branch.after) for branch in again.branches] == [([0, 1], None)]
