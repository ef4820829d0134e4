"""What a recipe of the user's names, and none of the first rows of a file has: most are slips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec
from msgspec import Raw
from pydantic import BaseModel

from adp.converters.datasets.paths import look
from adp.converters.datasets.reader_specs import ListsSpec, StepsSpec
from adp.converters.datasets.recipe import DatasetRecipe
from adp.converters.datasets.rows_in import holds_several, rows_in
from adp.converters.datasets.spec_types import FieldSpec
from adp.converters.datasets.turns import list_items_of
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACKET
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.losses import Losses

_KEYS = {
    "messages": ("path", "system"),
    "columns": ("system", "user", "agent", "reasoning", "calls", "result", "chosen", "rejected",
                "completions"),
    "transcript": ("text", "system"),
    "steps": ("group", "group_also", "order", "task", "system", "messages"),
    "lists": ("task", "system", "steps", "actions", "thoughts", "observations", "rewards",
              "others"),
}  # fmt: skip
"""Reader -> its settings that are paths in a row. Pictures need not be there."""

_TURN_KEYS = ("role", "text", "reasoning", "calls", "call_name")
_SEEN_KEYS = ("text", "axtree", "html", "url", "annotations", "structured", "width", "height",
              "reward")  # fmt: skip
_MOST_ROWS = 200

Places = Iterator[tuple[str, tuple[str, ...]]]
"""Places in a recipe, each with the paths that stand there."""


def unmet_keys(recipe: DatasetRecipe, records: Sequence[bytes], source_file: str) -> list[str]:
    """Sentences on paths of a recipe that lead nowhere in the rows of a file.

    Args:
        recipe: the recipe.
        records: the first records of the file.
        source_file: its path.
    """
    rows = list(islice(_rows(recipe, records), _MOST_ROWS))
    if not rows or recipe.hook is not None:
        return []
    missing = [it for it in _row_places(recipe) if not _is_met(rows, it[1])]
    items = _items(recipe, rows)
    if items:
        missing += [it for it in _item_places(recipe) if not _is_met(items, it[1])]
    count = f"none of the first {len(rows)} rows" if len(rows) > 1 else "not in the first row"
    return [f"{count} of {source_file}: {' or '.join(paths)} ({place})" for place, paths in missing]


def _rows(recipe: DatasetRecipe, records: Sequence[bytes]) -> Iterator[SourceObject]:
    for data in records:
        try:
            raws = [it.raw for it in rows_in(recipe, data, Losses()).rows] if (
                holds_several(recipe)
            ) else [Raw(data)]  # fmt: skip
        except (RecordError, ValueError, msgspec.DecodeError):
            continue
        for raw in raws:
            is_list = jsontext.first_byte(raw) == BRACKET
            for item in jsontext.decode_array(raw) if is_list else [raw]:
                if source := SourceObject(item, "$", Losses()):
                    yield source


def _is_met(rows: Sequence[SourceObject], paths: tuple[str, ...]) -> bool:
    return any(look(row, path) is not None for row in rows for path in paths)


def _row_places(recipe: DatasetRecipe) -> Places:
    """The paths that begin in a row."""
    spec = getattr(recipe, recipe.reader, None) if recipe.reader in _KEYS else None
    if isinstance(spec, BaseModel):
        yield from _given(spec, _KEYS[recipe.reader], recipe.reader)
    if recipe.reader == "steps":
        yield from _parts(recipe.steps, "steps")
    for kind in ("fields", "tasks"):
        specs: dict[str, FieldSpec] = getattr(recipe, kind)
        for name, field in specs.items():
            yield from _usable(f"{kind}.{name}", field.path)
    if recipe.tools is not None:
        yield from _usable("tools.path", recipe.tools.path)


def _item_places(recipe: DatasetRecipe) -> Places:
    """The paths that begin in a turn, or in a step of a list."""
    if recipe.reader == "messages":
        yield from _given(recipe.messages, _TURN_KEYS[:2], "messages")
    elif recipe.reader == "lists":
        yield from _parts(recipe.lists, "lists")


def _items(recipe: DatasetRecipe, rows: Sequence[SourceObject]) -> list[SourceObject]:
    """The turns or steps inside of rows."""
    if recipe.reader == "messages":
        paths = recipe.messages.path
    elif recipe.reader == "lists" and recipe.lists.steps is not None:
        paths = (recipe.lists.steps,)
    else:
        return []
    if "$" in paths and not any(look(row, it) for row in rows for it in paths if it != "$"):
        return list(rows)
    raws = [raw for row in rows for it in paths if (raw := look(row, it)) is not None]
    items = (SourceObject(item, "$", Losses()) for raw in raws for item in list_items_of(raw))
    return [item for item in items if item]


def _parts(spec: StepsSpec | ListsSpec, place: str) -> Places:
    """The paths of an observation and of an action."""
    yield from _given(spec.observation, _SEEN_KEYS, f"{place}.observation")
    action = spec.action
    yield from _given(action, ("text", "call", "reasoning"), f"{place}.action")
    for place_of, paths in _given(action, ("name", "arguments"), f"{place}.action"):
        inside = "" if action.call is None else f"{action.call}."
        yield place_of, tuple(inside + path for path in paths)


def _given(spec: BaseModel, keys: Sequence[str], place: str) -> Places:
    """The paths under some keys of a part, where the recipe gives them."""
    for key in keys:
        if key in spec.model_fields_set and (value := getattr(spec, key)) is not None:
            paths = value.path if isinstance(value, FieldSpec) else value
            yield from _usable(f"{place}.{key}", (paths,) if isinstance(paths, str) else paths)


def _usable(place: str, paths: tuple[str, ...]) -> Places:
    """A place whose paths all begin in a row: not beside it, and not at a list of rows."""
    if paths and not any(path.startswith("$") for path in paths):
        yield place, paths
