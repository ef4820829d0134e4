from __future__ import annotations

import json

import pytest

import adp
from adp.converters.conformance import conformance
from adp_schema.errors import InputError, UsageError

FORMAT = """
import json
from adp_schema.builder import RowBuilder
from adp_schema.protocols import Match

class Lines:
    name, title = "lines", "A text a line"
    def sniff(self, record):
        return Match.SHAPE if "text" in record else Match.NO
    def read(self, record, builder, losses):
        run = json.loads(record.data)
        builder.trajectory({"source_id": str(run["id"])})
        builder.step({"source": "user", "kind": "message", "text": run["text"]})
        if "mood" in run:
            losses.add("$.mood", "no column takes it")
        builder.finish()

FORMAT = Lines
"""
RECORDS = [
    {"id": 1, "text": "a", "mood": {"deep": [1, None]}, "forgotten": {"x": [True]}},
    {"id": 2, "text": "b", "empty": []},
    {"id": 3},
]


@pytest.fixture
def named(tmp_path):
    (tmp_path / "lines.py").write_text(FORMAT, encoding="utf-8")
    text = "".join(json.dumps(record) + "\n" for record in RECORDS)
    (tmp_path / "runs.jsonl").write_text(text, encoding="utf-8")
    return f"{tmp_path / 'lines.py'}:FORMAT", str(tmp_path / "runs.jsonl")


def test_what_is_lost_in_silence_is_found(named):
    format_name, file = named
    report = conformance(format_name, [file])
    assert (report.files, report.records, report.used) == (1, 3, 2)
    assert report.reasons == {"the reader looks for 'text', which is not there (KeyError)": 1}
    outcomes = {path.path: path.outcome for path in report.paths}
    assert outcomes == {
        "$.id": "column",
        "$.text": "column",
        "$.mood.deep[*]": "reported",
        "$.forgotten.x[*]": "silent",
        "$.empty": "silent",
    }
    assert {path.example for path in report.silent()} == {"runs.jsonl#1", "runs.jsonl#2"}


def test_the_command_ends_with_8_when_something_is_silent(named, capsys):
    from adp.cli.main import main

    assert main(["conformance", *named, "--json"]) == 8
    report = json.loads(capsys.readouterr().out)
    assert report["format"] == "lines"
    assert report["paths"][0]["path"] == "$.id"
    assert main(["conformance", *named]) == 8
    assert "2 paths silent: neither kept nor reported" in capsys.readouterr().out


def test_a_format_that_is_only_read(named, tmp_path):
    format_name, file = named
    store = adp.convert(file, tmp_path / "store", format=format_name)
    assert (store.manifest.counts.used, store.manifest.counts.rejected) == (2, 1)
    assert set(store.scan("trajectories").collect()["source_format"]) == {"lines"}
    assert set(store.scan("sources").collect()["source_format"]) == {"lines"}
    with pytest.raises(UsageError, match="lines is a format that is only read"):
        adp.export(store, format_name, tmp_path / "out")


def test_formats_that_come_with_the_package_conform(tmp_path):
    chat = {"messages": [{"role": "user", "content": "hi", "x": 1}], "tools": [], "more": None}
    file = tmp_path / "chats.jsonl"
    file.write_text(json.dumps(chat) + "\n", encoding="utf-8")
    assert conformance("openai_chat", [str(file)]).silent() == []


@pytest.mark.parametrize(
    "text",
    [
        '{"id": 1e300, "text": "a"}',
        '{"id": 1.7976931348623157e308, "text": "a"}',
        '{"id": NaN, "text": "a \\ud800"}',
        '{"id": 123456789012345678901234567890, "text": "a"}',
    ],
)
def test_numbers_at_the_edge_are_changed_too(named, tmp_path, text):
    format_name, _ = named
    file = tmp_path / "edge.jsonl"
    file.write_text(text + "\n", encoding="utf-8")
    report = conformance(format_name, [str(file)])
    assert (report.used, report.silent()) == (1, [])


def test_records_that_are_no_json_are_counted(named, tmp_path):
    file = tmp_path / "wrong.jsonl"
    deep = "[" * 5000 + "]" * 5000
    file.write_text(f'{{"id": {"9" * 5000}, "text": "a"}}\n{{"id"\n{deep}\n', encoding="utf-8")
    report = conformance(named[0], [str(file)])
    assert (report.records, report.used, sum(report.reasons.values())) == (3, 0, 3)


def test_files_that_belong_to_another_are_read_with_it(tmp_path):
    run = {
        "schema_version": "ATIF-v1.4", "session_id": "s", "agent": {"name": "a", "version": "1"},
        "steps": [{"step_id": 1, "source": "user", "message": "hello"}],
    }  # fmt: skip
    folder = tmp_path / "trial" / "agent"
    folder.mkdir(parents=True)
    (folder / "trajectory.json").write_text(json.dumps(run), encoding="utf-8")
    result = {"trial_name": "t", "verifier_result": {"rewards": {"reward": 1.0}}}
    (tmp_path / "trial" / "result.json").write_text(json.dumps(result), encoding="utf-8")
    report = conformance("atif", [str(tmp_path)])
    assert (report.files, report.records, report.used) == (2, 1, 1)
    assert report.silent() == []


def test_standard_input_is_refused():
    with pytest.raises(InputError, match="standard input"):
        conformance("atif", ["-"])


def test_the_store_does_not_tell_where_the_format_lies(named, tmp_path):
    format_name, file = named
    store = adp.convert(file, tmp_path / "store", format=format_name)
    assert store.manifest.lineage[-1].options["format"] == "lines"
    texts = [path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert not any(b"lines.py" in text for text in texts)
