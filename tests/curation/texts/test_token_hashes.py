"""Words and runs of words, against plain loops over characters."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.curation.texts import token_hashes as kernel
from adp.curation.texts.token_hashes import lines, read_words, runs

pieces = st.sampled_from([*"aBbXéÉİ世界かกไकि9² \n\r-_.😀\u200b\u2019", "xyz"])
texts = st.lists(pieces, max_size=30).map("".join)


def _small(character: str) -> str:
    small = character.lower()
    return small if len(small) == 1 else character


def _kind(character: str) -> str:
    if unicodedata.category(character)[0] not in "LNM":
        return "separator"
    code = ord(character)
    if any(low <= code <= high for low, high in kernel._ALONE_RANGES):
        return "alone"
    return "word"


def plain_words(text: str) -> list[tuple[str, int, int, int]]:
    """Word, first character, the one after the last, line: as a reader would cut them."""
    results: list[tuple[str, int, int, int]] = []
    open_word = False
    line = 0
    for place, character in enumerate(text):
        kind = _kind(character)
        if kind == "word" and open_word:
            word, start, _, at = results[-1]
            results[-1] = (word + _small(character), start, place + 1, at)
        elif kind != "separator":
            results.append((_small(character), place, place + 1, line))
        open_word = kind == "word"
        line += character == "\n"
    return results


@given(st.lists(texts | st.none(), max_size=6), st.sampled_from([1, 7, 1000]))
def test_the_words_are_those_of_a_plain_loop(given_texts: list[str | None], batch: int) -> None:
    rows = []
    for words in read_words(given_texts, batch):
        rows += list(
            zip(
                words.hashes.tolist(),
                words.text.tolist(),
                words.start.tolist(),
                words.end.tolist(),
                strict=True,
            )
        )
    plain = [
        (word, number, start, end)
        for number, text in enumerate(given_texts)
        for word, start, end, _ in plain_words(text or "")
    ]
    assert [row[1:] for row in rows] == [row[1:] for row in plain]
    by_word: dict[str, set[int]] = {}
    for (hashed, *_), (word, *_) in zip(rows, plain, strict=True):
        by_word.setdefault(word, set()).add(hashed)
    assert all(len(hashes) == 1 for hashes in by_word.values())
    assert len(set.union(set(), *by_word.values())) == len(by_word)


@given(st.lists(texts, max_size=5), st.integers(1, 5))
def test_runs_stay_within_their_text(given_texts: list[str], size: int) -> None:
    expected = []
    for number, text in enumerate(given_texts):
        results = [word for word, *_ in plain_words(text)]
        expected += [(number, tuple(results[i : i + size])) for i in range(len(results) - size + 1)]
    hashes, numbers = [], []
    for words in read_words(given_texts):
        ours, start = runs(words, size)
        hashes += ours.tolist()
        numbers += words.text[start].tolist()
    assert numbers == [number for number, _ in expected]
    assert len(set(hashes)) == len({run for _, run in expected})
    assert dict(zip(hashes, [run for _, run in expected], strict=True)) == {
        hashed: run for hashed, (_, run) in zip(hashes, expected, strict=True)
    }


@given(st.lists(texts, max_size=5))
def test_lines_are_runs_of_their_words(given_texts: list[str]) -> None:
    expected = []
    for number, text in enumerate(given_texts):
        by_line: dict[int, list[str]] = {}
        for word, _, _, line in plain_words(text):
            by_line.setdefault(line, []).append(word)
        expected += [(number, tuple(words)) for _, words in sorted(by_line.items())]
    results = []
    for words in read_words(given_texts):
        hashes, start, end = lines(words)
        results += list(zip(hashes.tolist(), words.text[start].tolist(), end - start, strict=True))
    assert [(number, len(words)) for number, words in expected] == [
        (number, length) for _, number, length in results
    ]
    pairs = {(hashed, words) for (hashed, *_), (_, words) in zip(results, expected, strict=True)}
    assert len({hashed for hashed, _ in pairs}) == len({words for _, words in pairs}) == len(pairs)


def test_the_same_words_have_the_same_hashes_in_any_company() -> None:
    long = " ".join(f"w{number}" for number in range(5000))
    (alone,) = read_words(["one two three"])
    for company in ([long, "one two three"], ["世界 " + long, "One; TWO -- three!"]):
        result = list(read_words(company, batch=10))
        assert result[-1].hashes.tolist() == alone.hashes.tolist()
    (together,) = read_words([long, "one two three"], batch=1 << 20)
    assert together.hashes[-3:].tolist() == alone.hashes.tolist()
    assert len(np.unique(together.hashes)) == 5003


def test_a_run_is_not_a_line_of_another_length() -> None:
    (words,) = read_words(["a a a a a a"])
    numbers = [runs(words, size)[0][0] for size in range(1, 6)]
    assert len(set(numbers)) == 5


def test_a_word_longer_than_a_piece_counts_by_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernel, "PIECE", 8)
    given_texts = ["abcdefgh", "abcdefghij", "abcdefg", "x " * 20 + "abcdefghijklmnopqrst"]
    hashes = [words.hashes[-1] for words in read_words(given_texts, batch=1)]
    assert hashes[0] == hashes[1] == hashes[3] != hashes[2]
