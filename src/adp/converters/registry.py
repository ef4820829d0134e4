"""The formats by name; those of other packages come from entry points.

`BUILTIN` are read and written in any direction. `READERS` are logs of programs: they are read, and
those that have ``write`` go back to their program, too. `SYSTEMS` are the files of the systems
whose features this project covers: they are read, and written back equal.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence, Set
from difflib import get_close_matches
from importlib import import_module
from typing import Any, cast

from adp.converters.first_keys import FIRST_KEYS
from adp.converters.readers import READERS
from adp.converters.systems import SYSTEMS
from adp.core.code_files import refuse_in_data
from adp.core.registry import Registry
from adp_schema.errors import UsageError
from adp_schema.protocols import Converter

BUILTIN = {
    "adp_v1": "adp.converters.adp_v1:CONVERTER",
    "atif": "adp.converters.atif:CONVERTER",
    "m3": "adp.converters.m3:CONVERTER",
    "openai_chat": "adp.converters.openai_chat:CONVERTER",
    "preference": "adp.converters.preference:CONVERTER",
    "sharegpt": "adp.converters.sharegpt:CONVERTER",
    "sts": "adp.converters.sts:CONVERTER",
}


_CATALOGUE = "adp.converters.datasets.catalogue"
"""Loaded by its name, as all formats are: it needs the formats that recipes build on."""


class FormatRegistry(Registry[Converter]):
    """The formats by name, and by the same way those that recipes of data sets describe."""

    def get(self, name: str) -> Converter:
        """Load a format, or make that of a recipe.

        Raises:
            UsageError: the name is unknown, or what it names cannot be used.
        """
        catalogue = import_module(_CATALOGUE)
        if name.startswith(catalogue.OF_USER):
            refuse_in_data(name)
            return cast("Converter", catalogue.of_user(name.removeprefix(catalogue.OF_USER)))
        if ":" not in name and name not in self and name in catalogue.names():
            return cast("Converter", catalogue.shipped(name))
        if ":" not in name and name not in self:
            near = get_close_matches(name, catalogue.names(), n=1, cutoff=0.8)
            if near and not get_close_matches(name, self, n=1, cutoff=0.8):
                raise UsageError(f"unknown format '{name}'; did you mean {near[0]}?")
        return super().get(name)


class FormatChoice(Sequence[Converter]):
    """The formats that a file may be of, each loaded when it is looked at.

    Args:
        wanted: the name of the only one; None for all.

    Raises:
        UsageError: it is unknown, or what it names cannot be used.
    """

    def __init__(self, wanted: str | None = None) -> None:
        self._names = list(formats)
        if wanted:
            self._names = [wanted]
            formats.get(wanted)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, place: Any) -> Any:
        chosen = self._names[place]
        return formats.get(chosen) if isinstance(chosen, str) else [*map(formats.get, chosen)]

    def with_keys(self, keys: Set[str]) -> list[Converter]:
        """Those that may recognise a record which has some keys.

        Args:
            keys: the keys of its first level, or of those of several records.
        """
        return [
            formats.get(it) for it in self._names if not FIRST_KEYS.get(it, keys).isdisjoint(keys)
        ]


formats = FormatRegistry(
    "format",
    "adp.converters",
    {**BUILTIN, **READERS, **SYSTEMS},
    has=("name", "title", "sniff", "read"),
    made_by="adp.converters.user_format:complete",
)
"""All formats, loaded when they are asked for."""


def stored_name(converter: Converter) -> str:
    """What a store calls a format: of a recipe over another format, the name of that one."""
    return getattr(converter, "stored_as", "") or converter.name


def sides_of(names: Iterable[str], there: Container[str]) -> set[str]:
    """The files that belong to some others, by what any format says, as far as they are there.

    Args:
        names: paths of files.
        there: the paths of all that lie in the same place.
    """
    return {
        side
        for name in names
        for converter in formats.all()
        for side in converter.side_files(name)
        if side in there
    }
