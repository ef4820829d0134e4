"""Recipes that come with the package: each can be read, and no two claim the same example."""

from __future__ import annotations

import pytest

from adp.converters.datasets import catalogue
from adp.converters.registry import formats


@pytest.mark.parametrize("name", catalogue.names())
def test_every_recipe_is_valid_and_named_as_its_file(name):
    recipe = catalogue.shipped(name).recipe
    assert recipe.name == name
    assert recipe.match


def test_no_recipe_is_called_as_a_format():
    assert not set(catalogue.names()) & set(formats)


def test_all_matches_are_in_one_file():
    """Who changes one runs: make docs."""
    text = (catalogue._folder() / catalogue.MATCHES).read_text(encoding="utf-8")
    assert text == catalogue.matches_text()


def test_the_match_that_is_read_alone_is_that_of_the_recipe():
    signatures = {it.name: it.tests for it in catalogue.signatures()}
    assert set(signatures) == set(catalogue.names())
    for name, tests in signatures.items():
        recipe = catalogue.shipped(name).recipe
        assert [it.keys for it in tests] == [frozenset(it.keys) for it in recipe.match]
        assert [dict(it.values) for it in tests] == [it.values for it in recipe.match]
