"""Rows of examples and of real files; the latter are no part of the project."""

from __future__ import annotations

from pathlib import Path

import pytest

import adp
from tests.fuzz.leaves import read_lines
from tests.fuzz.readers import EXAMPLES, example_records
from tests.samples import ROOT


def example(name, file, line=None):
    """The rows of an example, by table, without what is null."""
    rows = read_lines(name, example_records(EXAMPLES / name / file)[line or 0]).rows
    return {
        table: [{key: value for key, value in row.items() if value is not None} for row in items]
        for table, items in rows.items()
    }


def real(*patterns: str) -> list[Path]:
    """Real files of some patterns; the test is skipped where they are not."""
    paths = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    if not paths:
        pytest.skip(f"the real samples are not there: ../shared/data/{patterns[0]}")
    return paths


def convert(path, folder, name=None):
    """Convert a real file; every record is read. Gives a function that answers SQL."""
    result = adp.convert([str(path)], str(folder), format=name)
    counts = result.manifest.counts
    assert counts.used == counts.records > 0
    return lambda sql: adp.query(str(folder), sql).to_pylist()


def numbers(sql):
    """How many calls, observations, and paired ones a store has."""
    return tuple(
        sql(f"select count(*) n from {what}")[0]["n"]
        for what in ("tool_calls", "observations", "observations where call is not null")
    )
