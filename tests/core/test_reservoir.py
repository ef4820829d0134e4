"""Algorithm R: sizes, the same chance for all, rounds."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.core.reservoir import reservoir


def items(start, end):
    return [(number, f"d/{number}") for number in range(start, end)]


def slow(names, size, seed):
    """Algorithm R, one item after the other."""
    kept = []
    for count, name in enumerate(names, 1):
        if len(kept) < size:
            kept.append(name)
            continue
        text = f"{seed}\0reservoir\0{name}".encode()
        slot = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") * count // 2**64
        if slot < size:
            kept[slot] = name
    return kept


@given(st.integers(0, 40), st.integers(1, 12), st.integers(0, 5))
def test_it_is_algorithm_r(number, size, seed):
    result = reservoir([], items(0, number), 0, size, seed)
    assert [f"d/{item}" for item in result] == slow([n for _, n in items(0, number)], size, seed)
    assert len(result) == min(number, size)


@given(st.lists(st.integers(0, 15), max_size=5), st.integers(1, 12), st.integers(0, 5))
def test_rounds_are_one_stream(rounds, size, seed):
    slots, seen = [], 0
    for number in rounds:
        held = [(slot, f"d/{slot}") for slot in slots]
        slots = reservoir(held, items(seen, seen + number), seen, size, seed)
        seen += number
        assert len(slots) == len(set(slots)) == min(seen, size)
    assert slots == reservoir([], items(0, seen), 0, size, seed)


@pytest.mark.parametrize("cuts", [[30], [10, 20], [4, 6, 5, 15], [25, 5]])
def test_every_item_has_the_same_chance(cuts):
    size, trials, total = 6, 3000, sum(cuts)
    hits = [0] * total
    for seed in range(trials):
        slots, seen = [], 0
        for number in cuts:
            # A store sorts what it holds, so slots change their numbers between rounds.
            held = [(item, f"d/{item}") for item in sorted(slots)]
            slots = reservoir(held, items(seen, seen + number), seen, size, seed)
            seen += number
        for slot in slots:
            hits[slot] += 1
    expected = trials * size / total
    chi_square = sum((hit - expected) ** 2 / expected for hit in hits)
    assert chi_square < 75  # 29 degrees of freedom: once in 10**5; dependence makes it smaller


def test_a_smaller_buffer_is_a_uniform_part_of_the_larger():
    hits = [0] * 10
    for seed in range(2000):
        for item in reservoir(items(0, 10), [], 10, 3, seed):
            hits[item] += 1
    assert sum(hits) == 6000
    assert sum((hit - 600) ** 2 / 600 for hit in hits) < 45
