"""Whether an answer is one of those that are right."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.answer_match import judged, number_of, references_of, same_answer
from adp_schema.model import Task


@pytest.mark.parametrize(
    ("answer", "reference", "same"),
    [
        ("42", "42", True),
        ("42.0", "42", True),
        ("1,000", "1000", True),
        ("1,00", "100", False),
        ("-5", "5", False),
        ("-5!", "5", False),
        ("**$1,000.**", "1000", True),
        ("5 apples", "5", False),
        ("\u22125", "-5", True),
        ("0.30000000000000004", "0.3", True),
        ("0.3", "0.31", False),
        ("The answer is 42.", "42", True),
        ("First 7. Answer: **Paris**", "paris", True),
        ("answer: no, the answer is: yes", "yes", True),
        ("The Eiffel Tower!", "eiffel tower", True),
        ("New-York", "New York", False),
        ("", "x", False),
        ("+", "-", False),
        ("", "", True),
        ("1e400", "1e400", True),
        ("1" + "0" * 399, "1.5", False),
    ],
)
def test_answers_are_compared_as_numbers_or_as_normalised_texts(answer, reference, same):
    assert same_answer(answer, reference) is same


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_read_back(value):
    assert number_of(f"{value}") == value
    if isinstance(value, int):
        assert number_of(f"{value:,}") == value


@given(st.text(), st.text())
def test_any_texts_can_be_compared(value, other):
    assert same_answer(value, other) in (True, False)
    assert number_of(value) is None or isinstance(number_of(value), int | float)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        (None, None),
        ("{", None),
        ("[]", None),
        ("[" * 100_000, None),
        ('{"a": 1}', None),
        ('["a", 2, null]', ["a", "2"]),
        ("3.5", ["3.5"]),
        ("true", ["true"]),
    ],
)
def test_references_are_read_from_the_task(answers, expected):
    assert references_of(Task(answers=answers)) == expected


def test_what_cannot_be_judged_is_not_scored_and_no_answer_is_a_failure():
    assert judged(None, "42").success is None
    assert judged(Task(), "42").reward is None
    task = Task(answers=json.dumps(["42", "forty-two"]))
    assert judged(task, "Forty-two").success is True
    assert (judged(task, None).success, judged(task, None).reward) == (False, 0.0)
    assert judged(task, "41").judge == {"expected": ["42", "forty-two"], "found": "41"}
