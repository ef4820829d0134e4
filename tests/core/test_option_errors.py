"""Sentences about options that are wrong."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from adp.core.option_errors import names, paths_of, sentence
from adp.core.options import OptionsModel


class Nested(OptionsModel):
    steps: int = 1
    every: int = 1


class Options(OptionsModel):
    name: str = ""
    first: Nested | None = None
    second: Nested = Nested()


def test_paths_name_the_sections():
    assert sorted(paths_of(Options)) == [
        "first", "first.every", "first.steps", "name", "second", "second.every", "second.steps",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"steps": 2}, "steps is not known; did you mean first.steps?"),
        ({"second": {"step": 2}}, "second.step is not known; did you mean second.steps?"),
        ({"nome": "x"}, "nome is not known; did you mean name?"),
    ],
)
def test_an_unknown_name_is_shown_where_it_stands(given, words):
    with pytest.raises(ValidationError) as caught:
        Options.model_validate(given)
    assert sentence(caught.value, names(Options), paths_of(Options)) == words
