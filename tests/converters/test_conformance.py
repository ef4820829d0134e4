from __future__ import annotations

import json

import pytest

import adp
from adp.converters.conformance import conformance
from adp.converters.leaves import Leaf
from adp.converters.other_values import SampleValues, other_values
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


CHECKED = """
import json
from datetime import datetime
from adp_schema.protocols import Match

class Checked:
    name, title = "checked", "A text a line, with values that are checked"
    def sniff(self, record):
        return Match.SHAPE if "text" in record else Match.NO
    def read(self, record, builder, losses):
        run = json.loads(record.data)
        for key in ("at", "seen"):
            if run[key] is not None:
                datetime.fromisoformat(run[key])
        if run["mood"] not in ("good", "bad") or run["kind"] != "run" or not 0 <= run["part"] <= 1:
            raise ValueError("not of this format")
        float(run["price"])
        {"yes": 1, "no": 0}[run["state"]]
        columns = {"ended_text": run["seen"], "reward": run["share"]}
        if run["share"] > 1:
            raise ValueError("a share is at most 1")
        builder.trajectory({**columns, "success": run["result"] == "won"})
        if run["result"] not in ("won", "lost"):
            raise ValueError("no result")
        builder.step({"source": "user", "kind": "message", "text": run["text"]})

FORMAT = Checked
"""


def test_a_value_that_is_checked_and_thrown_away_is_lost(tmp_path):
    """Each change must stay valid, or a refusal would pass for a decision."""
    run = {"at": "2026-01-31T09:30:00Z", "seen": "2026-01-31", "mood": "good", "kind": "run",
           "part": 0.5, "price": "1.5", "state": "yes", "share": 1, "result": "won",
           "text": "hello"}  # fmt: skip
    other = {**run, "mood": "bad", "state": "no", "result": "lost", "at": None, "text": "bye"}
    (tmp_path / "checked.py").write_text(CHECKED, encoding="utf-8")
    (tmp_path / "runs.jsonl").write_text(f"{json.dumps(run)}\n{json.dumps(other)}\n", "utf-8")
    report = conformance(f"{tmp_path / 'checked.py'}:FORMAT", [str(tmp_path / "runs.jsonl")])
    assert {path.path.removeprefix("$."): path.outcome for path in report.paths} == {
        **dict.fromkeys(("at", "mood", "part", "price", "state"), "silent"),
        **dict.fromkeys(("seen", "share", "result", "text"), "column"),
        "kind": "refused when changed",
    }


@pytest.mark.parametrize(
    ("value", "other"),
    [
        ("2026-01-31T09:30:00Z", "2026-01-31T09:31:00Z"),
        ("2026-01-31 09:45:00.123+02:00", "2026-01-31 09:30:00.123+02:00"),
        ("20260131T0945", "20260131T0930"),
        ("Sat, 31 Jan 2026 09:45:12 GMT", "Sat, 31 Jan 2026 09:30:12 GMT"),
        ("9:45", "9:30"),
        ("2026-01-31", "2026-01-15"),
        ("2024-02-29", "2024-02-15"),
        ("2026/01/15", "2026/01/16"),
        ("20260131", "20260115"),
        ("1.5", "1.0"),
        ("12", "17"),
        ("hello", "hello-2"),
        (0, 1),
        (1.0, 0.5),
        (0.0, 0.5),
        (True, False),
        (None, "text"),
    ],
)
def test_the_first_change_stays_valid(value, other):
    leaf = Leaf(("x",), "$.x", value)
    results = [*other_values(leaf, SampleValues())]
    assert results[0] == other
    assert value not in results or value in (0, 1)


def test_leaves_of_rejected_records_are_not_tested(tmp_path, named, capsys):
    from adp.cli.main import main

    records = [{"id": 1, "text": "a"}, {"id": 2, "texts": [{"x": 1}, {"x": 2}]}, {"id": 3}]
    file = tmp_path / "some.jsonl"
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records) + "{\n", "utf-8")
    report = conformance(named[0], [str(file)])
    assert (report.records, report.used, report.rejected) == (4, 1, 3)
    assert report.silent() == []
    untested = [path for path in report.paths if path.outcome == "untested"]
    assert [(path.path, path.tried, path.example) for path in untested] == [
        ("$.texts[*].x", 0, "some.jsonl#2")
    ]
    assert main(["conformance", named[0], str(file)]) == 8
    shown, error = capsys.readouterr()
    assert error == "error: 3 records are rejected, and what is in such is not tested\n"
    assert "1 used + 0 skipped + 3 rejected" in shown
    assert "1 path untested: it is only in records that are rejected" in shown


def test_leaves_of_skipped_records_are_listed_and_no_fault(tmp_path, capsys):
    from adp.cli.main import main

    skipping = FORMAT.replace("import Match", "import Match, SkipRecordError").replace(
        "        builder.trajectory",
        "        if 'text' not in run:\n            raise SkipRecordError('it has no text')\n"
        "        builder.trajectory",
    )
    (tmp_path / "skipping.py").write_text(skipping, encoding="utf-8")
    records = [{"id": 1, "text": "a"}, {"id": 2, "settings": {"x": [1, 2]}}]
    file = tmp_path / "some.jsonl"
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")
    name = f"{tmp_path / 'skipping.py'}:FORMAT"
    report = conformance(name, [str(file)])
    outcomes = {path.path: (path.outcome, path.example) for path in report.paths}
    assert outcomes["$.settings.x[*]"] == ("skipped", "some.jsonl#2")
    assert outcomes["$.id"][0] == "column"
    assert main(["conformance", name, str(file)]) == 0
    shown = capsys.readouterr().out
    assert "$.settings.x[*]" in shown
    assert "1 path skipped: it is only in records that are skipped, so it was not tried" in shown


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
