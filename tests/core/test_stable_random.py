"""Random numbers that belong to a name."""

from __future__ import annotations

import hashlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adp.core.stable_random import draws


@given(st.integers(), st.lists(st.text()), st.text(max_size=3))
def test_numbers_are_the_hashes(seed, names, salt):
    wanted = [
        int.from_bytes(
            hashlib.blake2b(f"{seed}\0{salt}\0{name}".encode(), digest_size=8).digest(), "big"
        )
        for name in names
    ]
    assert draws(seed, names, salt).tolist() == wanted


def test_seeds_and_salts_give_other_numbers():
    names = [str(number) for number in range(20)]
    results = [draws(0, names), draws(1, names), draws(0, names, "a")]
    assert len({tuple(numbers.tolist()) for numbers in results}) == 3


def test_numbers_are_even_over_their_range():
    result = draws(7, (str(number) for number in range(20_000)))
    counts, _ = np.histogram(result.astype(float) / 2**64, bins=20, range=(0, 1))
    assert ((counts - 1000) ** 2 / 1000).sum() < 60  # chi-square, 19 degrees: once in 10**5


def test_half_a_character_has_a_number():
    assert len(draws(0, ["\ud800"])) == 1
