"""Types of the values in a recipe: paths, regular expressions, and where a column stands."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from adp.converters.datasets.paths import parse_path
from adp.core.options import OptionsModel


def _path(value: Any) -> Any:
    if isinstance(value, str):
        parse_path(value)
    return value


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _regex(value: Any) -> Any:
    if isinstance(value, str):
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"{value!r} is no regular expression: {error}") from None
    return value


Path = Annotated[str, BeforeValidator(_path)]
_SEVERAL = WithJsonSchema(
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
)
Paths = Annotated[tuple[Path, ...], BeforeValidator(_listed), _SEVERAL]
Words = Annotated[tuple[str, ...], BeforeValidator(_listed), _SEVERAL]
Regex = Annotated[str, BeforeValidator(_regex)]


class FieldSpec(OptionsModel):
    """Where the value of a column stands."""

    path: Paths
    """Paths in the row; the first with a usable value counts. ``$file``, ``$key`` and ``$number``
    say where the row stands, ``$first_text`` and ``$last_text`` are texts of its run."""
    regex: Regex | None = None
    """The value is what its first group matches in the text."""
    map: dict[str, Any] = Field(default_factory=dict)
    """Text -> value. true, false and numbers count as their text, which is what ``regex`` and
    ``format`` make."""
    otherwise: Any = None
    """The value of texts that are not in ``map``; without it they give none."""
    format: str | None = None
    """A text with ``{}`` in the place of the value; ``{a.b}`` is the text at another path."""
    when: Regex | None = None
    """Only a value in which this is found counts."""


def as_field(value: Any) -> Any:
    """A path alone, or several, as a field; anything else as it is."""
    return {"path": value} if isinstance(value, str | list | tuple) else value


Spec = Annotated[FieldSpec, BeforeValidator(as_field)]
