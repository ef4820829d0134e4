"""Near-duplicates against all pairs, one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.curation.ops.split import near
from adp.curation.ops.split.near import near_pairs

# Texts share a body and differ in a few shingles, so that many pairs lie near the threshold.
bodies = st.sampled_from([frozenset(range(12)), frozenset(range(6, 20)), frozenset()])
sets = st.builds(
    lambda body, other: body ^ other, bodies, st.frozensets(st.integers(0, 30), max_size=5)
)


def _jaccard(value: frozenset[int], other: frozenset[int]) -> float:
    return len(value & other) / len(value | other)


@pytest.mark.parametrize("elements", [1 << 22, 3])
@given(
    texts=st.lists(sets, max_size=12),
    threshold=st.sampled_from([0.3, 0.5, 0.7, 0.75, 1.0]),
    limit=st.integers(1, 12),
    cut=st.integers(0, 12),
)
def test_all_pairs_are_found_and_no_others(
    elements: int, texts: list[frozenset[int]], threshold: float, limit: int, cut: int
) -> None:
    # The lowest bits are the bucket; here all shingles share a few buckets.
    hashed = [np.array(sorted(text), np.uint64) * np.uint64(1 << 4) for text in texts]

    def chunks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for part in (range(min(cut, len(texts))), range(min(cut, len(texts)), len(texts))):
            number = np.concatenate([np.empty(0, np.int64)]
                                    + [np.full(len(hashed[n]), n) for n in part])  # fmt: skip
            yield number, np.concatenate([np.empty(0, np.uint64)] + [hashed[n] for n in part])

    counts = Counter(shingle for text in texts for shingle in text)
    rare = [frozenset(item for item in text if counts[item] <= limit) for text in texts]
    patch = pytest.MonkeyPatch()
    patch.setattr(near, "_ELEMENTS", elements)
    result = near_pairs(chunks, len(texts), 50, threshold, limit)
    patch.undo()
    assert result.frequent == sum(count > limit for count in counts.values())
    assert result.compared.tolist() == [bool(item) for item in rare]
    assert result.first.tolist() == [
        rare.index(entry) if entry else number for number, entry in enumerate(rare)
    ]
    pairs = zip(result.left.tolist(), result.right.tolist(), result.jaccard.tolist(), strict=True)
    alone = [number for number, entry in enumerate(rare) if entry and rare.index(entry) == number]
    expected = {
        (entry, other): _jaccard(rare[entry], rare[other])
        for place, entry in enumerate(alone)
        for other in alone[place + 1 :]
        if _jaccard(rare[entry], rare[other]) >= threshold
    }
    assert {(entry, other): value for entry, other, value in pairs} == pytest.approx(expected)
