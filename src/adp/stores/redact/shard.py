"""Redacting one shard: what a worker of `adp.stores.redact.run` does."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from adp.stores import shards
from adp.stores.redact.cells import Cell, Cleaner
from adp.stores.redact.findings import Findings
from adp.stores.redact.ids import Changes
from adp.stores.redact.media import exchange_blobs, exchange_mentions, plan_blobs
from adp.stores.redact.rules import Rule
from adp.stores.redact.span_shifts import CleanedText, Content, clean_words, read_content
from adp.stores.shards import ShardWork
from adp.stores.staged import WrittenShard, write_rows
from adp_schema.arrow import json_columns
from adp_schema.tables import SHARDED_TABLES

WORDS = {"steps": ("text", "reasoning"), "observations": ("text",)}
"""Columns whose words ``content`` refers to by spans."""


@dataclass(frozen=True)
class RedactJob(ShardWork):
    """One shard to look through.

    Attributes:
        out: folder of the new store; None to look only.
        rules: what to look for.
        ids: ids that change.
        places: how many places to keep.
    """

    out: str | None
    rules: tuple[Rule, ...]
    ids: Changes
    places: int


def redact_shard(job: RedactJob) -> WrittenShard:
    """Look through one shard, and write it without what was found unless only to look."""
    shard = _Shard(job)
    tables = {}
    try:
        if job.out is not None:
            tables = write_rows(job.out, job.index, shard.rows())
        else:
            deque(shard.rows(), maxlen=0)
    finally:
        shard.reader.close()
    return WrittenShard(job.index, tables, {"findings": shard.findings.plain()})


class _Shard:
    """The rows of a shard, cleaned."""

    def __init__(self, job: RedactJob) -> None:
        self.reader = job.reader()
        self.findings = Findings()
        self._cleaner = Cleaner(job.rules, job.ids, self.findings, job.places)
        self._finder = self._cleaner.finder
        self._blobs = plan_blobs(self.reader, self._finder)
        self._written: set[str] = set()
        self._moved: dict[tuple[int, int], CleanedText] = {}
        """Texts of steps that changed, by seq and step; calls refer to them by spans."""

    def rows(self) -> Iterator[tuple[str, pa.Table]]:
        """All rows of the new shard: table and row group, table by table."""
        new = {old: change.media_id for old, change in self._blobs.items()}
        for table in SHARDED_TABLES:
            for rows in shards.groups(self.reader, table):
                rows = self._media(rows) if table == "media" else self._table(table, rows)
                yield table, _mentions(table, rows, new) if new else rows
        self.findings.trajectories = len(self._cleaner.seqs)

    def _media(self, rows: pa.Table) -> pa.Table:
        for row, name in enumerate(rows["media_id"].to_pylist()):
            if change := self._blobs.get(name):
                for column, result in change.values.items():
                    cell = Cell("media", column, rows, row)
                    self._cleaner.note(replace(cell, blob=change.media_id), result)
        rows = self._cleaner.columns("media", rows, leave={"media_id", "uri", "data"})
        return exchange_blobs(rows, self._blobs, self._written)

    def _table(self, table: str, rows: pa.Table) -> pa.Table:
        leave = {*WORDS.get(table, ())}
        if leave:
            rows = self._words(table, rows)
        if table == "tool_calls" and self._moved:
            rows = self._calls(rows)
        return self._cleaner.columns(table, rows, leave=leave)

    def _words(self, table: str, rows: pa.Table) -> pa.Table:
        """Clean the words of steps or observations, and move the spans of their parts."""
        contents = rows["content"].to_pylist()
        changed = False
        for column in WORDS[table]:
            suspects = list(self._finder.screen.rows(rows[column]))
            texts = [rows[column][row].as_py() for row in suspects]
            parts = [read_content(contents[row]) for row in suspects]
            asked = [_with_spans(*item, column) for item in zip(texts, parts, strict=True)]
            values: list[Any] | None = None
            cleaned = clean_words(self._finder, asked)
            for row, (_, spans), content, words in zip(
                suspects, asked, parts, cleaned, strict=True
            ):
                if words is None:
                    continue
                self._cleaner.note(Cell(table, column, rows, row), words.values)
                values = values or rows[column].to_pylist()
                values[row] = words.text
                if content is not None and spans:
                    content.move(column, words)
                    contents[row] = content.text()
                    changed = True
                if table == "steps" and column == "text":
                    words.text = ""
                    key = (rows["seq"][row].as_py(), rows["step"][row].as_py())
                    self._moved[key] = words
            if values is not None:
                rows = shards.put(rows, column, pa.array(values, rows[column].type))
        return shards.put(rows, "content", pa.array(contents, pa.string())) if changed else rows

    def _calls(self, rows: pa.Table) -> pa.Table:
        """Move the spans of calls that were parsed from texts."""
        starts, ends = rows["span_start"].to_pylist(), rows["span_end"].to_pylist()
        changed = False
        for row, start in enumerate(starts):
            if start is None and ends[row] is None:
                continue
            words = self._moved.get((rows["seq"][row].as_py(), rows["step"][row].as_py()))
            if words is not None:
                changed = True
                starts[row] = None if start is None else words.place(start)
                ends[row] = None if ends[row] is None else words.place(ends[row], end=True)
        if changed:
            rows = shards.put(rows, "span_start", pa.array(starts, pa.int32()))
            rows = shards.put(rows, "span_end", pa.array(ends, pa.int32()))
        return rows


def _with_spans(
    text: str, content: Content | None, column: str
) -> tuple[str, list[tuple[int, int]] | None]:
    """A text and the spans of its parts; none when they do not fit, and it is read as one part."""
    spans = content.spans(column) if content else None
    return text, spans if spans and spans[-1][1] == len(text) else None


def _mentions(table: str, rows: pa.Table, new: dict[str, str]) -> pa.Table:
    """Put the new ids of blobs into texts."""
    if table == "media":
        return rows
    for field in rows.schema:
        is_text = pa.types.is_string(field.type) and field.name not in ("trajectory_id",)
        if is_text and (field.name in json_columns(table) or field.name in _MENTIONING):
            column = exchange_mentions(rows[field.name], new)
            if column is not rows[field.name]:
                rows = shards.put(rows, field.name, column)
    return rows


_MENTIONING = frozenset(
    {"text", "prose", "reasoning", "arguments_raw", "visible_text", "html", "axtree", "notes",
     "final_answer", "instruction", "edit_summary", "error_message"}
)  # fmt: skip
