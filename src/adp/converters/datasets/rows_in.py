"""The rows that a record of a data set holds: itself, or several."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import NamedTuple

from msgspec import Raw

from adp.converters.datasets.paths import ANY, holder, look, opened, parse_path
from adp.converters.datasets.recipe import DatasetRecipe
from adp.converters.datasets.turns import list_items_of
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.losses import Losses


class CutRow(NamedTuple):
    """A row inside of a record.

    Attributes:
        key: its keys and numbers in the record, joined by a slash.
        path: where it stands.
        raw: its JSON.
    """

    key: str
    path: str
    raw: Raw


class CutRecord(NamedTuple):
    """A record that holds several rows.

    Attributes:
        rows: its rows.
        around: what stands around them; None when there is nothing else.
        record: the record as it was, for paths that begin with ``$record``.
    """

    rows: Iterator[CutRow]
    around: SourceObject | None
    record: SourceObject | None


def holds_several(recipe: DatasetRecipe) -> bool:
    """Whether the records of a data set hold several rows."""
    return bool(recipe.rows_at or recipe.rows_of or recipe.split)


def rows_in(recipe: DatasetRecipe, data: bytes, losses: Losses) -> CutRecord:
    """Cut a record into its rows.

    Args:
        recipe: says where they stand.
        data: the record.
        losses: takes keys that occur twice.

    Raises:
        RecordError: they are not there.
    """
    if recipe.split is not None:
        module = import_module(f"adp.converters.datasets.hooks.{recipe.split}")
        made = ((key, raw) for key, raw in module.rows(Raw(data)))
        return CutRecord((CutRow(key, f"$.{key}", raw) for key, raw in made), None, None)
    if recipe.rows_at is not None and recipe.rows_at.startswith(ANY):
        keys = recipe.rows_at.split(".")
        return CutRecord(_walk(Raw(data), keys, "", "$"), None, None)
    record = SourceObject(data, "$", losses)
    around = record.copy()
    if recipe.rows_at is not None:
        rows = _at(recipe.rows_at, around)
    else:
        rows = iter(list(_side_by_side(recipe.rows_of, around)))
    return CutRecord(rows, around, record)


def _at(path: str, around: SourceObject) -> Iterator[CutRow]:
    first, _, inside = path.partition(f".{ANY}")
    raw = look(around, first)
    if raw is None:
        raise RecordError("there are no rows", f"$.{first}")
    if (place := holder(around, first)) is not None:
        place[0].drop(place[1])
    keys = [ANY, *(it for it in inside.split(".") if it)]
    return _walk(Raw(opened(raw)), keys, "", f"$.{first}")


def _walk(value: Raw, keys: list[str], key: str, path: str) -> Iterator[CutRow]:
    """The values at keys of which ``*`` stands for all; what is no list and no object is a row."""
    if not keys:
        yield CutRow(key, path, value)
        return
    if keys[0] != ANY:
        (step,) = parse_path(keys[0])
        fields = jsontext.decode_object(value) if jsontext.first_byte(value) == BRACE else {}
        if step in fields:
            yield from _walk(Raw(opened(fields[step])), keys[1:], key, f"{path}.{step}")
        return
    first = jsontext.first_byte(value)
    if first not in (BRACE, BRACKET):
        yield CutRow(key, path, value)
        return
    is_object = first == BRACE
    items = jsontext.decode_object(value).items() if is_object else _numbered(value)
    for name, item in items:
        place = f"{path}.{name}" if is_object else f"{path}[{name}]"
        yield from _walk(item, keys[1:], f"{key}/{name}" if key else name, place)


def _numbered(value: Raw) -> list[tuple[str, Raw]]:
    return [(str(number), item) for number, item in enumerate(jsontext.decode_array(value))]


def _side_by_side(lists: dict[str, str], around: SourceObject) -> Iterator[CutRow]:
    """A row of the first items of some lists, one of the second items, and so on."""
    columns: dict[str, list[Raw]] = {}
    for name, path in lists.items():
        raw = look(around, path)
        columns[name] = [] if raw is None else list_items_of(raw)
        if columns[name] and (place := holder(around, path)) is not None:
            place[0].drop(place[1])
    for number in range(max(map(len, columns.values()), default=0)):
        row = {name: items[number] for name, items in columns.items() if number < len(items)}
        yield CutRow(str(number), f"$[{number}]", Raw(jsontext.encode(row)))
