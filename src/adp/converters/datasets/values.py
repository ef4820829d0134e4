"""Values of columns, as the part ``fields`` of a recipe says where they stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pyarrow as pa
from msgspec import Raw

from adp.converters.datasets.paths import holder, look, opened, text_at
from adp.converters.datasets.spec_types import FieldSpec
from adp.converters.datasets.turns import DatasetRow
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET, NUMBER
from adp_schema import jsontext
from adp_schema.model import Columns, Row
from adp_schema.tables import columns_of

_FLAGS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False,
          "1.0": True, "0.0": False, "success": True, "failed": False}  # fmt: skip


def column_type(row: type[Row], name: str) -> str:
    """What a column holds: flag, number, integer, json, texts or text."""
    return _types(row)[name]


@cache
def _types(row: type[Row]) -> dict[str, str]:
    return {name: _type(column) for name, column in columns_of(row).items()}


def _type(column: pa.Field) -> str:
    if (column.metadata or {}).get(b"content") == b"json":
        return "json"
    if pa.types.is_boolean(column.type):
        return "flag"
    if pa.types.is_floating(column.type):
        return "number"
    if pa.types.is_integer(column.type):
        return "integer"
    return "texts" if pa.types.is_list(column.type) else "text"


def set_fields(
    specs: Mapping[str, FieldSpec],
    columns: Columns,
    row: DatasetRow,
    kind: type[Row],
    *,
    late: bool,
) -> None:
    """Fill columns from a row.

    Args:
        specs: column -> where its value stands.
        columns: takes the values; what is filled already stays.
        row: the row; a value that a column holds as it is written is taken from it.
        kind: the table.
        late: whether the texts of the run are there, and only what needs them is read.
    """
    # What is made of a value goes first: a column that holds all of it takes it from the row.
    before = row.source.copy()
    made_first = sorted(specs.items(), key=lambda it: not _is_made(it[1]))
    for name, spec in made_first:
        needs_texts = any(path in ("$first_text", "$last_text") for path in spec.path)
        if needs_texts == late and columns.get(name) is None:
            value = value_of(spec, row, column_type(kind, name))
            if value is None:  # another column may have taken it
                rest, row.source = row.source, before.copy()
                value = value_of(spec, row, column_type(kind, name))
                row.source = rest
            if value is not None:
                columns[name] = value


def _is_made(spec: FieldSpec) -> bool:
    return bool(spec.regex or spec.map or spec.format or spec.when)


def value_of(spec: FieldSpec, row: DatasetRow, kind: str) -> Any:
    """The value of a column; None when no path has a usable one."""
    for path in spec.path:
        if path.startswith("$") and path in _PLACES:
            text = _PLACES[path](row)
            value = None if text is None else _made(spec, text, kind, row)
        elif _is_made(spec):
            text = text_at(row.look(path))
            value = None if text is None else _made(spec, text, kind, row)
        else:
            value = _plain(*row.place(path), kind)
        if value is not None:
            return value
    return None


def _formatted(form: str, text: str, row: DatasetRow) -> str:
    """A text with the value, and those of other paths, in their places."""

    def place(match: re.Match[str]) -> str:
        if not match[1]:
            return text
        made = _PLACES[match[1]](row) if match[1] in _PLACES else text_at(row.look(match[1]))
        return made or ""

    return re.sub(r"\{([^{}]*)\}", place, form)


def _made(spec: FieldSpec, text: str, kind: str, row: DatasetRow) -> Any:
    """A value made of a text."""
    if spec.when is not None and not re.search(spec.when, text):
        return None
    if spec.regex is not None:
        match = re.search(spec.regex, text)
        if match is None:
            return None
        text = match[1] if match.re.groups else match[0]
        if text is None:
            return None
    if spec.format is not None:
        text = _formatted(spec.format, text, row)
    if spec.map:
        value = spec.map.get(text, spec.map.get(text.lower(), spec.otherwise))
        return None if value is None else _cast(str(value), kind)
    return _cast(text, kind)


def is_value(value: Any, kind: str) -> bool:
    """Whether a column of a kind can hold a value that a recipe gives for a word."""
    if kind in ("json", "texts"):
        return True
    return not isinstance(value, dict | list) and _cast(str(value), kind) is not None


def _cast(text: str, kind: str) -> Any:
    if kind == "flag":
        return _FLAGS.get(text.strip().lower())
    if kind in ("number", "integer"):
        try:
            number = float(text)
        except ValueError:
            flag = _FLAGS.get(text.strip().lower())
            return None if flag is None else (float(flag) if kind == "number" else int(flag))
        if number != number or number in (float("inf"), float("-inf")):
            return None
        return int(number) if kind == "integer" else number
    if kind == "json":
        return text if jsontext.is_valid(text) else jsontext.text_of(text)
    return [text] if kind == "texts" else text


def _plain(source: SourceObject, path: str, kind: str) -> Any:
    """A value as the row has it; taken when the column holds all of it."""
    place = holder(source, path)
    if place is None:
        return _copied(look(source, path), kind)
    node, key = place
    if kind == "flag":
        value = node.flag(key)
        return _copied(look(source, path), kind) if value is None else value
    if kind == "number":
        return node.number(key)
    if kind == "integer":
        return node.integer(key, bits=32)
    if kind == "text":
        return node.name(key)
    if kind == "json":
        raw = node.values[key]
        if jsontext.first_byte(opened(raw)) in (BRACE, BRACKET) and opened(raw) is not raw:
            return _copied(raw, kind)
        return node.json(key)
    return _copied(look(source, path), kind)


def _copied(raw: Raw | None, kind: str) -> Any:
    """A value that stays in the row, too."""
    if raw is None or jsontext.first_byte(raw) == ord("n"):
        return None
    if kind == "json":
        value = opened(raw)
        return jsontext.one_line(value)
    if kind == "texts":
        value = jsontext.decode_value(raw)
        texts = value if isinstance(value, list) else [value]
        return [str(item) for item in texts if isinstance(item, str | int)] or None
    text = text_at(raw)
    if text is None or (kind == "text" and jsontext.first_byte(raw) not in (*NUMBER, 0x22)):
        return None
    return _cast(text, kind)


def _text_of_step(row: DatasetRow, number: int) -> str | None:
    texts = [step.parts.columns().get("text") for step in row.run.steps]
    kept = [text for text in texts if text]
    return kept[number] if kept else None


_PLACES: dict[str, Callable[[DatasetRow], str | None]] = {
    "$file": lambda row: row.file,
    "$key": lambda row: row.key or None,
    "$number": lambda row: str(row.number),
    "$first_text": lambda row: _text_of_step(row, 0),
    "$last_text": lambda row: _text_of_step(row, -1),
}
"""Values that stand beside the row."""
