"""Lines in a pipe are those that rich would print, and cells those that Arrow would cut."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from adp.cli import output
from adp.cli.text import Console, print_lines

WIDTH = 200


def console() -> Console:
    options = {"markup": False, "highlight": False, "emoji": False}
    return Console(width=WIDTH, file=io.StringIO(), **options)


@given(st.text(st.sampled_from("ab \t\n\x07é日"), max_size=30), st.integers(0, 2 * WIDTH))
def test_lines_in_a_pipe_are_those_of_rich(text, length):
    line = "x" * length + text
    plain, rich = console(), console()
    print_lines(plain, [Text(line, "bold")])
    rich.print(Text(line, "bold"), soft_wrap=True)
    # Rich leaves out blanks at the end of a line that is longer than the screen.
    assert [it.rstrip() for it in plain.file.getvalue().split("\n")] == [
        it.rstrip() for it in rich.file.getvalue().split("\n")
    ]


COLUMNS = [
    pa.array(["", None, "é" * 5000, "a"]),
    pa.array([b"", None, b"x" * 5000]),
    pa.array([[], None, list(range(5000))]),
    pa.array([datetime(2026, 3, 1, 10, tzinfo=UTC), None], pa.timestamp("us", tz="UTC")),
    pa.array([1, None]),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_cells_are_cut_as_arrow_cuts_them(column, monkeypatch):
    short = output._beginnings(column)
    monkeypatch.setattr(output, "_FEW", -1)
    assert repr(short) == repr(output._beginnings(column))
    assert all(len(it) <= output.CELL + 1 for it in short if isinstance(it, str | list))
