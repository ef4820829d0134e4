"""Wrong values of options in words: they agree with what the options take."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from adp.core.allowed_values import wrong_value


class Options(BaseModel):
    count: int = Field(default=1, ge=1)
    share: float = Field(default=0, ge=0, le=1)
    above: float = Field(default=1, gt=0)
    limit: int | None = Field(default=None, ge=2)
    kind: Literal["a", "b", "c"] = "a"
    flag: bool = False
    names: tuple[str, ...] = ()
    word: str = Field(default="x", min_length=1)


def words(**given: object) -> str | None:
    with pytest.raises(ValidationError) as error:
        Options.model_validate(given)
    return wrong_value(error.value.errors()[0], Options)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"count": "two"}, "count must be a whole number, 1 or more, not 'two'"),
        ({"count": 1.5}, "count must be a whole number, 1 or more, not 1.5"),
        ({"share": 2}, "share must be a number from 0 to 1, not 2"),
        ({"above": 0}, "above must be a number, more than 0, not 0"),
        ({"limit": 1}, "limit must be null or a whole number, 2 or more, not 1"),
        ({"kind": "d"}, "kind must be a, b or c, not 'd'"),
        ({"kind": True}, "kind must be a, b or c, not true"),
        ({"flag": "perhaps"}, "flag must be true or false, not 'perhaps'"),
        ({"names": 3}, "names must be a list, such as [a, b], not 3"),
        ({"word": None}, "word must be a text, not null"),
        ({"names": [3]}, None),
        ({"word": ""}, None),
    ],
)
def test_words(given, text):
    assert words(**given) == text


@given(st.integers(-5, 5) | st.floats(-5, 5).filter(lambda value: value != int(value)))
def test_a_number_is_refused_exactly_where_the_words_say(value):
    if isinstance(value, int) and value >= 1:
        assert Options.model_validate({"count": value}).count == value
    else:
        assert "1 or more" in str(words(count=value))
