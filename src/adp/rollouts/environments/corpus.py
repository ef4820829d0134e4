"""Documents for search: from a file, a folder, a table, or a column of a store.

- ``.jsonl``: an object a line; ``.parquet``: a row each. The text is the first of `TEXT_NAMES`
  that is there, the id the first of `ID_NAMES`; without an id it is the number of the row.
- ``.txt`` and ``.md``: one document; its id is the path, its title the name of the file.
- a folder: all of these in it and below, in the order of their paths; not what is hidden.
- a store with ``table.column``: every different text of that column, in order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from adp.core.input_files import check_inside
from adp_schema.errors import EmptyResultError, InputError, UsageError

TEXT_NAMES = ("text", "contents", "content", "passage", "body")
ID_NAMES = ("id", "_id", "doc_id", "docid")
ENDINGS = (".jsonl", ".parquet", ".txt", ".md")

_UTF8 = "utf-8-sig"
"""UTF-8, with or without the mark that Windows puts at the beginning of files."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document.

    Attributes:
        id: its id, unique in the corpus.
        title: its title; may be empty.
        text: its text; may be empty.
    """

    id: str
    title: str
    text: str


def read_corpus(path: Path, column: str | None = None) -> Sequence[Document]:
    """Read documents.

    Args:
        path: a file, a folder, or with ``column`` a store.
        column: ``table.column`` of the store, such as ``tasks.instruction``.

    Raises:
        InputError: something cannot be read, or two documents have one id.
        UsageError: the kind of file or the column is unknown.
        EmptyResultError: there is no document.
    """
    if not path.exists():
        raise InputError(f"the documents {path} are not there")
    corpus = list(_from_store(path, column) if column else _from_path(path))
    if not corpus:
        endings = ", ".join(ENDINGS)
        raise EmptyResultError(f"{path} holds no documents; it needs files ending in {endings}")
    seen: set[str] = set()
    for document in corpus:
        if document.id in seen:
            raise InputError(f"{path}: two documents have the id '{document.id}'")
        seen.add(document.id)
    return corpus


def _from_path(path: Path) -> Iterator[Document]:
    if not path.is_dir():
        yield from _from_file(path, path.name)
        return
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path)
        hidden = any(part.startswith(".") for part in name.parts)
        if file.suffix in ENDINGS and not hidden and file.is_file():
            check_inside(file, path)
            yield from _from_file(file, name.as_posix())


def _from_file(path: Path, name: str) -> Iterator[Document]:
    if path.suffix not in ENDINGS:
        known = ", ".join(ENDINGS)
        raise UsageError(f"documents cannot be read from {path}; it must end in one of {known}")
    try:
        if path.suffix == ".jsonl":
            yield from _from_lines(path, name)
        elif path.suffix == ".parquet":
            yield from _from_table(path, name)
        else:
            yield Document(name, path.stem, path.read_text(encoding=_UTF8))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _from_lines(path: Path, name: str) -> Iterator[Document]:
    with path.open(encoding=_UTF8) as lines:
        for number, line in enumerate(lines):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{path}#{number + 1}: this is no JSON: {error}") from error
            if not isinstance(row, dict):
                raise InputError(f"{path}#{number + 1}: this is no JSON object")
            yield _document(row, f"{name}#{number + 1}", path)


def _from_table(path: Path, name: str) -> Iterator[Document]:
    try:
        with parquet.ParquetFile(path) as file:
            names = set(file.schema_arrow.names)
            columns = [item for item in (*ID_NAMES, "title", *TEXT_NAMES) if item in names]
            rows = file.read(columns=columns).to_pylist()
    except pa.ArrowException as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}") from error
    for number, row in enumerate(rows):
        yield _document(row, f"{name}#{number + 1}", path)


def _document(row: Mapping[str, Any], place: str, path: Path) -> Document:
    """A row as a document; a text that is null is an empty one."""
    text = next((name for name in TEXT_NAMES if name in row), None)
    if text is None:
        known = ", ".join(TEXT_NAMES)
        raise InputError(f"{path}: {place} has no text; it needs one of {known}")
    first = next((row[name] for name in ID_NAMES if row.get(name) is not None), place)
    return Document(str(first), _text(row.get("title")), _text(row[text]))


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _from_store(path: Path, place: str) -> Iterator[Document]:
    from adp_schema.store import Store
    from adp_schema.tables import TABLES

    table, _, column = place.partition(".")
    if table not in TABLES or column not in TABLES[table].schema.names:
        raise UsageError(f"'{place}' is no column of a store; write it as tasks.instruction")
    values = Store.open(str(path)).scan(table).select(column).collect()[column]
    texts = values.drop_nulls().unique(maintain_order=True)
    for number, text in enumerate(texts):
        yield Document(f"{place}#{number + 1}", "", _text(text))
