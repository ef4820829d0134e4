"""Stores of the examples and of real files, for the tests of single formats."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import adp
from tests import samples

EXAMPLES = Path(__file__).parent / "examples"
DATA = samples.ROOT


def convert(source: Path, target: Path, name: str | None = None) -> Any:
    """Convert into a store, and return its manifest."""
    return adp.convert([str(source)], str(target), format=name).manifest


def rows(store: Path, table: str) -> list[dict[str, Any]]:
    """The rows of a table, in their order."""
    out: list[dict[str, Any]] = []
    for path in sorted(store.rglob("*.parquet")):
        if table in (path.parent.name, path.stem.split("-")[0]):
            out += pq.read_table(path).to_pylist()
    return out


def real(*names: str) -> list[Path]:
    """Real files of a format, where this machine has them."""
    files = [path for name in names for path in sorted((DATA / name).glob("*"))]
    return [path for path in files if path.name != "ORIGIN.txt"]


def need(paths: list[Path]) -> None:
    """Skip a test where the real files are not."""
    if not paths:
        pytest.skip("the real files of this format are not on this machine")


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object below a value, itself included."""
    if isinstance(value, dict):
        yield value
    children = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list):
        for child in children:
            yield from objects(child)


def types(value: Any) -> Counter[str]:
    """How often each ``type`` occurs below a value."""
    return Counter(str(item.get("type")) for item in objects(value))


def load(path: Path) -> Any:
    """A JSON document."""
    return json.loads(path.read_bytes())
