"""The index of what is looked for: n-grams of texts, or lines of patches, of all items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from adp.curation.texts import token_hashes as kernel
from adp.curation.texts.token_hashes import I64, U64, WordHashes

MOST_BITS = 24
"""Bits of the table that says no to most n-grams: 16 MiB of memory."""


@dataclass(frozen=True)
class Index:
    """Parts of items, by their hashes.

    A *part* is an n-gram of an item's text, or a line of its patch. Parts are told by their
    number: the place of their hash in ``hashes``. One part may occur in several items and places.

    Attributes:
        hashes: of all parts, sorted.
        part: of each occurrence: the number of the part.
        item: the item that it occurs in.
        place: where: the number of its first word, or of its line, in the item.
        size: how many words, or lines, of the item it covers.
        lengths: of each item: its words, or its lines that say something.
        sizes: numbers of words that n-grams have; empty for lines.
        line_words: for lines: words that a line must have.
    """

    hashes: U64
    part: I64
    item: I64
    place: I64
    size: I64
    lengths: I64
    sizes: tuple[int, ...] = ()
    line_words: int = 0

    def save(self, path: Path) -> None:
        """Write what `load` reads."""
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        single = np.array([self.line_words, *self.sizes])
        with path.open("wb") as file:
            np.savez(file, single=single, **arrays)

    @staticmethod
    def load(path: Path) -> Index:
        """Read an index."""
        with np.load(path) as stored:
            single = stored["single"].tolist()
            arrays = {name: stored[name] for name in _ARRAYS}
        return Index(**arrays, sizes=tuple(single[1:]), line_words=single[0])

    @property
    def items(self) -> int:
        """Number of items."""
        return len(self.lengths)

    def finder(self) -> HashFinder:
        """What looks up hashes."""
        return HashFinder(self.hashes)

    def parts_of(self, words: WordHashes) -> tuple[U64, I64, I64]:
        """Hashes of all parts of a batch of texts, with their first word and the one after."""
        if not self.sizes:
            hashes, start, end = kernel.lines(words)
            long = end - start >= self.line_words
            return hashes[long], start[long], end[long]
        sizes = [(size, *grams(words, size)) for size in self.sizes]
        return (
            np.concatenate([hashes for _, hashes, _ in sizes]),
            np.concatenate([start for _, _, start in sizes]),
            np.concatenate([start + size for size, _, start in sizes]),
        )

    def without(self, frequent: I64) -> Index:
        """The index without the occurrences of some parts; all parts keep their numbers."""
        return self._kept(~np.isin(self.part, frequent))

    def only(self, items: np.ndarray[Any, np.dtype[np.bool_]]) -> Index:
        """The index without the occurrences in some items; all items keep their numbers."""
        return self._kept(items[self.item])

    def _kept(self, kept: np.ndarray[Any, np.dtype[np.bool_]]) -> Index:
        arrays = {name: getattr(self, name)[kept] for name in ("part", "item", "place", "size")}
        return replace(self, **arrays)


_ARRAYS = ("hashes", "part", "item", "place", "size", "lengths")


class HashFinder:
    """Looks up hashes in a sorted array; a table of bits says no to most of them at once."""

    def __init__(self, hashes: U64) -> None:
        self._hashes = hashes
        bits = min(max(len(hashes).bit_length() + 4, 10), MOST_BITS)
        self._shift = np.uint64(64 - bits)
        self._maybe = np.zeros(1 << bits, np.bool_)
        self._maybe[hashes >> self._shift] = True

    def find(self, hashes: U64) -> tuple[I64, I64]:
        """Which hashes are there.

        Returns:
            Indexes into the argument, and the number of the part of each.
        """
        candidate = np.flatnonzero(self._maybe.take(hashes >> self._shift))
        if not len(candidate):
            return candidate, candidate
        number = np.searchsorted(self._hashes, hashes[candidate])
        number = np.minimum(number, len(self._hashes) - 1)
        same = self._hashes[number] == hashes[candidate]
        return candidate[same], number[same]


def grams(words: WordHashes, size: int) -> tuple[U64, I64]:
    """Hashes and first words of the n-grams that lie within one message.

    A shared prompt before each task would otherwise make n-grams that go from one into the other.
    """
    return kernel.runs(words, size, within=message_of(words))


def message_of(words: WordHashes) -> I64:
    """The message of each word: an n-gram never goes from one message into the next."""
    return words.text


# ---- building -----------------------------------------------------------------------------------


def text_index(texts: Sequence[Sequence[str]], n: int, min_words: int) -> Index:
    """Index the n-grams of items.

    Args:
        texts: the messages of each item.
        n: words of an n-gram.
        min_words: words that a message must have. One with fewer than n words is one n-gram.
    """
    owner = [item for item, messages in enumerate(texts) for _ in messages]
    flat = [message for messages in texts for message in messages]
    results: list[tuple[U64, I64, I64, I64]] = []
    sizes: set[int] = set()
    before = np.zeros(len(texts), np.int64)
    for words in kernel.read_words(flat):
        lengths = np.bincount(words.text, minlength=len(flat))
        item_of = np.array(owner, np.int64)[words.text]
        place = _places(item_of, before)
        full = lengths[words.text]
        present = np.flatnonzero(np.bincount(lengths))
        for size in sorted(
            {min(item, n) for item in present.tolist() if item >= max(min_words, 1)}
        ):
            hashes, start = grams(words, size)
            length = full[start]
            fits = (length == size) if size < n else (length >= max(n, min_words))
            hashes, start = hashes[fits], start[fits]
            if len(hashes):
                sizes.add(size)
                covered = np.full(len(hashes), size)
                results.append((hashes, item_of[start], place[start], covered))
    return _build(results, before, tuple(sorted(sizes)), 0)


def _places(item_of: I64, before: I64) -> I64:
    """Number of each word, or line, in its item.

    ``before``, the number of those of each item in earlier batches, is brought up to date.
    """
    first = np.flatnonzero(np.diff(item_of, prepend=-1))
    counts = np.diff(first, append=len(item_of))
    place = np.arange(len(item_of)) - np.repeat(first, counts)
    place = place + before[item_of]
    before[item_of[first]] += counts
    return place


def patch_index(patches: Sequence[str | None], line_words: int) -> Index:
    """Index the added lines of patches; each occurrence covers one line."""
    flat = [_added(patch) for patch in patches]
    lengths = np.zeros(len(patches), np.int64)
    results: list[tuple[U64, I64, I64, I64]] = []
    for words in kernel.read_words(flat):
        hashes, start, end = kernel.lines(words)
        long = end - start >= line_words
        item = words.text[start[long]]
        place = _places(item, lengths)
        results.append((hashes[long], item, place, np.ones(len(item), np.int64)))
    return _build(results, lengths, (), line_words)


def _added(patch: str | None) -> str:
    """The lines that a unified diff adds."""
    lines = (patch or "").splitlines()
    return "\n".join(line[1:] for line in lines if line[:1] == "+" and line[:4] != "+++ ")


def _build(
    value: Sequence[tuple[U64, I64, I64, I64]],
    lengths: I64,
    sizes: tuple[int, ...],
    line_words: int,
) -> Index:
    nothing = np.empty(0, np.int64)
    hashes = np.concatenate([np.empty(0, np.uint64), *(entry[0] for entry in value)])
    item, place, size = (
        np.concatenate([nothing, *(entry[at] for entry in value)]) for at in (1, 2, 3)
    )
    order = np.lexsort((place, item))
    unique, part = np.unique(hashes[order], return_inverse=True)
    return Index(unique, part, item[order], place[order], size[order], lengths, sizes, line_words)
