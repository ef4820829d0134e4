"""The checks of what was left in texts know what every dialect writes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from adp.converters.text_calls.registry import DIALECTS, dialect
from adp.stores.checks.text_marks import CALL_IN_TEXT, OUTPUT_BEGINS

AUTOMATIC = [name for name in DIALECTS if dialect(name).automatic]
TOO_GENERAL = frozenset({"Response:", "[RESULT]", "Result:"})
"""What also begins the words of people, or is known by a sibling."""


def matches(pattern: str, text: str) -> bool:
    return bool(pc.match_substring_regex(pa.array([text]), pattern)[0].as_py())


@pytest.mark.parametrize("name", AUTOMATIC)
def test_an_action_that_was_left_is_counted(name: str) -> None:
    assert matches(CALL_IN_TEXT, dialect(name).example)


@pytest.mark.parametrize("name", AUTOMATIC)
def test_a_result_that_was_left_is_counted(name: str) -> None:
    for mark in dialect(name).results:
        if mark not in TOO_GENERAL:
            texts = (f"{mark} 1: x", f"{mark} for 'x'] Result: y", f"{mark}: 'f', 'results': 1",
                     f'{mark}: "f", "results": 1')  # fmt: skip
            assert any(matches(OUTPUT_BEGINS, text) for text in texts), mark


def test_words_of_people_are_no_results() -> None:
    for text in ("Result: we won", "The observation deck is open", "[1] is a footnote", "results?"):
        assert not matches(OUTPUT_BEGINS, text)
