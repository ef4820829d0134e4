"""Batches, keys and the cache of sums, without a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.curation.training_loss.model_sums import SequencePlace, batches
from adp.curation.training_loss.sequences import AskedTokens
from adp.rollouts.searching.cache import TextCache


def _place(number: int, length: int) -> SequencePlace:
    return SequencePlace(f"{number:04d}", length, lambda: pytest.fail("nothing is loaded"))


@given(st.lists(st.integers(1, 40)), st.integers(1, 100), st.randoms())
def test_batches_hold_each_sequence_once_whatever_their_order(lengths, most, chance):
    places = [_place(number, length) for number, length in enumerate(lengths)]
    made = [[place.key for place in batch] for batch in batches(places, most)]
    assert sorted(key for batch in made for key in batch) == [place.key for place in places]
    for batch in batches(places, most):
        assert len(batch) == 1 or len(batch) * max(place.length for place in batch) <= most
    chance.shuffle(places)
    assert [[place.key for place in batch] for batch in batches(places, most)] == made


def _tokens(ids: list[int], weights: list[float], steps: list[int]) -> AskedTokens:
    return AskedTokens(np.array(ids, np.int32), np.array(weights, np.float32), np.array(steps))


def test_a_key_names_tokens_and_mask_and_not_the_trajectory():
    tokens = _tokens([1, 2, 3, 4], [0, 1, 0, 1], [-1, 3, -1, 5])
    # Other numbers of steps, the same grouping.
    assert tokens.key() == _tokens([1, 2, 3, 4], [0, 1, 0, 1], [-1, 0, -1, 7]).key()
    others = [
        _tokens([1, 2, 3, 5], [0, 1, 0, 1], [-1, 3, -1, 5]),
        _tokens([1, 2, 3, 4], [0, 1, 0, 0.5], [-1, 3, -1, 5]),
        _tokens([1, 2, 3, 4], [0, 1, 1, 0], [-1, 3, 5, -1]),
        _tokens([1, 2, 3, 4], [0, 1, 0, 1], [-1, 3, -1, 3]),
    ]
    assert len({tokens.key(), *(other.key() for other in others)}) == 5


def test_the_first_token_of_a_sequence_follows_nothing():
    tokens = _tokens([1, 2, 3], [1, 1, 0], [0, 0, -1])
    assert tokens.places().tolist() == [1]
    assert _tokens([1], [1], [0]).groups()[0].tolist() == []


def test_many_texts_are_kept_at_once_and_the_first_stay(tmp_path: Path):
    cache = TextCache(tmp_path / "c.db")
    cache.put_all({"a": "1", "b": "2"})
    TextCache(tmp_path / "c.db").put_all({"b": "3", "c": "4"})
    assert cache.some(["a", "b", "c", "d"]) == {"a": "1", "b": "2", "c": "4"}
    assert cache.some([]) == {}
