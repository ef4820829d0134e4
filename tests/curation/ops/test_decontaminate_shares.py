"""Shares of items against a slow reference; patches, ids, layouts of files and bad input."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.curation.apply import apply
from adp_schema.builder import Origin, RowBuilder
from adp_schema.store import Store
from tests.effort import examples
from tests.store_builders import write_store


def store_of(folder: Path, documents: list[list[str]]) -> Store:
    builder = RowBuilder()
    for seq, messages in enumerate(documents):
        builder.begin(Origin(seq=seq, dataset="d", columns={"source_format": "x"}))
        builder.trajectory({"source_id": str(seq)})
        for message in messages:
            builder.step({"source": "user", "kind": "message", "text": message})
        builder.finish()
    return write_store(folder, builder)


# ---- reference ----------------------------------------------------------------------------------

Gram = tuple[str, ...]


def _grams(message: str, size: int) -> list[Gram]:
    words = message.split()
    return [tuple(words[at : at + size]) for at in range(len(words) - size + 1)]


def _item_grams(item: list[str], n: int, least: int) -> list[tuple[int, int, Gram]]:
    """Message, place in it, n-gram."""
    item_grams = []
    for number, message in enumerate(item):
        length = len(message.split())
        if length >= least:
            size = min(n, length)
            item_grams += [(number, at, gram) for at, gram in enumerate(_grams(message, size))]
    return item_grams


def _frequent(
    documents: list[list[str]], items: list[list[str]], n: int, least: int, share: float, some: int
) -> set[Gram]:
    wanted = {gram for item in items for _, _, gram in _item_grams(item, n, least)}
    sizes = {len(gram) for gram in wanted}
    different = {
        tuple(message for message in messages if message) or number
        for number, messages in enumerate(documents)
    }
    counts: Counter[Gram] = Counter()
    for messages in different:
        if isinstance(messages, tuple):
            counts.update({g for m in messages for size in sizes for g in _grams(m, size)})
    kinds = {tuple(" ".join(item).split()) for item in items}
    by_kind: dict[Any, set[Gram]] = {kind: set() for kind in kinds}
    for item in items:
        kind = tuple(" ".join(item).split())
        by_kind[kind] |= {gram for _, _, gram in _item_grams(item, n, least)}
    in_items = Counter(gram for grams in by_kind.values() for gram in grams)
    return {
        gram
        for gram in wanted
        if counts[gram] > max(share * len(different), some)
        or in_items[gram] > max(share * len(kinds), some)
    }


def _share(
    document: list[str], item: list[str], n: int, least: int, frequent: set[Gram]
) -> float | None:
    """The share of the words of an item that a document holds; null when it cannot be compared."""
    grams = {(number, at): gram for number, at, gram in _item_grams(item, n, least)}
    rare = {place for place, gram in grams.items() if gram not in frequent}
    countable = {
        (number, at + more) for number, at in rare for more in range(len(grams[number, at]))
    }
    if len(countable) < least:
        return None
    held: set[tuple[int, int]] = set()
    for message in document:
        for size in {len(gram) for gram in grams.values()}:
            for place, gram in enumerate(_grams(message, size)):
                for where in rare:
                    if grams[where] == gram:
                        held |= _copy(grams, frequent, message, place, where)
    return len(held & countable) / len(countable)


def _copy(
    grams: dict[tuple[int, int], Gram],
    frequent: set[Gram],
    message: str,
    place: int,
    where: tuple[int, int],
) -> set[tuple[int, int]]:
    """The words of the copy that a common rare n-gram belongs to."""
    number, at = where
    size = len(grams[where])
    in_message = _grams(message, size)
    held = {(number, at + more) for more in range(size)}
    for way in (1, -1):
        step = way
        while 0 <= place + step < len(in_message):
            gram = grams.get((number, at + step))
            if gram is None or gram != in_message[place + step] or gram not in frequent:
                break
            held |= {(number, at + step + more) for more in range(size)}
            step += way
    return held


words = st.sampled_from("aabbcdefgh")
items_ = st.lists(
    st.lists(st.lists(words, min_size=1, max_size=14), min_size=1, max_size=2),
    min_size=1,
    max_size=3,
)


@st.composite
def pools(draw: st.DrawFn) -> tuple[list[list[str]], list[list[str]]]:
    """Documents and items. Documents hold pieces of items, and may all hold the same piece."""
    items = draw(items_)

    def piece() -> list[str]:
        message = draw(st.sampled_from(draw(st.sampled_from(items))))
        start = draw(st.integers(0, len(message) - 1))
        return message[start : draw(st.integers(start + 1, len(message)))]

    quote = piece() if draw(st.booleans()) else []
    documents = []
    for number in range(draw(st.integers(1, 7))):
        messages = [[*piece(), *draw(st.lists(words, max_size=2)), *piece()]]
        messages += draw(st.lists(st.lists(words, max_size=5), max_size=1))
        place = draw(st.integers(0, len(messages) - 1))
        messages[place] = [f"x{number}", *messages[place]]
        documents.append([" ".join(message) for message in [*messages, quote]])
    return documents, [[" ".join(message) for message in item] for item in items]


@settings(max_examples=examples(60))
@given(
    pool=pools(),
    n=st.integers(2, 4),
    least=st.integers(1, 4),
    some=st.integers(1, 3),
    threshold=st.sampled_from([0.3, 0.5, 1.0]),
)
def test_shares_are_those_of_a_plain_loop(
    pool: tuple[list[list[str]], list[list[str]]], n: int, least: int, some: int, threshold: float
) -> None:
    documents, items = pool
    frequent = _frequent(documents, items, n, least, 0.3, some)
    expected = [
        max((_share(document, item, n, least, frequent) or 0.0 for item in items), default=0.0)
        for document in documents
    ]
    with tempfile.TemporaryDirectory() as folder:
        store = store_of(Path(folder) / "s", documents)
        pl.DataFrame({"text": items}).write_parquet(Path(folder) / "items.parquet")
        outcome = apply(
            "decontaminate",
            store,
            against=[f"{folder}/items.parquet"],
            n=n,
            min_words=least,
            threshold=threshold,
            frequent=0.3,
            frequent_at_least=some,
        )
    assert outcome.columns is not None
    assert outcome.dropped is not None
    assert outcome.columns["contamination"].to_list() == pytest.approx(expected)
    over = [seq for seq, share in enumerate(expected) if share >= threshold]
    assert outcome.columns.filter("contaminated")["seq"].to_list() == over
    assert outcome.dropped["seq"].to_list() == over
    assert outcome.summary["by_level"].get("text", 0) == len(over)


def test_what_two_documents_say_does_not_depend_on_a_third() -> None:
    """Equal items count once, and so do documents with equal tasks, for what is frequent."""
    item = " ".join(f"w{number}" for number in range(30))
    with tempfile.TemporaryDirectory() as folder:
        store = store_of(Path(folder) / "s", [[item]] * 25 + [["other words"]])
        path = Path(folder) / "items.txt"
        path.write_text(f"{item}\n" * 20)
        outcome = apply("decontaminate", store, against=[str(path)])
        other = store_of(Path(folder) / "t", [[item, f"more {number}"] for number in range(25)])
        frequent = apply("decontaminate", other, against=[str(path)])
    assert outcome.summary["contaminated"] == 25
    assert frequent.summary["contaminated"] == 0
    assert frequent.summary["benchmarks"][0]["text"]["too_frequent"] == 20
    assert any(line.startswith("alarm") for line in frequent.lines)


def test_ngrams_can_be_counted_instead_of_words(tmp_path: Path) -> None:
    item = " ".join(f"w{number}" for number in range(40))
    half = " ".join(f"w{number}" for number in range(20))
    store = store_of(tmp_path / "s", [[half]])
    (tmp_path / "items.txt").write_text(item)
    for measure, share in (("words", 20 / 40), ("ngrams", 8 / 28)):
        outcome = apply(
            "decontaminate", store, against=[str(tmp_path / "items.txt")], measure=measure
        )
        assert outcome.columns is not None
        assert outcome.columns["contamination"].to_list() == pytest.approx([share])
