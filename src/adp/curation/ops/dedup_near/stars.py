"""From bands to clusters: candidates, their exact similarity, and stars around anchors.

A cluster is a star: an anchor and documents that are near the anchor itself. Documents that are
only near another member do not belong to it, so no chain of small differences ties unlike ones
together, as connected components do.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from adp.curation.ops.dedup_near.shingle_files import ShingleReader
from adp.curation.texts.shingles import BITS

Numbers = np.ndarray[Any, Any]

TURN_PAIRS = 200_000
"""Candidates that are listed at a time; those of one document always are."""

_CHUNK = 1 << 17
"""Shingles of pairs that are compared together."""

_PAIRS = 1 << (64 - BITS)
"""Pairs that are compared together at most."""


@dataclass
class Documents:
    """The documents that are compared, in the order in which they would stay.

    Attributes:
        place: of the candidates, their numbers in the files of their shingles.
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
        sizes = self.reader.sizes
        both = sizes[self.place[left]] + sizes[self.place[right]]
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
        value: candidates.
    """
    total = len(documents.place)
    result = NearStars(np.arange(total), np.ones(total))
    free = np.ones(total, bool)
    for left, right in _turns(value, free):
        good = documents.may_match(left, right)
        left, right = left[good], right[good]
        result.candidates += len(left)
        jaccard = documents.jaccard(left, right)
        near = jaccard >= documents.threshold
        left, right, jaccard = left[near], right[near], jaccard[near]
        cuts = np.flatnonzero(np.diff(left, prepend=-1, append=-1))
        for start, end in itertools.pairwise(cuts.tolist()):
            anchor, others = int(left[start]), right[start:end]
            open_ = free[others]
            if not free[anchor] or not open_.any():
                continue
            taken = others[open_]
            result.anchor[taken] = anchor
            result.jaccard[taken] = jaccard[start:end][open_]
            free[taken] = False
    return result


def _turns(value: Buckets, free: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    """The different pairs of all buckets, sorted, the earlier document first; some at a time.

    Args:
        value: the buckets.
        free: which documents are free; what is not when a turn begins is left out of it.
    """
    order = np.argsort(value.members, kind="stable")
    documents = value.members[order]
    # Members that come after each one in its bucket.
    after = (np.repeat(np.cumsum(value.sizes), value.sizes) - 1 - np.arange(len(order)))[order]
    ends = np.concatenate([[0], np.flatnonzero(np.diff(documents, append=-1)) + 1])
    listed = np.concatenate([[0], np.cumsum(after)])[ends]
    turn = 0
    while turn < len(ends) - 1:
        behind = np.searchsorted(listed, listed[turn] + TURN_PAIRS, "right") - 1
        here = slice(ends[turn], ends[turn := max(int(behind), turn + 1)])
        open_ = free[documents[here]]
        if not open_.any():
            continue
        first, count = order[here][open_], after[here][open_]
        steps = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + 1
        left = np.repeat(documents[here][open_], count)
        right = value.members[np.repeat(first, count) + steps]
        open_ = free[right]
        pairs = left[open_].astype(np.int64) * len(free) + right[open_]
        yield np.divmod(np.unique(pairs), len(free))
