"""Words of many texts at once, as 64-bit numbers, and runs of words: n-grams, shingles, lines.

A *word* is a run of letters, digits and marks, without regard to case; a character of a script
without spaces between words (Chinese, Japanese, Thai, ...) is a word by itself. Punctuation only
separates.

Hashes are polynomials modulo 2^64 over well mixed values of the characters (for a run: of the
words), so that all words of a batch cost a few passes of numpy: the hash of a word is a difference
of two running sums. They are the same on every machine; two texts share one by chance about once
in 2^64 (Karp and Rabin 1987, "Efficient randomized pattern-matching algorithms").
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

U64 = np.ndarray[Any, np.dtype[np.uint64]]
I64 = np.ndarray[Any, np.dtype[np.int64]]

BATCH = 1 << 17
"""Characters of a batch, which fit in a cache. A single text may be larger."""

PIECE = 1 << 15
"""Characters that are summed at a time; a longer word counts by its first so many."""

_CHARACTERS = 0x110000
_WORD, _ALONE = 1, 2
_BASE = np.uint64(0x9E3779B97F4A7C15)
_RUN_BASE = np.uint64(0xD6E8FEB86659FD93)
_ALONE_RANGES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


@dataclass(frozen=True)
class WordHashes:
    """The words of a batch of texts, in their order.

    Attributes:
        hashes: of each word.
        text: number of its text among all that were given.
        line: number of its line in the batch.
        start: its first character, counted in its text.
        end: the character after it.
    """

    hashes: U64
    text: I64
    line: I64
    start: I64
    end: I64

    def __len__(self) -> int:
        return len(self.hashes)


def read_words(texts: Sequence[str | None], batch: int = BATCH) -> Iterator[WordHashes]:
    """The words of texts, a batch of texts at a time; a text is never cut.

    Args:
        texts: any texts; null is a text without words.
        batch: characters of a batch.
    """
    first = size = 0
    for number, text in enumerate(texts):
        length = len(text or "")
        if size and size + length > batch:
            yield _words(texts[first:number], first)
            first, size = number, 0
        size += length
    if first < len(texts):
        yield _words(texts[first:], first)


def runs(words: WordHashes, size: int, within: I64 | None = None) -> tuple[U64, I64]:
    """Hashes of all runs of some words of one text (n-grams).

    Args:
        words: a batch.
        size: number of words in a run, n.
        within: what a run must not leave, a number a word; None means its text.

    Returns:
        The hashes, and the index of the first word of each.
    """
    within = words.text if within is None else within
    count = len(words) - size + 1
    if count <= 0:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    start = np.flatnonzero(within[:count] == within[size - 1 :])
    return _between(words.hashes, start, start + size), start


def lines(words: WordHashes) -> tuple[U64, I64, I64]:
    """Hashes of the lines that have words.

    Returns:
        The hashes, the index of the first word of each line, and that after its last one.
    """
    new = np.flatnonzero(np.diff(words.line, prepend=-1))
    end = np.append(new[1:], len(words)) if len(new) else new
    return _between(words.hashes, new, end), new, end


def mixed(values: U64) -> U64:
    """Spread the bits of numbers (the finaliser of splitmix64, Steele et al. 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def distinct(values: I64) -> I64:
    """The different numbers, sorted; for many numbers faster than `numpy.unique`."""
    values = np.sort(values)
    return values[np.flatnonzero(np.diff(values, prepend=values[:1] - 1))]


# ---- words --------------------------------------------------------------------------------------


def _words(texts: Sequence[str | None], first: int) -> WordHashes:
    joined = "\n".join(text or "" for text in texts)
    codes = _codes(joined)
    kinds, values = _tables(codes.dtype == np.uint8)
    kind = kinds.take(codes)
    alone = kind == _ALONE
    inside = kind == _WORD
    before = np.concatenate(([False], inside[:-1]))
    after = np.concatenate((inside[1:], [False]))
    start = np.flatnonzero(alone | (inside & ~before))
    end = np.flatnonzero(alone | (inside & ~after)) + 1
    lengths = np.fromiter((len(text or "") + 1 for text in texts), np.int64, len(texts))
    offsets = np.cumsum(lengths) - lengths
    text = np.repeat(
        np.arange(len(texts)), np.diff(np.searchsorted(start, offsets), append=len(start))
    )
    line = np.searchsorted(np.flatnonzero(codes == ord("\n")), start)
    hashes = _hash_words(codes, values, start, end)
    return WordHashes(hashes, text + first, line, start - offsets[text], end - offsets[text])


def _codes(text: str) -> np.ndarray[Any, Any]:
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), np.uint8)
    return np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32)


def _hash_words(codes: np.ndarray[Any, Any], values: U64, start: I64, end: I64) -> U64:
    end = np.minimum(end, start + PIECE)
    powers, inverse = _powers(int(_BASE), PIECE)
    result = np.empty(len(start), np.uint64)
    done = 0
    while done < len(start):
        base = start[done]
        upto = int(np.searchsorted(end, base + PIECE, side="right"))
        piece = values.take(codes[base : end[upto - 1]])
        sums = np.zeros(len(piece) + 1, np.uint64)
        np.cumsum(piece * powers[: len(piece)], out=sums[1:])
        starts = start[done:upto] - base
        result[done:upto] = (sums[end[done:upto] - base] - sums[starts]) * inverse[starts]
        done = upto
    return mixed(result)


def _between(hashes: U64, start: I64, end: I64) -> U64:
    """Hashes of runs of words; runs of different lengths differ."""
    powers, inverse = _powers(int(_RUN_BASE), 1 << max(len(hashes).bit_length(), 12))
    sums = np.zeros(len(hashes) + 1, np.uint64)
    np.cumsum(hashes * powers[: len(hashes)], out=sums[1:])
    polynomial = (sums[end] - sums[start]) * inverse[start]
    return mixed(polynomial ^ (end - start).astype(np.uint64))


@functools.lru_cache(maxsize=4)
def _powers(base: int, count: int) -> tuple[U64, U64]:
    """Powers of an odd number modulo 2^64, and their inverses, from 0 up."""
    results = []
    for factor in (base, pow(base, -1, 1 << 64)):
        factors = np.full(count, factor, np.uint64)
        factors[0] = 1
        results.append(np.cumprod(factors))
    return results[0], results[1]


@functools.cache
def _tables(ascii_only: bool) -> tuple[np.ndarray[Any, Any], U64]:
    """What kind each character is, and its value; a capital has that of its small letter."""
    count = 128 if ascii_only else _CHARACTERS
    folded = np.arange(count, dtype=np.uint64)
    kinds = np.zeros(count, np.uint8)
    for code in range(count):
        character = chr(code)
        if unicodedata.category(character)[0] in "LNM":
            kinds[code] = _WORD
            small = character.lower()
            if len(small) == 1:
                folded[code] = ord(small)
    for low, high in _ALONE_RANGES:
        if low < count:
            part = kinds[low : high + 1]
            part[part == _WORD] = _ALONE
    return kinds, mixed(folded * _BASE + np.uint64(1))
