"""The report over a folder of files: its answers, and what it calls a difference."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.converters.known_examples import write_example
from tools import formats_report
from tools.formats_report import Answer, compare, name_file

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def data(tmp_path):
    """A folder with files of every sort, and the expected answers."""
    folder = tmp_path / "data"
    folder.mkdir()
    answers = {}
    for name, answer in {
        "chat/booking.jsonl": "read as openai_chat",
        "adp/shop.json": "read as adp_v1",
    }.items():
        target = folder / name.replace("/", "-")
        shutil.copy(EXAMPLES / name, target)
        answers[target.name] = answer
    for name, answer in {
        "android_control": "known: android_control",
        "crush_db": "known: crush_db",
        "json_schema": "no trace: json_schema",
        "text": "no trace: text",
    }.items():
        part = folder / name
        part.mkdir()
        path = write_example(name, part)
        answers[path.relative_to(folder).as_posix()] = answer
    for name, content, answer in (
        ("cut.json", '{"a": [1, 2', "malformed"),
        ("other.json", '{"a": 1}', "unknown"),
        (
            "all_wrong.jsonl",
            '{"messages": [{"role": 7}]}\n',
            "claimed by openai_chat, and not read",
        ),
    ):
        (folder / name).write_text(content, "utf-8")
        answers[name] = answer
    return folder, answers


def test_every_file_gets_its_answer(data):
    folder, expected = data
    assert {path: name_file(folder / path).text for path in expected} == expected


def test_main_compares_with_the_list(data, tmp_path, monkeypatch, capsys):
    folder, expected = data
    listed = tmp_path / "expected.json"

    def run() -> int:
        listed.write_text(json.dumps(expected), "utf-8")
        call = ["formats_report", str(folder), "--expected", str(listed), "--each"]
        monkeypatch.setattr(sys, "argv", call)
        return formats_report.main()

    assert run() == 0
    assert "WRONG" not in capsys.readouterr().out
    expected["other.json"] = "known: codex"
    del expected["cut.json"]
    expected["gone.json"] = "unknown"
    assert run() == 1
    wrong = [line for line in capsys.readouterr().out.splitlines() if line.startswith("WRONG")]
    assert [line.split(":")[0] for line in wrong] == [
        "WRONG cut.json",
        "WRONG other.json",
        "WRONG gone.json",
    ]


def test_the_table_of_a_folder_counts_calls_and_answers():
    folder = EXAMPLES.parent / "tests/converters/readers/examples/codex"
    lines = [line for line in formats_report.folder_table(folder) if line.startswith("|")]
    heads, _, *rows = [line.strip("| ").split(" | ") for line in lines]
    values = [dict(zip(heads, row, strict=False)) for row in rows]
    assert sum(int(it["calls"]) for it in values) >= sum(int(it["answered"]) for it in values) > 0
    assert any(it["agent"].startswith("codex") for it in values)


def test_two_kinds_at_once_are_a_fault(data, monkeypatch):
    folder, _ = data
    kinds = formats_report.kinds_of
    monkeypatch.setattr(formats_report, "kinds_of", lambda head: kinds(head) * 2)
    assert name_file(next((folder / "android_control").iterdir())).text == "two kinds at once"


def test_compare_says_what_differs():
    answers = {"a": Answer("read as x", "used 1 of 1"), "b": Answer("unknown")}
    assert compare(answers, {"a": "read as x", "b": "unknown"}) == []
    assert compare(answers, {"b": "known: y"}) == [
        "a: read as x (used 1 of 1); the list does not have it",
        "b: unknown; expected: known: y",
    ]


def test_the_list_of_expected_answers_names_kinds_that_exist():
    from adp.converters.datasets.catalogue import names
    from adp.converters.known import KNOWN
    from adp.converters.registry import formats

    readers = {*formats, *names()}
    kinds = {("known" if kind.is_trace else "no trace", kind.name) for kind in KNOWN}
    listed = json.loads(formats_report.EXPECTED.read_text("utf-8"))
    assert list(listed) == sorted(listed)
    for answer in set(listed.values()):
        what, _, name = answer.partition(": ")
        reader = answer.removeprefix("read as ").removeprefix("claimed by ")
        reader = reader.removesuffix(", and not read")
        assert (what, name) in kinds or reader in readers or answer in ("malformed", "unknown")
