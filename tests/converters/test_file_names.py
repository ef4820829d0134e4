"""File names from ids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.converters.file_names import MAX_NAME, safe_name, session_name

IDS = ["a/b", "a_b", "../../x", "A", "a", "x" * 500, "x" * 501, "é", "", ".", "con", "a b\n"]


def test_names_are_safe_and_one_for_each_id():
    names = [safe_name(name) for name in [*IDS, safe_name("a/b")]]
    assert len({name.lower() for name in names}) == len(names)
    assert all(len(name) <= MAX_NAME and set(name) & set("/\\\0\n ") == set() for name in names)


@pytest.mark.parametrize("name", ["astropy__astropy-123", "booking-1", "a.b_c-1"])
def test_a_safe_id_is_its_own_name(name):
    assert safe_name(name) == name


@given(st.lists(st.text(max_size=130), unique=True))
def test_no_two_ids_share_a_name(ids):
    assert len({safe_name(name).lower() for name in ids}) == len(ids)


def test_sessions_of_ids_that_look_alike_are_told_apart():
    names = [session_name("run1", None), session_name("run1", "data"),
             session_name("data/run1", "data"), session_name("data/data/run1", "data")]  # fmt: skip
    assert names[2] == "run1"
    assert len(set(names)) == 3  # the first two are one id
