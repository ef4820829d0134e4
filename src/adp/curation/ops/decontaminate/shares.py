"""How much of an item a trajectory holds, without what is frequent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adp.curation.ops.decontaminate.index import Index
from adp.curation.texts.token_hashes import I64, distinct

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Floats = np.ndarray[Any, np.dtype[np.float64]]


def frequent_parts(counts: I64, total: int, share: float, at_least: int) -> I64:
    """Numbers of the parts that stand in too many of some things to say anything.

    Args:
        counts: in how many each part stands.
        total: how many there are.
        share: share of them above which a part is frequent.
        at_least: a part that stands in so many, or fewer, never is.
    """
    return np.flatnonzero(counts > max(share * total, at_least))


def item_counts(index: Index, same: I64) -> I64:
    """In how many different items each part occurs; ``same`` gives equal items one number."""
    pairs = distinct(index.part * index.items + same[index.item])
    return np.bincount(pairs // max(index.items, 1), minlength=len(index.hashes))


@dataclass(frozen=True)
class Hits:
    """Parts that stand in some documents.

    Attributes:
        document: key of the document of each, not negative.
        at: number of its first word, or line, among those of all documents.
        part: number of the part.
    """

    document: I64
    at: I64
    part: I64


class ItemShares:
    """Tells which share of each item some documents hold.

    The words of an item that stand in none but frequent n-grams are left out, in the item and in
    the document. A frequent n-gram of a document counts for its other words where it goes on from
    one that is not frequent, in the document as in the item: there it belongs to a copy of the
    item, not to a prompt that quotes it.

    Args:
        index: all that was looked for.
        frequent: numbers of the parts to ignore.
        least: words or lines that can be compared, of an item that is compared at all.
        count: count the n-grams themselves, in the place of the words in them.
    """

    def __init__(self, index: Index, frequent: I64, least: int, count: bool) -> None:
        self._whole = index
        self._count = count
        self._start = np.cumsum(index.lengths) - index.lengths
        rare = index.without(frequent)
        comparable = _words_before(rare, self._start)
        few = _totals(comparable, index.lengths) < least
        self.index = rare.only(~few)
        """The index without the frequent parts, and without items that cannot be compared."""
        self.lost = np.flatnonzero(few & (comparable_words(index) >= least))
        """Items that could be compared if nothing were frequent."""
        self._before = _words_before(self.index, self._start)
        totals = np.bincount(self.index.item, minlength=index.items)
        self._totals = totals if count else _totals(self._before, index.lengths)
        self._by_part = np.argsort(self.index.part, kind="stable")
        self._parts = self.index.part[self._by_part]
        self._frequent = np.zeros(len(index.hashes), np.bool_)
        self._frequent[frequent] = True

    def of(self, hits: Hits) -> tuple[I64, I64, Floats]:
        """Documents, items and shares: the pairs with anything in common, sorted."""
        document, item, place, size = self._occurrences(hits)
        key = document * max(int(self._whole.lengths.sum()), 1) + self._start[item] + place
        _, once = np.unique(key, return_index=True)
        document, item, place, size = document[once], item[once], place[once], size[once]
        new = np.ones(len(item), np.bool_)
        new[1:] = (document[1:] != document[:-1]) | (item[1:] != item[:-1])
        first = np.flatnonzero(new)
        held = self._held(item, place, size, new)
        amount = np.add.reduceat(held, first) if len(first) else held
        owner = item[first]
        return document[first], owner, amount / self._totals[owner]

    def _held(self, item: I64, place: I64, size: I64, new: Mask) -> I64:
        """What each occurrence adds to those before it, of the same pair."""
        if self._count:
            return np.ones(len(item), np.int64)
        start = self._start[item] + place
        end = start + size
        end[:-1] = np.where(new[1:], end[:-1], np.minimum(end[:-1], start[1:]))
        amount: I64 = self._before[end] - self._before[start]
        return amount

    def _occurrences(self, hits: Hits) -> tuple[I64, I64, I64, I64]:
        """Document, item, place and size of all occurrences that count."""
        first = np.searchsorted(self._parts, hits.part, side="left")
        times = np.searchsorted(self._parts, hits.part, side="right") - first
        row = np.repeat(np.arange(len(hits.part)), times)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times)
        parts = self._by_part[first[row] + nth]
        item, place, size = self.index.item[parts], self.index.place[parts], self.index.size[parts]
        results = [(hits.document[row], item, place, size)]
        if not self._count and self._frequent[hits.part].any():
            for way in (1, -1):
                results += self._going_on(hits, row, item, place, way)
        columns = [np.concatenate([result[at] for result in results]) for at in range(4)]
        return columns[0], columns[1], columns[2], columns[3]

    def _going_on(
        self, hits: Hits, row: I64, item: I64, place: I64, way: int
    ) -> list[tuple[I64, I64, I64, I64]]:
        """Frequent parts that follow, or precede, in the document and in the item."""
        full = self._whole
        parts = max(len(full.hashes), 1)
        order = np.argsort(hits.at * parts + hits.part)
        keys = (hits.at * parts + hits.part)[order]
        slots = self._start[full.item] + full.place  # sorted, as the index is
        open_runs = []
        while len(row):
            place = place + way
            slot = self._start[item] + place
            minimum = np.minimum(np.searchsorted(slots, slot), len(slots) - 1)
            inside = (slots[minimum] == slot) & (full.item[minimum] == item)
            part = full.part[minimum]
            key = (hits.at[row] + way) * parts + part
            near = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            goes_on = inside & self._frequent[part] & (keys[near] == key)
            row, minimum = order[near[goes_on]], minimum[goes_on]
            item, place = full.item[minimum], full.place[minimum]
            open_runs.append((hits.document[row], item, place, full.size[minimum]))
        return open_runs


def comparable_words(index: Index) -> I64:
    """How many words, or lines, of each item stand in a part."""
    start = np.cumsum(index.lengths) - index.lengths
    return _totals(_words_before(index, start), index.lengths)


def _words_before(index: Index, start: I64) -> I64:
    """For each word of all items: how many before it stand in a part; one more at the end."""
    edges = np.zeros(int(index.lengths.sum()) + 1, np.int64)
    first = start[index.item] + index.place
    np.add.at(edges, first, 1)
    np.add.at(edges, first + index.size, -1)
    inside = np.cumsum(edges)[:-1] > 0
    return np.concatenate(([0], np.cumsum(inside)))


def _totals(before: I64, lengths: I64) -> I64:
    end = np.cumsum(lengths)
    total: I64 = before[end] - before[end - lengths]
    return total


def held(share: Floats, threshold: float) -> Mask:
    """Which shares reach the threshold."""
    return share >= threshold
