"""Searching the texts of a store for words."""

from __future__ import annotations

import heapq
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from adp.core.progress import Progress, Silent
from adp.stores.fulltext.search_words import SEPARATOR, fts_expression
from adp.stores.fulltext.text_index import (
    PLACE_SHIFT,
    PLACES,
    TABLE,
    IndexWork,
    chosen_places,
    index_folder,
    make_index,
    prepared,
)
from adp.stores.shards import narrow, narrow_group
from adp_schema.errors import StoreError, UsageError, unknown_name
from adp_schema.reader import ShardReader
from adp_schema.store import Store
from adp_schema.tables import ENUMS

RANKED = 10_000
"""Texts that are ranked at most, shared out over the shards; each takes a few microseconds."""

_LEAST_RANKED = 500
_WORDS = 24
_CHARACTERS = 240
_ROW = (1 << PLACE_SHIFT) - 1
_BEGIN, _END = "\x01", "\x02"
_CLEAN = str.maketrans(dict.fromkeys(_BEGIN + _END, " "))

SOURCES = sorted(ENUMS["steps", "source"])


@dataclass(frozen=True)
class SearchOptions:
    """How to search.

    Attributes:
        where: only trajectories that meet this condition in SQL over ``all_trajectories``.
        places: only these: text, reasoning, arguments, observation; none means all.
        sources: only what these wrote: system, user, agent, environment; none means all.
        limit: matches at most.
        order: ``rank``, the best ones first (BM25, as FTS5 computes it in each shard), or
            ``store``, the first ones of the store.
        index: folder of the index; None: see `text_index.index_folder`.
        workers: number of processes that make the index; None takes one a core.
    """

    where: str | None = None
    places: Sequence[str] = ()
    sources: Sequence[str] = ()
    limit: int = 10
    order: Literal["rank", "store"] = "rank"
    index: str | None = None
    workers: int | None = None

    def check(self) -> None:
        """Check the words among them.

        Raises:
            UsageError: there is no such place, source or order, or the limit is below 1.
        """
        known = {
            "place": (self.places, [place.name for place in PLACES]),
            "source": (self.sources, SOURCES),
            "order": ([self.order], ["rank", "store"]),
        }
        for what, (given, names) in known.items():
            for name in given:
                if name not in names:
                    raise UsageError(unknown_name(what, name, names))
        if self.limit < 1:
            raise UsageError(f"the limit is {self.limit}; give 1 or more")


@dataclass(frozen=True)
class TextMatch:
    """A text with the words.

    Attributes:
        trajectory_id: its trajectory.
        step: index of its step; of an observation, of the step after which it arrived.
        place: text, reasoning, arguments or observation.
        name: name of the tool, of arguments and observations; else who wrote it.
        score: its rank, higher is better; 0 in the order of the store.
        snippet: a part of the text.
        marks: where the words are in it: begin and end.
    """

    trajectory_id: str
    step: int
    place: str
    name: str | None
    score: float
    snippet: str
    marks: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class SearchResult:
    """What was found.

    Attributes:
        matches: the matches, in order.
        more: whether there are more.
        unsealed: trajectories of a growing store that were not looked at: its journals are not.
        index: folder of the index.
    """

    matches: list[TextMatch]
    more: bool
    unsealed: int
    index: str


_Hit = tuple[tuple[float, ...], int, int]
"""A match before its text is read: what sorts it, its shard, its row id."""


