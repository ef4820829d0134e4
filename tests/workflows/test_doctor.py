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
    assert (files["run.jsonl"].used, files["run.jsonl"].calls, files["run.jsonl"].paired) == (
        1,
        1,
        0,
    )
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
