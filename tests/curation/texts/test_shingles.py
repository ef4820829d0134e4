"""Shingle hashes, against sets of tuples of words."""

from __future__ import annotations

import unicodedata

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.curation.texts import shingles as module
from adp.curation.texts.shingles import Shingled, shingles

Message = list[str]
Shingle = tuple[bytes, ...]

_SEPARATE = "世界のก"


def words(text: str) -> list[bytes]:
    """The words of a text, character by character."""
    results: list[str] = [""]
    for char in text.lower():
        if char in _SEPARATE:
            results += [char, ""]
        elif unicodedata.category(char)[0] in "LMN" or char == "_":
            results[-1] += char
        else:
            results.append("")
    pieces = [word.encode() for word in results if word]
    return [piece[at : at + 32] for piece in pieces for at in range(0, len(piece), 32)]


def expected(document: list[Message], size: int) -> set[Shingle]:
    """The shingles of a document: messages of texts."""
    result: set[Shingle] = set()
    for message in document:
        output = [word for text in message for word in words(text)]
        result |= {tuple(output[at : at + size]) for at in range(len(output) - size + 1)}
        if 0 < len(output) < size:
            result.add(tuple(output))
    return result


def hashed(documents: list[list[Message]], size: int) -> list[set[int]]:
    """What the kernel gives."""
    rows = [
        (seq, number, text)
        for seq, document in enumerate(documents)
        for number, message in enumerate(document)
        for text in message
    ]
    schema = {"seq": pl.Int64, "message": pl.UInt32, "text": pl.String}
    result = shingles(pl.DataFrame(rows, schema=schema, orient="row"), size)
    return _sets(result, len(documents))


def _sets(value: Shingled, documents: int) -> list[set[int]]:
    sets: list[set[int]] = [set() for _ in range(documents)]
    place = 0
    for seq, size in zip(value.seq.tolist(), value.sizes.tolist(), strict=True):
        ours = value.hashes[place : place + size].tolist()
        assert ours == sorted(set(ours))
        assert not sets[seq]
        sets[seq] = set(ours)
        place += size
    assert place == len(value.hashes)
    return sets


texts = st.text(
    st.sampled_from("aAbB1_ -.\néÉß\u0301—" + _SEPARATE), max_size=12
) | st.sampled_from(["", "a" * 70, "ab " * 9, "é" * 40, "the quick brown fox jumps over it"])
documents = st.lists(st.lists(st.lists(texts, min_size=1, max_size=3), max_size=4), max_size=6)


@given(documents, st.integers(1, 5))
def test_hashes_are_those_of_the_sets_of_words(given_: list[list[Message]], size: int) -> None:
    sets = hashed(given_, size)
    slow = [expected(document, size) for document in given_]
    assert [len(item) for item in sets] == [len(item) for item in slow]
    for result, slow_one in zip(sets, slow, strict=True):
        for other, slow_other in zip(sets, slow, strict=True):
            assert len(result & other) == len(slow_one & slow_other)


@given(documents)
def test_blocks_change_nothing(given_: list[list[Message]]) -> None:
    whole = hashed(given_, 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", 8)
        assert hashed(given_, 3) == whole


def _hash(shingle: Shingle, size: int) -> int:
    """The hash of a shingle, number by number."""
    odd, limit = [int(value) for value in module._ODD], 1 << 64
    mixed = len(shingle) if len(shingle) < size else 0
    for place, word in enumerate(shingle):
        count = 0
        for at in range(0, len(word), 8):
            count ^= int.from_bytes(word[at : at + 8], "little")
            count = count * odd[1 if at else 0] % limit
            count ^= count >> 32
        if len(shingle) < size:
            mixed = (mixed * odd[3] + count) % limit
        else:
            mixed = (mixed * odd[2] * (place > 0) + count) % limit
    mixed ^= mixed >> 33
    mixed = mixed * odd[1] % limit
    mixed ^= mixed >> 29
    return mixed * odd[0] % limit >> 12


@given(documents, st.integers(1, 5))
def test_hashes_are_those_of_plain_arithmetic(given_: list[list[Message]], size: int) -> None:
    slow = [{_hash(shingle, size) for shingle in expected(document, size)} for document in given_]
    assert hashed(given_, size) == slow


def test_sums_tell_equal_documents() -> None:
    rows = [(0, 0, "a b c"), (1, 0, "b c d"), (2, 0, "A, b c!")]
    frame = pl.DataFrame(rows, schema=["seq", "message", "text"], orient="row")
    first, second, third = shingles(frame, 2).sums.tolist()
    assert first == third != second
