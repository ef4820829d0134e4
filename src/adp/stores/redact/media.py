"""Blobs that hold something to redact: addresses, and texts in their bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from adp.stores import shards
from adp.stores.redact.blob_texts import BlobText, texts_of_blob
from adp.stores.redact.finder import Cleaned, FoundValue, ValueFinder
from adp_schema.ids import digest
from adp_schema.media import media_of_uri
from adp_schema.reader import ShardReader

_ID = re.compile(r"[0-9a-f]{32}")


@dataclass
class BlobChange:
    """What becomes of a blob.

    Attributes:
        media_id: its new id, the hash of its new bytes or address.
        uri: its new address.
        data: its new bytes.
        values: what was found: column -> values.
    """

    media_id: str
    uri: str | None
    data: bytes | None
    values: dict[str, list[FoundValue]] = field(default_factory=dict)


def plan_blobs(reader: ShardReader, finder: ValueFinder) -> dict[str, BlobChange]:
    """The blobs of a shard that change: old id -> what becomes of it."""
    changes: dict[str, BlobChange] = {}
    for rows in shards.groups(reader, "media"):
        uris = finder.column(rows["uri"])
        parts = [
            (row, part)
            for row, mime in enumerate(rows["mime"].to_pylist())
            for part in texts_of_blob(rows["data"][row].as_py(), mime)
        ]
        cleaned = finder.texts([part.text for _, part in parts])
        contents: dict[int, list[tuple[BlobText, Cleaned]]] = {}
        for (row, part), item in zip(parts, cleaned, strict=True):
            if item is not None:
                contents.setdefault(row, []).append((part, item))
        for row in sorted(uris.keys() | contents.keys()):
            blob = rows.slice(row, 1).to_pylist()[0]
            changes[blob["media_id"]] = _change(blob, uris.get(row), contents.get(row, []))
    return changes


def _change(
    blob: dict[str, Any], uri: Cleaned | None, texts: list[tuple[BlobText, Cleaned]]
) -> BlobChange:
    address = uri.text if uri else blob["uri"]
    content: bytes | None = blob["data"]
    for part, cleaned in reversed(texts):  # the last one first: the places before it stay
        assert content is not None
        content = content[: part.start] + part.framed(cleaned.text) + content[part.end :]
    name = digest(content) if content is not None else media_of_uri(address or "").media_id
    data = [value for _, cleaned in texts for value in cleaned.values]
    results = {"uri": uri.values if uri else [], "data": data}
    return BlobChange(name or "", address, content, results)


def exchange_blobs(rows: pa.Table, changes: dict[str, BlobChange], written: set[str]) -> pa.Table:
    """Rows of the table ``media`` as the new store holds them; none is written twice.

    Args:
        rows: the rows.
        changes: what changes.
        written: ids of the blobs of the shard that were written; it grows.
    """
    names = rows["media_id"].to_pylist()
    if not any(name in changes for name in names):
        written.update(names)
        return rows
    kept: list[dict[str, object]] = []
    for row in rows.to_pylist():
        if change := changes.get(row["media_id"]):
            size = len(change.data) if change.data is not None else row["size"]
            row |= {"media_id": change.media_id, "uri": change.uri, "data": change.data}
            row["size"] = size
        if row["media_id"] not in written:
            written.add(row["media_id"])
            kept.append(row)
    new = pa.Table.from_pylist(kept, schema=rows.schema)
    keys = [("seq", "ascending"), ("media_id", "ascending")]
    return new.take(pc.sort_indices(new, sort_keys=keys))


def exchange_mentions(column: pa.ChunkedArray, new: dict[str, str]) -> pa.ChunkedArray:
    """Put the new ids of blobs into texts that mention the old ones."""
    if column.null_count == len(column):
        return column
    cells = pl.Series(column)
    rows = cells.str.contains_any(list(new)).fill_null(value=False)
    if not rows.any():
        return column
    values = column.to_pylist()
    for row in rows.arg_true().to_list():
        values[row] = _ID.sub(lambda match: new.get(match.group(), match.group()), values[row])
    return pa.chunked_array([pa.array(values, column.type)])
