"""The counts of the folders of data sets, against the expected ones and the page."""

from __future__ import annotations

import json
import sys

import pytest

from tests.samples import ROOT
from tools import dataset_folders
from tools.dataset_folders import COUNTED, EXPECTED, PAGE, count, differences, files_of, page

LISTED = json.loads(EXPECTED.read_text("utf-8"))
FOLDERS = sorted({path.rpartition("/")[0] for path in LISTED})


@pytest.mark.parametrize("folder", FOLDERS)
def test_real_files_give_the_expected_counts(folder):
    if not (ROOT / folder).is_dir():
        pytest.skip(f"no samples in {folder}")
    expected = {path: row for path, row in LISTED.items() if path.rpartition("/")[0] == folder}
    assert {path: count(ROOT / path) for path in expected} == expected


def test_every_file_has_counts_or_a_reason():
    for path, row in LISTED.items():
        if row["format"] is None:
            assert "no format recognises it" not in row["reason"], path
        else:
            assert row["records"] == row["used"] + row["skipped"] + row["rejected"], path
            assert row["used"], path
            assert row["runs"] or row["tasks"], path
            assert row["linked"] <= min(row["results"], row["calls"]), path
            assert bool(row["skipped"] + row["rejected"]) == bool(row.get("reason")), path


def test_the_page_has_the_counts():
    assert PAGE.read_text("utf-8") == page(LISTED)


def test_files_that_are_not_listed_are_a_difference(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "datasets" / "boats"
    folder.mkdir(parents=True)
    (folder / "rows.jsonl").write_text('{"question": "q?", "answer": "a"}\n', "utf-8")
    (folder / "ORIGIN.txt").write_text("from nowhere", "utf-8")
    assert files_of(tmp_path) == [folder / "rows.jsonl"]
    monkeypatch.setattr(sys, "argv", ["dataset_folders", str(tmp_path)])
    assert dataset_folders.main() == 1
    assert "datasets/boats/rows.jsonl" in capsys.readouterr().out


def test_differences():
    row = dict.fromkeys(COUNTED, 1)
    assert differences({"a": row}, {"a": row}) == []
    assert len(differences({"a": row}, {"a": {**row, "calls": 2}, "b": row})) == 2
