"""What is wrong in a recipe that its model cannot see: words and values that nothing knows."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from adp.converters.datasets.recipe import FAMILIES, DatasetRecipe
from adp.converters.datasets.spec_types import FieldSpec
from adp.converters.datasets.values import column_type, is_value
from adp.converters.registry import formats
from adp.converters.text_calls.of_file import NONE
from adp.converters.text_calls.registry import DIALECTS
from adp_schema.errors import unknown_name
from adp_schema.model import Task, Trajectory

_KINDS = {"flag": "true or false", "number": "a number", "integer": "a number", "text": "a text"}

Fault = tuple[tuple[str, ...], str]
"""The keys of a place in a recipe, and what is wrong there."""


def faults(recipe: DatasetRecipe) -> Iterator[Fault]:
    """What is wrong: readers, hooks and dialects that are not there, and values of no use."""
    given = recipe.dialect
    words = [it.dialect for it in given] if isinstance(given, tuple) else [given]
    checks = [
        ("reader", recipe.overlaid, (*FAMILIES, *formats)),
        ("hook", recipe.hook, _hooks()),
    ]
    checks += [("dialect", word, (*DIALECTS, NONE)) for word in words]
    for key, word, known in checks:
        if word is not None and word not in known:
            yield (key,), unknown_name(key, word, known)
    for name, spec in recipe.fields.items():
        yield from _values(("fields", name), spec, column_type(Trajectory, name))
    for name, spec in recipe.tasks.items():
        yield from _values(("tasks", name), spec, column_type(Task, name))


def _hooks() -> tuple[str, ...]:
    folder = files("adp.converters.datasets.hooks")
    return tuple(it.name.removesuffix(".py") for it in folder.iterdir() if it.name[0].isalpha())


def _values(place: tuple[str, str], spec: FieldSpec, kind: str) -> Iterator[Fault]:
    """Values of ``map`` that the column cannot hold."""
    given: list[tuple[tuple[str, ...], Any]] = [
        ((*place, "map", key), value) for key, value in spec.map.items()
    ]
    given += [((*place, "otherwise"), spec.otherwise)] if spec.map else []
    for where, value in given:
        if value is not None and not is_value(value, kind):
            yield where, f"{value!r} is no value of the column {place[1]}, which is {_KINDS[kind]}"
