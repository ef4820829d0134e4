"""The SQL behind the counts of a composition. Every list has a total order."""

from __future__ import annotations

from collections import Counter
from typing import Any

from adp.stores.composition.model import (
    Count,
    FirstTexts,
    Licensed,
    MediaKind,
    Ranking,
    TableSize,
)
from adp.stores.licenses import assess
from adp.stores.stats import Recorded
from adp_schema.store import Store
from adp_schema.tables import TABLES

NAME_LIMIT = 300
"""Characters of a name; a longer one is cut."""

Grouped = dict[str | None, Ranking]
"""Data set -> the names of something in it."""


def short(name: Any) -> str | None:
    """A value as a name, cut when it is long."""
    if name is None:
        return None
    text = {True: "true", False: "false"}[name] if isinstance(name, bool) else str(name)
    return text if len(text) <= NAME_LIMIT else text[: NAME_LIMIT - 1] + "…"


def rows(store: Store, sql: str) -> list[dict[str, Any]]:
    """The rows of an answer."""
    answer: list[dict[str, Any]] = store.query(sql).to_pylist()
    return answer


def ranking(store: Store, column: str, source: str, limit: int, where: str = "true") -> Ranking:
    """The most frequent values of a column.

    Args:
        store: the store.
        column: the column, as SQL.
        source: what to select from.
        limit: how many to list.
        where: which rows count.
    """
    result = rows(
        store,
        f"""
        SELECT name, n, count(*) OVER () AS names, sum(n) OVER ()::BIGINT AS total FROM (
            SELECT {column} AS name, count(*) AS n FROM {source} WHERE {where} GROUP BY ALL)
        ORDER BY n DESC, name NULLS LAST LIMIT {limit}""",
    )
    return _ranking(result)


def _ranking(listed: list[dict[str, Any]]) -> Ranking:
    """A ranking from its rows: name, n, and of all of it names and total."""
    if not listed:
        return Ranking((), 0, 0)
    counts = tuple(Count(short(row["name"]), row["n"]) for row in listed)
    return Ranking(counts, listed[0]["names"], listed[0]["total"])


def ranked(counts: dict[str, int], limit: int) -> Ranking:
    """The same of counts that are there already."""
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    listed = tuple(Count(short(name), count) for name, count in order[:limit])
    return Ranking(listed, len(counts), sum(counts.values()))


def by_dataset(store: Store, column: str, limit: int) -> Grouped:
    """The most frequent values of a column of the trajectories, by data set, branches included."""
    result = rows(
        store,
        f"""
        SELECT * FROM (
            SELECT dataset, name, n, count(*) OVER of_set AS names,
                sum(n) OVER of_set ::BIGINT AS total,
                row_number() OVER (of_set ORDER BY n DESC, name NULLS LAST) AS place
            FROM (SELECT dataset, {column} AS name, count(*) AS n
                FROM all_trajectories GROUP BY ALL)
            WINDOW of_set AS (PARTITION BY dataset))
        WHERE place <= {limit} ORDER BY dataset NULLS LAST, place""",
    )
    grouped: dict[str | None, list[dict[str, Any]]] = {}
    for row in result:
        grouped.setdefault(row["dataset"], []).append(row)
    return {name: _ranking(members) for name, members in grouped.items()}


def tables(store: Store) -> tuple[TableSize, ...]:
    """Rows, files and bytes of each table that has rows; a journal's rows are counted too."""
    results = []
    for name in TABLES:
        view = "all_trajectories" if name == "trajectories" else name
        shards = store.manifest.tables.get(name, [])
        (row,) = rows(store, f"SELECT count(*) AS n FROM {view}")
        if row["n"] or shards:
            size = sum(shard.size for shard in shards)
            results.append(TableSize(name, row["n"], len(shards), size))
    return tuple(results)


def branches(store: Store) -> dict[str | None, int]:
    """Data set -> number of its branches; 0 for one without."""
    sql = "SELECT dataset, count(parent_id) AS n FROM all_trajectories GROUP BY ALL ORDER BY ALL"
    return {row["dataset"]: row["n"] for row in rows(store, sql)}


def licenses(store: Store) -> tuple[Licensed, ...]:
    """What each data set may be used for, branches included; the biggest data set first."""
    result = assess(store).rows
    sizes: Counter[str | None] = Counter()
    for row in result:
        sizes[row.dataset] += row.trajectories
    ordered = sorted(result, key=lambda row: -row.trajectories)
    ordered.sort(key=lambda row: (-sizes[row.dataset], row.dataset is None, row.dataset or ""))
    return tuple(
        Licensed(
            short(row.dataset),
            short(row.license),
            row.may_publish,
            row.trajectories,
            row.kind,
            row.verdict,
            row.reasons,
        )
        for row in ordered
    )


def media(store: Store) -> tuple[MediaKind, ...]:
    """Blobs by media type."""
    result = rows(
        store,
        """
        SELECT mime, count(*) AS n, count(*) FILTER (data IS NULL) AS outside,
            coalesce(sum(size) FILTER (data IS NOT NULL), 0)::BIGINT AS bytes
        FROM media GROUP BY ALL ORDER BY n DESC, mime NULLS LAST""",
    )
    return tuple(
        MediaKind(short(row["mime"]), row["n"], row["bytes"], row["outside"]) for row in result
    )


def flag(store: Store, column: str) -> Recorded:
    """How many main lines have a flag that is true."""
    sql = f"""SELECT count(*) AS n, count({column}) AS known, count(*) FILTER ({column}) AS yes
        FROM trajectories"""
    (row,) = rows(store, sql)
    return Recorded(row["yes"] if row["known"] else None, row["known"], row["n"])


def first_texts(store: Store) -> FirstTexts:
    """How many main lines begin with the same words of the user."""
    (row,) = rows(
        store,
        """
        SELECT count(*) AS recorded, count(DISTINCT first) AS distinct_texts FROM (
            SELECT arg_min(md5_number(text), step) AS first
            FROM steps SEMI JOIN trajectories USING (seq)
            WHERE source = 'user' AND text <> '' GROUP BY seq)""",
    )
    return FirstTexts(row["recorded"], row["distinct_texts"])
