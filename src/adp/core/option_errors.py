"""What pydantic finds wrong in a file of options, as one sentence."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, get_args

from pydantic import BaseModel, ValidationError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_FORMS = {
    "tuple_type": "input should be a list, such as [a, b]",
    "list_type": "input should be a list, such as [a, b]",
    "dict_type": "input should be names with values, such as {a: 1}",
}
"""Kinds of faults for which pydantic has words of Python."""

_LISTED = 15
"""Names that are listed where none is near."""

_INNER = ("function-after", "function-before", "function-wrap", "tagged-union")


def sentence(error: ValidationError, known: Iterable[str], paths: Sequence[str] = ()) -> str:
    """The first fault, with its place; see `sentences`."""
    return sentences(error, known, paths)[0]


def sentences(error: ValidationError, known: Iterable[str], paths: Sequence[str] = ()) -> list[str]:
    """Each fault, with its place.

    Args:
        error: what was found.
        known: names that may stand where an unknown one does.
        paths: the same names with their sections, such as ``training.max_steps``; see `paths_of`.
    """
    names = sorted(known)
    return [_sentence(fault, names, paths) for fault in error.errors(include_url=False)]


def _sentence(first: ErrorDetails, known: Sequence[str], paths: Sequence[str]) -> str:
    place = [part for part in first["loc"] if not str(part).startswith(_INNER)]
    where = ".".join(map(str, place))
    kind, given = first["type"], first.get("input")
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(str(place[-1]), known, n=1)
        more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        hint = (
            f"did you mean {_path(where, near[0], paths)}?"
            if near
            else f"known: {', '.join(known[:_LISTED])}{more}"
        )
        return f"{where} is not known; {hint}"
    if kind == "missing":
        return f"{where} is missing"
    message = first["msg"].removeprefix("Value error, ")
    if kind == "value_error":
        return f"{where}: {message}" if where else message
    message = _FORMS.get(kind, message)
    shown = f", not {given!r}" if isinstance(given, str | int | float | bool | None) else ""
    return f"{where}: {message[:1].lower()}{message[1:]}{shown}"


def _path(where: str, name: str, paths: Sequence[str]) -> str:
    """A name with its section: that of the fault, if it has one of this name, else the first."""
    same_section = where.rpartition(".")[0] + "." + name
    other = next((path for path in paths if path.rpartition(".")[2] == name), name)
    return same_section if same_section in paths else other


def paths_of(model: type[BaseModel], section: str = "") -> list[str]:
    """Names of all fields with their sections, such as ``training.max_steps``; short ones first."""
    results = [section + name for name in model.model_fields]
    for name, field in model.model_fields.items():
        for child in (field.annotation, *get_args(field.annotation)):
            if isinstance(child, type) and issubclass(child, BaseModel):
                results += paths_of(child, f"{section}{name}.")
    return sorted(results, key=lambda path: path.count("."))


def names(model: type[BaseModel]) -> list[str]:
    """Names of all fields of a model and of the models inside it."""
    results: dict[str, None] = {}
    pending: list[object] = [model.model_json_schema()]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            properties = node.get("properties")
            results.update(dict.fromkeys(properties if isinstance(properties, dict) else ()))
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)
    return list(results)
