"""Whether a row is of a data set: the part of a recipe that is looked at to recognise a file.

It needs neither the rest of the recipe nor the model of one, so that many can be asked at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw

from adp.converters.datasets.paths import ANY, dig, parse_path, text_at
from adp_schema.protocols import LIST_LINE

_LONGEST = 200_000
"""Characters of a text that are looked at."""


@dataclass(frozen=True)
class RowTest:
    """What must hold of a row.

    Attributes:
        keys: keys that it has.
        absent: keys that it has not.
        only: whether it has no others than ``keys``.
        values: path -> regular expression that is found in the text there.
        file: regular expression that is found in the path of its file.
        priority: the higher one is taken of two recipes.
        gives_way: whether any format that recognises the file goes before.
        every: whether it must hold of all rows that are looked at.
        logs: whether it is tried on what is surely the log of a session, too.
    """

    keys: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    only: bool = False
    values: Mapping[str, str] = field(default_factory=dict)
    file: str | None = None
    priority: int = 0
    gives_way: bool = False
    every: bool = False
    logs: bool = False

    def fits_file(self, source_file: str) -> bool:
        """Whether the path of a file fits."""
        return self.file is None or re.search(self.file, source_file) is not None

    def fits_rows(self, rows: Sequence[Mapping[str, Raw]]) -> bool:
        """Whether some row fits, or all of them where all must."""
        return bool(rows) and (all if self.every else any)(self.fits(row) for row in rows)

    def why_not(self, rows: Sequence[Mapping[str, Raw]], source_file: str) -> str:
        """What does not hold of the rows of a file, in a few words."""
        if not self.fits_file(source_file):
            return f"{source_file} is not named as {self.file!r} says"
        if not rows:
            return "it has no rows"
        row = next((it for it in rows if not self.fits(it)), rows[0]) if self.every else max(
            rows, key=lambda it: len(self.keys & it.keys())
        )  # fmt: skip
        if missing := sorted(self.keys - row.keys()):
            keys = "key" if len(missing) == 1 else "keys"
            return f"it has no {keys} {', '.join(map(repr, missing))}"
        if present := sorted(self.absent & row.keys()):
            return f"it has the key {present[0]!r}, which is under absent"
        if self.only and (more := sorted(row.keys() - self.keys)):
            return f"it has another key, {more[0]!r}"
        wrong = [path for path, regex in self.values.items() if not _holds(row, path, regex)]
        return f"the value at {wrong[0]!r} is another one" if wrong else "its rows do not"

    def fits(self, row: Mapping[str, Raw]) -> bool:
        """Whether a row fits, its first level decoded."""
        names = row.keys()
        if not (self.keys <= names) or self.absent & names or (self.only and names - self.keys):
            return False
        return all(_holds(row, path, regex) for path, regex in self.values.items())


def _holds(row: Mapping[str, Raw], path: str, regex: str) -> bool:
    keys = parse_path(path)
    first, rest = keys[0], keys[1:]
    if first == ANY:
        raw = next((value for key, value in row.items() if key != LIST_LINE), None)
    else:
        raw = row.get(str(first))
        if first == LIST_LINE and raw is None:
            return False
    try:
        text = text_at(None if raw is None else dig(raw, rest))
    except (msgspec.DecodeError, RecursionError, ValueError):
        return False
    return text is not None and re.search(regex, text[:_LONGEST]) is not None


def tests_of(given: Any) -> tuple[RowTest, ...]:
    """The tests of the part ``match`` of a recipe, as it stands in the YAML.

    What is wrong there is said when the recipe is used.
    """
    return tuple(
        RowTest(
            keys=frozenset(it.get("keys") or ()),
            absent=frozenset(it.get("absent") or ()),
            only=bool(it.get("no_other_keys")),
            values=dict(it.get("values") or {}),
            file=it.get("file"),
            priority=it.get("priority") or 0,
            gives_way=bool(it.get("gives_way")),
            every=bool(it.get("every")),
            logs=bool(it.get("logs")),
        )
        for it in (given if isinstance(given, list) else [given] if given else [])
    )
