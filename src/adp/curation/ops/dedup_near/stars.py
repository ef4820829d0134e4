"""From bands to clusters: candidates, their exact similarity, and stars around anchors.

A cluster is a star: an anchor and documents that are near the anchor itself. Documents that are
only near another member do not belong to it, so no chain of small differences ties unlike ones
together, as connected components do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from adp.curation.ops.dedup_near.shingle_files import ShingleReader
from adp.curation.texts.shingles import BITS

Numbers = np.ndarray[Any, Any]

MOST_PAIRS = 8_000_000
"""With more candidates than this they are not listed all at once."""

_CHUNK = 1 << 17
"""Shingles of pairs that are compared together."""

_PAIRS = 1 << (64 - BITS)
"""Pairs that are compared together at most."""


@dataclass
class Documents:
    """The documents that are compared, in the order in which they would stay.

    Attributes:
        place: number of each in the files of shingles.
        candidates: those that share a band, sorted.
        sketch: lower bytes of the signatures of the candidates.
        task: number of its task; -1 when it may be compared with all.
        reader: their shingles.
        threshold: least Jaccard similarity of a near duplicate.
    """

    place: Numbers
    candidates: Numbers
    sketch: Numbers
    task: Numbers
    reader: ShingleReader
    threshold: float

    def may_match(self, left: Numbers, right: Numbers) -> Numbers:
        """Which pairs are worth comparing: no attempts at one task, and signatures alike enough.

        A number of equal values that a pair at the threshold has in all but one of a million
        cases is asked for (five standard deviations).
        """
        size = self.sketch.shape[1]
        spread = (size * self.threshold * (1 - self.threshold)) ** 0.5
        least = size * self.threshold - 5 * spread
        good: Numbers = (self.task[left] < 0) | (self.task[left] != self.task[right])
        rest = np.flatnonzero(good)
        for part in np.array_split(rest, len(rest) // 100_000 + 1):
            same = (self._sketch_of(left[part]) == self._sketch_of(right[part])).sum(1)
            good[part] = same >= least
        return good

    def _sketch_of(self, documents: Numbers) -> Numbers:
        rows: Numbers = self.sketch[np.searchsorted(self.candidates, documents)]
        return rows

    def jaccard(self, left: Numbers, right: Numbers) -> Numbers:
        """Exact Jaccard similarity of the shingles of pairs."""
        values = np.zeros(len(left), np.float64)
        sizes = self.reader.sizes[self.place]
        both = sizes[left] + sizes[right]
        ends = np.cumsum(both)
        place = 0
        while place < len(left):
            before = ends[place] - both[place]
            stop = int(np.searchsorted(ends, before + _CHUNK, side="right"))
            stop = min(max(stop, place + 1), place + _PAIRS)
            shared = self._shared(left[place:stop], right[place:stop])
            values[place:stop] = shared / (both[place:stop] - shared)
            place = stop
        return values

    def _shared(self, left: Numbers, right: Numbers) -> Numbers:
        """How many shingles the two of each pair share."""
        pieces = []
        known: dict[int, Numbers] = {}
        for number, pair in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
            mark = np.uint64(number << BITS)
            for document in pair:
                if document not in known:
                    known[document] = self.reader.read(int(self.place[document]))
                pieces.append(known[document] | mark)
        keys = np.concatenate(pieces)
        keys.sort()
        twice = keys[1:][keys[1:] == keys[:-1]] >> np.uint64(BITS)
        return np.bincount(twice.astype(np.int64), minlength=len(left))


@dataclass
class NearStars:
    """The clusters.

    Attributes:
        anchor: of each document the anchor of its cluster; an anchor has itself.
        jaccard: similarity to the anchor; 1 for an anchor.
        candidates: pairs that were compared.
    """

    anchor: Numbers
    jaccard: Numbers
    candidates: int = 0


@dataclass
class Buckets:
    """Documents with an equal band, in one array after another.

    Attributes:
        members: documents, those of each bucket in order.
        sizes: members of each bucket, 2 or more.
    """

    members: Numbers
    sizes: Numbers

    @property
    def pairs(self) -> int:
        """Pairs within buckets; a pair counts once for each bucket that it shares."""
        return int((self.sizes * (self.sizes - 1) // 2).sum())


def buckets(bands: Iterable[Numbers]) -> Buckets:
    """Find the documents that share a band.

    Args:
        bands: hashes of each band, a document after the other.
    """
    members, sizes = [np.zeros(0, np.uint32)], [np.zeros(0, np.int64)]
    for band in bands:
        bits = np.uint64(max(len(band) - 1, 1).bit_length())
        number = np.arange(len(band), dtype=np.uint64)
        shared, counts = equal_keys(band >> bits << bits | number, int(bits))
        members.append(shared)
        sizes.append(counts)
    return Buckets(np.concatenate(members), np.concatenate(sizes))


def equal_keys(keys: Numbers, bits: int) -> tuple[Numbers, Numbers]:
    """Find the documents whose keys are equal without their lower bits.

    Args:
        keys: hashes whose lower bits are the number of the document; they are sorted in place.
        bits: how many bits the numbers take.

    Returns:
        Members of the groups of two or more, group after group; and the sizes of the groups.
    """
    keys.sort()
    group = keys >> np.uint64(bits)
    edge = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1], [True]]))
    size = np.diff(edge) if len(keys) else np.zeros(0, np.int64)
    several = np.repeat(size > 1, size)
    members = keys[several] & ((np.uint64(1) << np.uint64(bits)) - np.uint64(1))
    return members.astype(np.uint32), size[size > 1]


def stars(documents: Documents, value: Buckets) -> NearStars:
    """Go through the documents in order; each that is free takes what is near it and free.

    Args:
        documents: what is compared.
        value: candidates. More than `MOST_PAIRS` of them are looked at document by document; the
            clusters are the same.
    """
    total = len(documents.place)
    result = NearStars(np.arange(total), np.ones(total))
    take = _all_pairs if value.pairs <= MOST_PAIRS else _one_by_one
    free = np.ones(total, bool)
    for anchor, others, jaccard in take(documents, value, free, result):
        open_ = free[others]
        if not free[anchor] or not open_.any():
            continue
        taken = others[open_]
        result.anchor[taken] = anchor
        result.jaccard[taken] = jaccard[open_]
        free[taken] = False
    return result


Near = Iterator[tuple[int, Numbers, Numbers]]


def _all_pairs(documents: Documents, value: Buckets, free: Numbers, result: NearStars) -> Near:
    """All documents with those near them that come after; every pair is compared beforehand."""
    left, right = _list_pairs(value, len(documents.place))
    good = documents.may_match(left, right)
    left, right = left[good], right[good]
    result.candidates = len(left)
    jaccard = documents.jaccard(left, right)
    near = jaccard >= documents.threshold
    left, right, jaccard = left[near], right[near], jaccard[near]
    cuts = np.flatnonzero(left[1:] != left[:-1]) + 1
    for start, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(left)], strict=True):
        if start < end:
            yield int(left[start]), right[start:end], jaccard[start:end]


def _list_pairs(value: Buckets, total: int) -> tuple[Numbers, Numbers]:
    """The different pairs of all buckets, sorted, the earlier document first."""
    ends = np.repeat(np.cumsum(value.sizes), value.sizes)
    members = value.members
    keys = [np.zeros(0, np.int64)]
    first, distance = np.arange(len(members)), 1
    while len(first):
        first = first[first + distance < ends[first]]
        keys.append(members[first].astype(np.int64) * total + members[first + distance])
        distance += 1
    pairs = np.unique(np.concatenate(keys))
    return np.divmod(pairs, max(total, 1))


def _one_by_one(documents: Documents, value: Buckets, free: Numbers, result: NearStars) -> Near:
    """The same for big buckets: only free documents are compared, when their turn comes."""
    starts = np.cumsum(value.sizes) - value.sizes
    ends = starts + value.sizes
    bucket = np.repeat(np.arange(len(value.sizes)), value.sizes)
    by_document = np.argsort(value.members, kind="stable")
    sorted_members = value.members[by_document]
    cuts = np.flatnonzero(np.diff(sorted_members, prepend=-1, append=-1))
    for begin, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        anchor = int(sorted_members[begin])
        if not free[anchor]:
            continue
        shared = bucket[by_document[begin:end]]
        others = np.unique(
            np.concatenate([value.members[starts[item] : ends[item]] for item in shared])
        )
        others = others[(others > anchor) & free[others]]
        alike = np.full(len(others), anchor)
        others = others[documents.may_match(alike, others)]
        result.candidates += len(others)
        jaccard = documents.jaccard(alike[: len(others)], others)
        near = jaccard >= documents.threshold
        yield anchor, others[near], jaccard[near]