def search(
    store: Store, words: str, options: SearchOptions, progress: Progress | None = None
) -> SearchResult:
    """Search the texts of a store. What has no index yet gets one first.

    Args:
        store: the store.
        words: what to look for; see `search_words`.
        options: where to look, and how much to give.
        progress: told how far the index is.

    Raises:
        UsageError: the search or an option is none.
        QueryError: the condition is not one valid condition.
        OutputExistsError: the index cannot be written.
    """
    options.check()
    expression = fts_expression(words)
    seqs = None
    if options.where is not None:
        from adp.stores.condition import select_where  # the engine takes a while to load

        seqs = store.query(select_where("seq", options.where))["seq"].combine_chunks()
    folder = Path(options.index) if options.index else index_folder(store)
    works = make_index(store, folder, options.workers, progress or Silent())
    most = max(RANKED // max(len(works), 1), _LEAST_RANKED, options.limit + 1)
    hits: list[_Hit] = []
    for work in works:
        with closing(_SearchedShard(work)) as shard:
            hits += shard.hits(expression, options, seqs, most)
        if options.order == "store" and len(hits) > options.limit:
            break
    chosen = heapq.nsmallest(options.limit, hits)
    matches = _matches(works, chosen, expression)
    unsealed = 0 if store.journal is None else store.journal.count
    return SearchResult(matches, len(hits) > len(chosen), unsealed, str(folder))


class _SearchedShard:
    """A shard and its index."""

    def __init__(self, work: IndexWork) -> None:
        self._work = work
        self._reader = ShardReader(work.files, work.renamed)
        address = f"file:{quote(work.out)}?mode=ro&immutable=1"
        self._index = sqlite3.connect(address, uri=True)

    def close(self) -> None:
        self._reader.close()
        self._index.close()

    def hits(
        self, expression: str, options: SearchOptions, seqs: pa.Array | None, most: int
    ) -> Iterator[_Hit]:
        """The matches of the shard, in no order.

        Args:
            expression: what FTS5 is asked.
            options: where to look.
            seqs: only in trajectories of one of these; None: in all.
            most: how many to look at.

        Raises:
            StoreError: the index is damaged.
        """
        ranked = options.order == "rank"
        filtered = seqs is not None or bool(options.sources)
        select = f"SELECT rowid, {'bm25(words)' if ranked else '0.0'} FROM words"
        select += " WHERE words MATCH ? AND rowid BETWEEN ? AND ?"
        select += " AND chosen(rowid)" if filtered else ""
        left = most
        for number in chosen_places(options.places):
            taken = self._taken(number, options.sources, seqs) if filtered else b""
            self._index.create_function("chosen", 1, lambda row, taken=taken: taken[row & _ROW])
            first = number << PLACE_SHIFT
            count = left if ranked else options.limit + 1
            try:
                rows = self._index.execute(
                    f"{select} LIMIT ?", (expression, first, first + _ROW, count)
                ).fetchall()
            except sqlite3.DatabaseError as error:
                raise StoreError(
                    f"the index {self._work.out} is damaged ({error}); remove it, and search again"
                ) from error
            left -= len(rows) if ranked else 0
            keys = [(score,) for _, score in rows] if ranked else self._keys(rows, number)
            for (rowid, _), key in zip(rows, keys, strict=True):
                yield key, self._work.index, rowid

    def _taken(self, number: int, sources: Sequence[str], seqs: pa.Array | None) -> bytes:
        """For each row of a table whether it is looked at: 1 or 0."""
        place = PLACES[number]
        parts = [b""]
        for rows in narrow(self._reader, place.table, ["seq", place.source]):
            taken = pa.array(np.ones(rows.num_rows, dtype=bool))
            if seqs is not None:
                taken = pc.is_in(rows["seq"].combine_chunks(), value_set=seqs)
            if sources:
                writers = rows[place.source].combine_chunks().fill_null(place.writer)
                taken = pc.and_(taken, pc.is_in(writers, value_set=pa.array(list(sources))))
            parts.append(taken.cast(pa.uint8()).to_numpy(zero_copy_only=False).tobytes())
        return b"".join(parts)

    def _keys(self, rows: list[tuple[int, float]], number: int) -> list[tuple[float, ...]]:
        """What sorts some matches in the order of the store."""
        if not rows:
            return []
        place = PLACES[number]
        table = pa.concat_tables(narrow(self._reader, place.table, ["seq", "step"]))
        table = table.take(pa.array([rowid & _ROW for rowid, _ in rows]))
        shard = self._work.index
        pairs = zip(table["seq"].to_pylist(), table["step"].to_pylist(), strict=True)
        return [(shard, seq, step or 0, number) for seq, step in pairs]


def _matches(works: Sequence[IndexWork], hits: Sequence[_Hit], expression: str) -> list[TextMatch]:
    """Matches with their texts, which are read from the store."""
    wanted: dict[tuple[int, int], list[int]] = defaultdict(list)
    for _, shard, rowid in hits:
        wanted[shard, rowid >> PLACE_SHIFT].append(rowid & _ROW)
    texts: dict[tuple[int, int], dict[str, Any]] = {}
    for (shard, number), rows in wanted.items():
        for row, values in _rows(works[shard], number, sorted(rows)):
            texts[shard, (number << PLACE_SHIFT) + row] = values
    result = []
    with closing(sqlite3.connect(":memory:")) as memory:
        memory.execute(TABLE.format(content=""))
        for number, (key, shard, rowid) in enumerate(hits, 1):
            place = PLACES[rowid >> PLACE_SHIFT]
            values = texts[shard, rowid]
            text = next(text for name in place.columns if (text := values[name]))
            snippet, marks = _snippet(memory, number, prepared(place, text), expression)
            name = values.get("name") or values.get(place.source) or place.writer or None
            result.append(
                TextMatch(
                    trajectory_id=values["trajectory_id"],
                    step=values["step"],
                    place=place.name,
                    name=name,
                    score=round(-key[0], 6) if len(key) == 1 else 0.0,
                    snippet=snippet,
                    marks=marks,
                )
            )
    return result


def _rows(
    work: IndexWork, number: int, rows: Sequence[int]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Some rows of a table: only the row groups with one of them are read."""
    place = PLACES[number]
    names = ["trajectory_id", "step", place.source, *place.columns]
    names += ["name"] if place.table != "steps" else []
    with closing(ShardReader(work.files, work.renamed)) as reader:
        file = reader.file(place.table)
        assert file is not None
        counts = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
        ends = np.cumsum(counts)
        groups = np.searchsorted(ends, rows, "right")
        for group in sorted(set(groups.tolist())):
            first = int(ends[group]) - counts[group]
            inside = [row for row, at in zip(rows, groups, strict=True) if at == group]
            places = pa.array([row - first for row in inside])
            table = narrow_group(reader, place.table, group, names).take(places)
            yield from zip(inside, table.to_pylist(), strict=True)


def _snippet(
    memory: sqlite3.Connection, number: int, text: str, expression: str
) -> tuple[str, list[tuple[int, int]]]:
    """The part of a text with most of the words, and where they are in it."""
    memory.execute("INSERT INTO words(rowid, text) VALUES (?, ?)", (number, text.translate(_CLEAN)))
    ask = f"SELECT snippet(words, 0, ?, ?, '…', {_WORDS}) FROM words"
    ask += " WHERE words MATCH ? AND rowid = ?"
    row = memory.execute(ask, (_BEGIN, _END, expression, number)).fetchone()
    marked = (row[0] if row else text).replace(SEPARATOR, "")
    plain, marks, begin = "", [], 0
    for piece in marked.replace(_END, f"{_END}{_BEGIN}").split(_BEGIN):
        begin = len(plain)
        plain += piece.removesuffix(_END)
        if piece.endswith(_END):
            marks.append((begin, len(plain)))
    return _cut(plain, marks)


def _cut(text: str, marks: list[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    """No more of a snippet than a few lines: words may be as long as an image in base64."""
    if len(text) <= _CHARACTERS:
        return text, marks
    first = max(marks[0][0] - _CHARACTERS // 3, 0) if marks else 0
    end = min(first + _CHARACTERS, len(text))
    inside = [(max(a, first), min(b, end)) for a, b in marks if b > first and a < end]
    head, tail = "…" if first else "", "…" if end < len(text) else ""
    moved = [(a - first + len(head), b - first + len(head)) for a, b in inside]
    return f"{head}{text[first:end]}{tail}", moved
