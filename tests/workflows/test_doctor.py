"""What ``adp doctor`` says of files, against a plain walk over them."""

from __future__ import annotations

import json

import pytest

from adp.cli.main import main
from adp.workflows.doctor import diagnose

HEADER = {"type": "session", "version": 3, "id": "s1", "cwd": "/tmp", "timestamp": "2026-01-01"}
LINES = [
    HEADER,
    {"type": "message", "id": "a", "parentId": None, "message": {"role": "user", "content": "hi"}},
    {
        "type": "message",
        "id": "b",
        "parentId": "a",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "toolCall", "id": "c1", "name": "ls", "arguments": {}},
                {"type": "hologram", "shape": "cube"},
            ],
        },
    },
    {"type": "levitation", "id": "d", "parentId": "b", "height": 3},
]


@pytest.fixture
def folder(tmp_path):
    text = "".join(json.dumps(line) + "\n" for line in LINES)
    (tmp_path / "run.jsonl").write_text(text, encoding="utf-8")
    (tmp_path / "cut.jsonl").write_text(text[:-20], encoding="utf-8")
    (tmp_path / "other.json").write_text('{"a": 1}', encoding="utf-8")
    return tmp_path


def test_counts_unknown_kinds_and_what_is_missing(folder):
    report = diagnose([str(folder)])
    files = {file.source_file: file for file in report.files}
    assert files["run.jsonl"].format == "pi"
    file = files["run.jsonl"]
    assert (file.used, file.calls, file.answered, file.results) == (1, 1, 0, 0)
    assert (file.version, file.agent) == ("3", "pi")
    assert files["other.json"].rejected == 1
    assert files["other.json"].reason
    assert report.counts.balanced()
    assert report.unknown == {"pi: record type levitation": 1, "pi: content block hologram": 2}
    assert any("the line is no JSON" in loss for loss in report.losses)
    (row,) = report.formats
    assert row.calls_without_results == 2
    assert "2 of 2 system prompts" in row.missing()


def test_the_command_names_what_nobody_understands(folder, capsys):
    assert main(["doctor", str(folder)]) == 0
    text = capsys.readouterr().out
    assert "kept, not understood" in text
    assert "record type levitation" in text
    assert "missing 2 of 2 system prompts" in text


def test_a_call_with_two_results_is_answered_once(tmp_path):
    calls = [{"tool_call_id": "c1", "function_name": "ls", "arguments": {}}]
    results = [{"source_call_id": "c1", "content": "a"}, {"source_call_id": "c1", "content": "b"},
               {"content": "by itself"}]  # fmt: skip
    step = {"source": "agent", "message": "", "tool_calls": calls,
            "observation": {"results": results}}  # fmt: skip
    agent = {"name": "a", "version": "2.0"}
    run = {"schema_version": "ATIF-v1.7", "agent": agent, "steps": [step]}
    (tmp_path / "run.json").write_text(json.dumps(run), encoding="utf-8")
    (file,) = diagnose([str(tmp_path / "run.json")]).files
    assert (file.calls, file.answered, file.results) == (1, 1, 3)
    assert (file.version, file.agent) == ("ATIF-v1.7", "a 2.0")
