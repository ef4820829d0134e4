"""Formats of APIs, traces and evaluations that are written too: nothing is lost in silence."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import adp
from adp.converters.files.limits import ConvertLimits
from adp.converters.inputs import collect
from adp.converters.plan import choose
from adp.converters.registry import BUILTIN, formats
from adp.converters.writing import is_seen
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Step, Trajectory
from adp_schema.protocols import SkipRecordError
from tests.conservation import missing
from tests.converters.readers.written_runs import runs, spoken
from tests.converters.strategies import adp_v1_records, openai_records, sts_records
from tests.converters.test_edits import assert_only, first_call, runs_of, write
from tests.effort import examples
from tests.fuzz.cases import make
from tests.fuzz.leaves import read_lines
from tests.fuzz.readers import example_files, example_records
from tests.roundtrip import read_one, write_one
from tools.tables.column_table import column_table
from tools.tables.field_table import load_probe

NAMES = ["anthropic_messages", "inspect", "openai_responses", "otlp"]
MANY = settings(
    max_examples=examples(40),
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def arrives(data: bytes, source: str, target: str) -> None:
    """All that a record says is in what is written of it, or in the report."""
    for run in read_one(formats.get(source), data):
        if not any(map(is_seen, run.steps)):
            continue  # a file without a message is refused
        losses = Losses()
        back = read_one(formats.get(target), write_one(formats.get(target), run, losses))
        assert missing([run], back, losses) == []


@pytest.mark.parametrize("name", NAMES)
@settings(MANY, max_examples=examples(80))
@given(run=runs())
def test_messages_calls_results_and_reasoning_come_back(name, run):
    losses = Losses()
    (back,) = read_one(formats.get(name), write_one(formats.get(name), run, losses))
    assert spoken(back) == spoken(run)
    kinds = (".usage", ".timestamp")  # of which the API asks for a number, known or not
    inside = [it["path"] for it in losses.items if it["path"].startswith("$.steps")]
    assert [path for path in inside if not path.endswith(kinds)] == []


@pytest.mark.parametrize("target", NAMES)
@MANY
@given(data=openai_records())
def test_any_chat_arrives(target, data):
    arrives(data, "openai_chat", target)


@pytest.mark.parametrize("target", NAMES)
@MANY
@given(data=adp_v1_records())
def test_any_record_of_adp_arrives(target, data):
    arrives(data, "adp_v1", target)


@pytest.mark.parametrize("target", NAMES)
@MANY
@given(data=sts_records())
def test_any_session_arrives(target, data):
    arrives(data, "sts", target)


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("source", sorted(BUILTIN))
def test_a_record_with_all_fields_arrives(source, target):
    for record in load_probe(source)["records"]:
        arrives(json.dumps(record).encode(), source, target)


@pytest.mark.parametrize("source", ["claude_code", "codex", "inspect", "langsmith", "otlp", "pi"])
def test_a_mutated_log_arrives(source):
    """What its ``extra`` holds may stand in another place of the target."""
    for number in range(examples(8)):
        data, _ = make(source, 5, number)
        try:
            trajectories = read_lines(source, data).trajectories
        except (RecordError, SkipRecordError):
            continue
        for run in (run for run in trajectories if any(map(is_seen, run.steps))):
            for target in NAMES:
                losses = Losses()
                written = write_one(formats.get(target), run, losses)
                gone = missing([run], read_one(formats.get(target), written), losses)
                assert [piece for piece, _ in gone if piece[0] != "extra"] == [], target


def test_every_column_is_written_or_reported():
    table = column_table({name: formats.get(name) for name in NAMES})
    assert all(word.startswith("written") for word in table["steps.text"].values())


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_recognised(name, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps([load_probe("openai_chat")["example"]]))
    store = adp.convert(tmp_path / "a.json", tmp_path / "store")
    assert adp.export(store, name, tmp_path / "out").records == 1
    files = choose(collect([str(tmp_path / "out")]), None, None, ConvertLimits())
    assert [file.format for file in files] == [name]
    back = adp.convert(tmp_path / "out", tmp_path / "back")
    assert back.manifest.counts.used == 1
    if name == "inspect":  # whose viewer lists no other names
        assert re.match(r"1970-01-01T00-00-00\+00-00_.*json", Path(files[0].source_file).name)
    assert back.manifest.rows("tool_calls") == store.manifest.rows("tool_calls") > 0
    assert back.manifest.rows("observations") == store.manifest.rows("observations") > 0


@settings(MANY, max_examples=examples(80))
@given(run=runs())
def test_spans_with_new_messages_come_back(run):
    record = formats.get("otlp").write(run, Losses(), "new-messages")
    (back,) = read_one(formats.get("otlp"), jsontext.encode(record))
    assert spoken(back) == spoken(run)


@pytest.mark.parametrize("source", [*sorted(BUILTIN), "claude_code", "codex", "inspect", "pi"])
def test_spans_with_new_messages_read_as_those_with_all(source):
    """But for what a repetition of a message says, which is not there."""
    runs = runs_of(source) if source in BUILTIN else real_runs(source)
    for run in runs:
        tables = [spans_again(run, flavour) for flavour in formats.get("otlp").flavours]
        assert tables[0] == tables[1]


def real_runs(source):
    data = example_records(example_files(source)[0])[0]
    return [run for run in read_lines(source, data).trajectories if any(map(is_seen, run.steps))]


def spans_again(run, flavour):
    """The rows of a run that was written as spans, but for ``extra``."""
    record = formats.get("otlp").write(run, Losses(), flavour)
    reading = read_lines("otlp", jsontext.encode(record))
    drop = {"extra", "content", "source_hash", "source_lengths", "trajectory_id", "parent_id"}
    return {
        table: [{key: value for key, value in row.items() if key not in drop} for row in rows]
        for table, rows in reading.rows.items()
    }


def test_spans_with_new_messages_grow_with_the_turns():
    def size(turns, flavour):
        steps = []
        for number in range(0, 2 * turns, 2):
            steps.append(Step(step=number, source="user", kind="message", text="x" * 100))
            steps.append(Step(step=number + 1, source="agent", kind="llm_turn", text="y" * 100))
        run = Trajectory(trajectory_id="d/run", source_format="pi", steps=steps)
        return len(jsontext.encode(formats.get("otlp").write(run, Losses(), flavour)))

    assert size(80, "new-messages") < 2.2 * size(40, "new-messages")
    assert size(80, "all-messages") > 3 * size(40, "all-messages")


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("source", sorted(BUILTIN))
def test_edits_show(source, target):
    before = write(target, runs_of(source))
    run_list = runs_of(source)
    call = first_call(run_list)
    old, call.name = call.name, "another_tool"
    if target != "otlp":  # its spans are named by the tool as well, and all repeat the messages
        assert_only(before, write(target, run_list), old, "another_tool")
    run_list = runs_of(source)
    rows = (row for step in run_list[0].steps for row in step.observations if row.text)
    next(rows).text = "no such result"
    after = write(target, run_list)
    assert after != before
    assert b"no such result" in b"".join(after)
