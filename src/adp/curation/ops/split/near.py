"""Near-duplicate texts, exactly: all pairs whose shingles have at least some Jaccard similarity.

The candidates come from an inverted index over the rarest shingles of each text (prefix filtering:
Bayardo, Ma and Srikant 2007, "Scaling up all pairs similarity search"; Xiao et al. 2008, "Efficient
similarity joins for near duplicate detection"): of two texts with similarity t, any order of all
shingles, and a set of n shingles, the first n - ceil(t n) + 1 hold a common one. Each candidate is
then verified on the whole sets, so nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from adp.curation.texts.token_hashes import I64, U64, distinct, mixed

Floats = np.ndarray[Any, np.dtype[np.float64]]
Chunks = Callable[[], Iterator[tuple[I64, U64]]]
"""Gives, each time it is called, the texts in parts: numbers of texts, sorted, and the different
shingles of each; a text is whole in one part."""

_MOST_BUCKETS = 1 << 22
_ELEMENTS = 1 << 22
_SLACK = 1e-9


@dataclass(frozen=True)
class NearDuplicates:
    """What was found.

    Attributes:
        first: of each text: the first text with the same shingles, which stands for it; itself
            when there is none, or when it has no shingles.
        left: number of a text that stands for itself.
        right: number of another one, greater.
        jaccard: their similarity.
        compared: which texts have shingles that are not frequent.
        frequent: number of shingles that were ignored.
    """

    first: I64
    left: I64
    right: I64
    jaccard: Floats
    compared: np.ndarray[Any, np.dtype[np.bool_]]
    frequent: int


def near_pairs(
    chunks: Chunks, texts: int, shingles: int, threshold: float, limit: float
) -> NearDuplicates:
    """All near-duplicates; of texts with equal shingles, the first stands for all.

    Args:
        chunks: the shingles.
        texts: number of texts.
        shingles: about how many shingles there are; it only sets the memory.
        threshold: Jaccard similarity of a pair, above 0.
        limit: a shingle in more texts than this is ignored.
    """
    counts = np.zeros(min(_MOST_BUCKETS, 1 << shingles.bit_length()), np.int64)
    for _, hashes in chunks():
        counts += np.bincount(_bucket(hashes, counts), minlength=len(counts))
    frequent = _frequent(chunks, counts, limit)
    rare = _Rare(chunks, frequent)
    sizes, signatures = _sets(rare, texts)
    first = _first_alike(sizes, signatures)
    number, hashes = _prefixes(rare, counts, sizes, first, threshold)
    left, right = _candidates(number, hashes, sizes, threshold)
    left, right, jaccard = _verified(rare, left, right, sizes, threshold)
    first = np.where(sizes > 0, first, np.arange(texts))
    return NearDuplicates(first, left, right, jaccard, sizes > 0, len(frequent))


def _bucket(hashes: U64, counts: I64) -> I64:
    return (hashes & np.uint64(len(counts) - 1)).astype(np.int64)


def _frequent(chunks: Chunks, counts: I64, limit: float) -> U64:
    """The shingles in more texts than the limit: counted one by one where a bucket is full."""
    full = counts > limit
    values, times = np.empty(0, np.uint64), np.empty(0, np.int64)
    if full.any():
        for _, hashes in chunks():
            values = np.concatenate([values, digest := hashes[full[_bucket(hashes, counts)]]])
            times = np.concatenate([times, np.ones(len(digest), np.int64)])
            values, where = np.unique(values, return_inverse=True)
            times = np.bincount(where, times, len(values)).astype(np.int64)
    return values[times > limit]


class _Rare:
    """The shingles that are not frequent, part by part."""

    def __init__(self, chunks: Chunks, frequent: U64) -> None:
        self._chunks = chunks
        self._frequent = frequent

    def __iter__(self) -> Iterator[tuple[I64, U64]]:
        for number, hashes in self._chunks():
            if len(self._frequent):
                kept = ~np.isin(hashes, self._frequent)
                yield number[kept], hashes[kept]
            else:
                yield number, hashes


def _sets(rare: _Rare, texts: int) -> tuple[I64, U64]:
    """Number of shingles of each text, and a number that equal sets share."""
    sizes = np.zeros(texts, np.int64)
    signatures = np.zeros(texts, np.uint64)
    for number, hashes in rare:
        sizes += np.bincount(number, minlength=texts)
        np.add.at(signatures, number, mixed(hashes))
    return sizes, signatures


def _first_alike(sizes: I64, signatures: U64) -> I64:
    """For each text the first one with the same shingles."""
    order = np.lexsort((np.arange(len(sizes)), signatures, sizes))
    new = np.ones(len(order), np.bool_)
    new[1:] = (sizes[order][1:] != sizes[order][:-1]) | (
        signatures[order][1:] != signatures[order][:-1]
    )
    first = np.empty(len(order), np.int64)
    first[order] = order[np.flatnonzero(new)][np.cumsum(new) - 1]
    return first


def _prefixes(
    rare: _Rare, counts: I64, sizes: I64, first: I64, threshold: float
) -> tuple[I64, U64]:
    """The rarest shingles of each text: as many as a near-duplicate cannot all lack."""
    lengths = sizes - np.ceil(threshold * sizes - _SLACK).astype(np.int64) + 1
    numbers, result = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    for number, hashes in rare:
        same_number = first[number] == number
        number, hashes = number[same_number], hashes[same_number]
        order = np.lexsort((hashes, counts[_bucket(hashes, counts)], number))
        number, hashes = number[order], hashes[order]
        start = np.searchsorted(number, number)
        kept = np.arange(len(number)) - start < lengths[number]
        numbers.append(number[kept])
        result.append(hashes[kept])
    return np.concatenate(numbers), np.concatenate(result)


def _candidates(number: I64, hashes: U64, sizes: I64, threshold: float) -> tuple[I64, I64]:
    """Pairs with a common shingle and sizes that allow the similarity."""
    order = np.lexsort((number, hashes))
    number, hashes = number[order], hashes[order]
    end = np.searchsorted(hashes, hashes, side="right")
    others = end - np.arange(len(hashes)) - 1
    pairs = np.empty(0, np.int64)
    total = len(sizes)
    done = 0
    before = np.cumsum(others)
    while done < len(others):
        base = before[done - 1] if done else 0
        upto = max(int(np.searchsorted(before, base + _ELEMENTS, side="right")), done + 1)
        times = others[done:upto]
        repeat = np.repeat(np.arange(done, upto), times)
        nth = np.arange(len(repeat)) - np.repeat(np.cumsum(times) - times, times)
        left, right = number[repeat], number[repeat + 1 + nth]
        small = np.minimum(sizes[left], sizes[right])
        large = np.maximum(sizes[left], sizes[right])
        fits = small >= threshold * large - _SLACK
        pairs = distinct(np.concatenate([pairs, left[fits] * total + right[fits]]))
        done = upto
    return pairs // max(total, 1), pairs % max(total, 1)


def _verified(
    rare: _Rare, left: I64, right: I64, sizes: I64, threshold: float
) -> tuple[I64, I64, Floats]:
    """The candidates that are as similar as asked, with their similarity."""
    wanted = np.zeros(len(sizes), np.bool_)
    wanted[left] = wanted[right] = True
    numbers, result = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    for number, hashes in rare:
        bucket = wanted[number]
        numbers.append(number[bucket])
        result.append(hashes[bucket])
    number = np.concatenate(numbers)
    names, rank = np.unique(np.concatenate(result), return_inverse=True)
    keys = np.sort(number * max(len(names), 1) + rank)
    ranks, starts = keys % max(len(names), 1), np.cumsum(sizes * wanted) - sizes * wanted
    common = np.zeros(len(left), np.int64)
    done = 0
    before = np.cumsum(sizes[left])
    while done < len(left):
        base = before[done - 1] if done else 0
        upto = max(int(np.searchsorted(before, base + _ELEMENTS, side="right")), done + 1)
        times = sizes[left[done:upto]]
        pair = np.repeat(np.arange(done, upto), times)
        nth = np.arange(len(pair)) - np.repeat(np.cumsum(times) - times, times)
        key = right[pair] * len(names) + ranks[starts[left[pair]] + nth]
        at = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        common[done:upto] = np.bincount(pair[keys[at] == key] - done, minlength=upto - done)
        done = upto
    jaccard = common / np.maximum(sizes[left] + sizes[right] - common, 1)
    kept = jaccard >= threshold - _SLACK
    return left[kept], right[kept], jaccard[kept]
