"""A format that is not loaded for a file would not have recognised it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from adp.converters.first_keys import FIRST_KEYS
from adp.converters.plan import first_level
from adp.converters.registry import FormatChoice, formats
from adp_schema.errors import UsageError
from adp_schema.protocols import Match
from tests.converters.systems.records import RECORDS

HERE = Path(__file__).parent
FOLDERS = (HERE, HERE.parent / "fidelity", HERE.parents[1] / "tools" / "tables" / "probes")
SUFFIXES = (".json", ".jsonl", ".traj")
LARGEST = 1 << 20
DEEPEST, MOST = 2, 10
"""Objects inside of a document are tried as records, too: so many levels, and of each so many."""


def objects_of(value: Any, depth: int = 0) -> Iterator[Any]:
    """An object, and those in it."""
    if isinstance(value, dict):
        yield value
    if depth <= DEEPEST:
        items = value.values() if isinstance(value, dict) else value
        for item in islice(items if not isinstance(value, str | int | float) else (), MOST):
            if isinstance(item, dict | list):
                yield from objects_of(item, depth + 1)


@cache
def records() -> list[dict[str, Raw]]:
    """The first levels of the records in the examples: of those with the same keys, a few."""
    by_keys: dict[tuple[str, ...], list[dict[str, Raw]]] = {}
    for value in chain(values_in_files(), chain.from_iterable(it() for it in RECORDS.values())):
        for item in objects_of(value):
            row = first_level(json.dumps(item).encode())
            same = by_keys.setdefault(tuple(row or ()), [])
            if row and len(same) < MOST:
                same.append(row)
    return [row for same in by_keys.values() for row in same]


def values_in_files() -> Iterator[Any]:
    """The JSON of the example files, and of their first lines."""
    for path in (path for folder in FOLDERS for path in sorted(folder.rglob("*"))):
        if path.suffix not in SUFFIXES or path.stat().st_size > LARGEST:
            continue
        data = path.read_bytes()
        for part in (data, *data.splitlines()[:40]):
            with suppress(ValueError):
                yield json.loads(part)


def recognises(name: str, row: dict[str, Raw]) -> bool:
    return formats.get(name).sniff(row) > Match.NO


def smallest(name: str, row: dict[str, Raw]) -> dict[str, Raw]:
    """A record with as few of the keys as a format needs to recognise it."""
    for key in list(row):
        less = {other: value for other, value in row.items() if other != key}
        if recognises(name, less):
            row = less
    return row


def test_what_a_format_recognises_has_one_of_its_keys():
    seen = set()
    for name, keys in FIRST_KEYS.items():
        for row in records():
            if recognises(name, row):
                seen.add(name)
                needed = smallest(name, row)
                assert keys & needed.keys(), f"{name} recognises {sorted(needed)}"
    unseen = {"aider", "api_stream_text"}  # texts, which are no records
    assert seen >= FIRST_KEYS.keys() - unseen


def test_only_formats_have_keys():
    assert set(formats) >= FIRST_KEYS.keys()
    assert all(FIRST_KEYS.values())


def test_formats_that_may_recognise_a_record_are_loaded():
    row = {"id": Raw(b'"a"'), "messages": Raw(b'[{"role": "user", "content": "x"}]')}
    asked = [it.name for it in FormatChoice().with_keys(row.keys())]
    assert asked == sorted(asked)
    assert "openai_chat" in asked
    assert "otlp" not in asked
    assert {it.name for it in formats.all() if it.sniff(row) > Match.NO} <= set(asked)


def test_a_choice_is_the_list_of_its_formats():
    assert list(FormatChoice()) == formats.all()
    assert len(FormatChoice()) == len(list(formats))
    assert FormatChoice()[:2] == formats.all()[:2]
    assert [it.name for it in FormatChoice("pi")] == ["pi"]
    assert [it.name for it in FormatChoice("pi").with_keys({"messages"})] == []
    with pytest.raises(UsageError, match="unknown format 'pie'"):
        FormatChoice("pie")
