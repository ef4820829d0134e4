"""Where a trajectory holds an item: the longest common pieces of text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from adp.curation.ops.decontaminate.index import HashFinder, Index
from adp.curation.ops.decontaminate.scan import texts
from adp.curation.partitions import Partition
from adp.curation.texts import token_hashes as kernel
from adp.curation.texts.token_hashes import I64, WordHashes

SPANS = 3
"""Pieces that are shown."""

CHARACTERS = 120
"""Characters of a piece that are shown."""

_SPEAKERS = ("agent", "actions", "observations")


@dataclass(frozen=True)
class EvidenceQuery:
    """What to find again.

    Attributes:
        pairs: file with ``seq`` and ``item``.
        index: file of the `Index`, without the parts that are ignored.
        views: kinds of texts.
        answers: of each item: its right answers.
    """

    pairs: str
    index: str
    views: tuple[str, ...]
    answers: dict[int, tuple[str, ...]]


def locate(partition: Partition, wanted: EvidenceQuery) -> pl.DataFrame:
    """Find the pieces of each wanted item in its trajectory.

    Returns:
        ``seq``; ``step`` of the longest piece; ``spans``: JSON, the longest pieces with step, kind
        of text, first character, the one after the last, and the text, shortened; ``pieces``: how
        many there are; ``answer_found``: whether the agent, its calls or its results hold an
        answer, null when there is none to look for.
    """
    schema = {"seq": pl.Int64, "step": pl.Int32, "spans": pl.String, "pieces": pl.Int64}
    schema |= {"answer_found": pl.Boolean}
    pairs = pl.read_parquet(wanted.pairs, glob=False).filter(
        pl.col("seq").is_between(partition.first, partition.last)
    )
    if not pairs.height:
        return pl.DataFrame(schema=schema)
    index = Index.load(Path(wanted.index))
    only = replace(partition, members=wanted.pairs)
    grouped = _by_seq(texts(only, wanted.views))
    by_seq = _by_seq(texts(only, _SPEAKERS)) if wanted.answers else {}
    results = []
    for seq, item in pairs.select("seq", "item").iter_rows():
        grouped_rows = grouped.get(seq, [])
        first, last = np.searchsorted(index.item, (item, item + 1))
        parts = kernel.distinct(index.part[first:last])
        pieces = _pieces(grouped_rows, index, parts)
        pieces.sort(key=lambda piece: (piece["start"] - piece["end"], piece["place"]))
        shown = [{k: v for k, v in piece.items() if k != "place"} for piece in pieces[:SPANS]]
        step = pieces[0]["step"] if pieces else None
        answers = wanted.answers.get(item, ())
        answered = _answered(by_seq.get(seq, []), answers) if answers else None
        spans = json.dumps(shown, ensure_ascii=False, sort_keys=True)
        results.append((seq, step, spans, len(pieces), answered))
    return pl.DataFrame(results, schema=schema, orient="row")


Message = tuple[int | None, str, str]


def _by_seq(rows: pl.DataFrame) -> dict[int, list[Message]]:
    by_seq: dict[int, list[Message]] = {}
    for seq, step, kind, text in rows.select("seq", "step", "kind", "text").iter_rows():
        by_seq.setdefault(seq, []).append((step, kind, text))
    return by_seq


def _pieces(messages: Sequence[Message], index: Index, parts: I64) -> list[dict[str, Any]]:
    finder = HashFinder(index.hashes[parts])
    pieces = []
    for words in kernel.read_words([text for _, _, text in messages]):
        hashes, start, end = index.parts_of(words)
        at, _ = finder.find(hashes)
        for first, last in _merged(words, start[at], end[at]):
            number = int(words.text[first])
            step, kind, text = messages[number]
            begin, stop = int(words.start[first]), int(words.end[last - 1])
            piece = {"step": step, "kind": kind, "start": begin, "end": stop, "place": number}
            pieces.append({**piece, "text": shortened(text[begin:stop])})
    return pieces


def _merged(words: WordHashes, start: I64, end: I64) -> list[tuple[int, int]]:
    """Runs of words that overlapping parts cover, each in one text."""
    results: list[tuple[int, int]] = []
    for first, last in sorted(zip(start.tolist(), end.tolist(), strict=True)):
        if results and first <= results[-1][1] and words.text[first] == words.text[results[-1][0]]:
            results[-1] = (results[-1][0], max(results[-1][1], last))
        else:
            results.append((first, last))
    return results


def shortened(text: str) -> str:
    """A text on one line, without its middle when it is long."""
    plain = " ".join(text.split())
    half = CHARACTERS // 2
    return plain if len(plain) <= CHARACTERS else f"{plain[:half]} ... {plain[-half:]}"


def _answered(messages: Sequence[Message], answers: Sequence[str]) -> bool:
    """Whether the words of an answer stand somewhere, in their order."""
    wanted: dict[int, list[int]] = {}
    for answer in answers:
        for words in kernel.read_words([answer]):
            hashes, _ = kernel.runs(words, len(words))
            if len(words):
                wanted.setdefault(len(words), []).extend(hashes.tolist())
    for words in kernel.read_words([text for _, _, text in messages]):
        for size, hashes_of in wanted.items():
            hashes, _ = kernel.runs(words, size)
            if np.isin(hashes, np.array(hashes_of, np.uint64)).any():
                return True
    return False
