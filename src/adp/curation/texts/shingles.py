r"""Word shingles of documents, as hashes, by whole arrays.

A word is a run of letters, marks, digits and underscores, in lower case; each character of writing
that sets no spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese) is a word of its own. A word of
more than 32 bytes counts as pieces of 32 bytes. A shingle is n words in a row within one message; a
message of fewer words is one shingle. No shingle goes from one message into the next.

The bytes of many documents are looked at as one array: a table of 256 entries says which bytes
belong to words and makes them small, the ends of the runs are the words, eight bytes at a time are
mixed into the hash of a word, and n of those into the hash of a shingle. The hash has 52 bits, so
that two documents of 10,000 shingles share one by accident in one of 10 million cases. It depends
on nothing but the words: neither on the engine, nor on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

Numbers = np.ndarray[Any, Any]

BITS = 52
"""Bits of the hash of a shingle; those above hold the document while it is sorted."""

_DOCUMENTS = 1 << (64 - BITS)
"""At most so many documents are sorted together."""

_BLOCK = 1 << 18
"""Bytes of text that are looked at together: they stay in the cache."""

_PIECE = 32
"""Bytes of a word; a longer one is cut."""

_ODD = tuple(
    np.uint64(value)
    for value in (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
)
"""Odd numbers to multiply by: those of splitmix64, rrmxmx and xxHash."""

_MASKS = np.array([(1 << (8 * size)) - 1 for size in range(9)], dtype=np.uint64)


_AFTER = bytes(_PIECE + 8)
"""Follows the text, so that a word can be read by whole pieces."""


def _letters() -> bytes:
    """Byte -> the byte in small letters, or 0 when it belongs to no word."""
    table = bytearray(256)
    for byte in range(256):
        char = chr(byte)
        if byte >= 0x80 or char == "_" or char.isalnum():
            table[byte] = byte if byte >= 0x80 else ord(char.lower())
    return bytes(table)


_LETTERS = _letters()

_NO_WORD = r"[^\p{L}\p{M}\p{N}_]+"
_ALONE = r"([\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}])"


@dataclass(frozen=True)
class Shingled:
    """Shingles of documents.

    Attributes:
        seq: ``seq`` of the documents, sorted.
        sizes: how many different shingles each has.
        hashes: their hashes, those of each document sorted, one document after the other.
        sums: a hash of all shingles of each document: documents with the same shingles have the
            same.
    """

    seq: Numbers
    sizes: Numbers
    hashes: Numbers
    sums: Numbers


def shingles(rows: pl.DataFrame, words: int = 5) -> Shingled:
    """The different shingles of each document.

    Args:
        rows: ``seq``, ``message`` and ``text``, as `views` gives them: sorted by ``seq``, and by
            message within it.
        words: words of a shingle.
    """
    seq, first = np.unique(rows["seq"].to_numpy(), return_index=True)
    message = rows["message"].to_numpy()
    new = np.ones(rows.height, bool)
    new[1:] = message[1:] != message[:-1]
    new[first] = True
    data, offsets = _flat(rows["text"])
    sizes: list[Numbers] = []
    hashes: list[Numbers] = []
    sums: list[Numbers] = []
    ends = np.append(first[1:], rows.height)
    for start, end in _blocks(offsets[first], offsets[ends]):
        top, bottom = first[start], ends[end - 1]
        cuts = offsets[top : bottom + 1]
        result, counts = _words(data[cuts[0] : cuts[-1]], cuts - cuts[0])
        heads = np.flatnonzero(new[top:bottom])
        per_message = np.add.reduceat(counts, heads)
        mixed, per_message = _windows(result, per_message, words)
        owner = np.searchsorted(first[start:end] - top, heads, side="right") - 1
        size, kept = _different(mixed, np.repeat(owner, per_message), end - start)
        sizes.append(size)
        hashes.append(kept)
        sums.append(_sums(kept, size))
    nothing = np.zeros(0, np.uint64)
    return Shingled(
        seq,
        np.concatenate([np.zeros(0, np.int64), *sizes]),
        np.concatenate([nothing, *hashes]),
        np.concatenate([nothing, *sums]),
    )


def _blocks(starts: Numbers, ends: Numbers) -> Iterator[tuple[int, int]]:
    """Runs of documents of about `_BLOCK` bytes: first and one past the last."""
    place = 0
    while place < len(starts):
        stop = int(np.searchsorted(ends, starts[place] + _BLOCK, side="right"))
        stop = min(max(stop, place + 1), place + _DOCUMENTS)
        yield place, stop
        place = stop


def _flat(texts: pl.Series) -> tuple[Numbers, Numbers]:
    """All bytes of some texts, and where each starts, and where the last one ends."""
    other = texts.str.len_bytes() != texts.str.len_chars()
    if other.any():
        plain = texts.filter(other).str.to_lowercase().str.replace_all(_NO_WORD, " ")
        plain = plain.str.replace_all(_ALONE, " $1 ")
        places = np.arange(len(texts))
        places[other.to_numpy()] = len(texts) + np.arange(len(plain))
        texts = pl.concat([texts, plain]).gather(places)
    column = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = column.buffers()
    kind = np.int64 if str(column.type) == "large_string" else np.int32
    cuts = np.frombuffer(offsets, kind)[column.offset : column.offset + len(column) + 1]
    flat = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return flat, cuts.astype(np.int64)


def _words(data: Numbers, offsets: Numbers) -> tuple[Numbers, Numbers]:
    """Hashes of the words of some texts, and how many each text has."""
    letters = np.frombuffer((data.tobytes() + _AFTER).translate(_LETTERS), np.uint8)
    inside = letters != 0
    edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    if inside[0]:
        edges = np.append(0, edges)
    # A word ends with its text, even where the next text goes on with a letter.
    cuts = offsets[1:-1]
    glued = np.unique(cuts[inside[cuts - 1] & inside[cuts]])
    if len(glued):
        edges = np.sort(np.concatenate([edges, glued, glued]))
    starts = edges[::2]
    starts, lengths = _cut_long(starts, edges[1::2] - starts)
    counts = np.diff(np.searchsorted(starts, offsets))
    return _word_hashes(letters, starts, lengths), counts


def _cut_long(starts: Numbers, lengths: Numbers) -> tuple[Numbers, Numbers]:
    """Cut words into pieces of `_PIECE` bytes."""
    if not len(lengths) or lengths.max() <= _PIECE:
        return starts, lengths
    pieces = -(-lengths // _PIECE)
    number = np.arange(pieces.sum()) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    before = number * _PIECE
    return (
        np.repeat(starts, pieces) + before,
        np.minimum(np.repeat(lengths, pieces) - before, _PIECE),
    )


def _word_hashes(letters: Numbers, starts: Numbers, lengths: Numbers) -> Numbers:
    """Mix the bytes of each word, eight at a time."""
    # Eight bytes from every place, without copying them.
    eight = np.ndarray((len(letters) - 7,), "<u8", letters, 0, (1,))
    word_hashes = eight[starts]
    word_hashes &= _MASKS[np.minimum(lengths, 8)]
    word_hashes *= _ODD[0]
    word_hashes ^= word_hashes >> np.uint64(32)
    left, done = np.flatnonzero(lengths > 8), 8
    while len(left):
        more = eight[starts[left] + done]
        more &= _MASKS[np.minimum(lengths[left] - done, 8)]
        more ^= word_hashes[left]
        more *= _ODD[1]
        more ^= more >> np.uint64(32)
        word_hashes[left] = more
        done += 8
        left = left[lengths[left] > done]
    return word_hashes


def _windows(numbers: Numbers, counts: Numbers, words: int) -> tuple[Numbers, Numbers]:
    """Hashes of the shingles of messages, and how many each message has.

    Args:
        numbers: hashes of the words of all messages.
        counts: how many words each message has.
        words: words of a shingle.
    """
    total = len(numbers)
    padded = np.append(numbers, np.zeros(words, np.uint64))
    mixed = padded[:total].copy()
    for place in range(1, words):
        mixed *= _ODD[2]
        mixed += padded[place : place + total]
    ends = np.cumsum(counts)
    starts = ends - counts
    keep = np.ones(total, bool)
    for back in range(1, words):
        late = ends - back
        keep[late[late > starts]] = False
    for size in range(1, words):
        short = starts[counts == size]
        alone = np.full(len(short), np.uint64(size))
        for place in range(size):
            alone *= _ODD[3]
            alone += numbers[short + place]
        mixed[short] = alone
    mixed = mixed[keep]
    mixed ^= mixed >> np.uint64(33)
    mixed *= _ODD[1]
    mixed ^= mixed >> np.uint64(29)
    mixed *= _ODD[0]
    return mixed, np.maximum(counts - (words - 1), np.minimum(counts, 1))


def _different(mixed: Numbers, owner: Numbers, documents: int) -> tuple[Numbers, Numbers]:
    """How many different hashes each document has, and those, sorted within the document."""
    keys = mixed >> np.uint64(64 - BITS)
    keys |= owner.astype(np.uint64) << np.uint64(BITS)
    keys.sort()
    if len(keys):
        new = np.ones(len(keys), bool)
        np.not_equal(keys[1:], keys[:-1], out=new[1:])
        keys = keys[new]
    sizes = np.bincount((keys >> np.uint64(BITS)).astype(np.int64), minlength=documents)
    keys &= np.uint64((1 << BITS) - 1)
    return sizes, keys


def _sums(hashes: Numbers, sizes: Numbers) -> Numbers:
    """The sum of the hashes of each document, modulo 2**64."""
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes * _ODD[1])])
    ends = np.cumsum(sizes)
    numbers: Numbers = total[ends] - total[ends - sizes]
    return numbers
