"""What stands between cells."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.csv_delimiters import DELIMITERS, delimiter_of

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)


@given(
    rows=st.integers(2, 4).flatmap(
        lambda width: st.lists(
            st.lists(WORDS, min_size=width, max_size=width), min_size=1, max_size=5
        )
    ),
    delimiter=st.sampled_from(DELIMITERS),
)
def test_a_written_table_is_read_back(rows, delimiter):
    head = [f"column_{number}" for number in range(len(rows[0]))]
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([head, *rows])
    assert delimiter_of(out.getvalue()) == delimiter


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("question;answer\nIs it 1, 2 or 3?;2\nOr 4, 5?;4\n", ";"),
        ("question,answer\nA; b,1\n", ","),
        ("question\nIs it; so?\nNo\n", ","),
        ("question\tanswer\na, b\tc\n", "\t"),
        ("id;question\n1;two;many\n2;x\n", ";"),
        ("", ","),
    ],
)
def test_of_plain_files(text, expected):
    assert delimiter_of(text) == expected
