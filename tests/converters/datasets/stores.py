"""Rows of tests as stores, and the rows of stores as Python has them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import adp


def converted(tmp_path: Path, *sources: Path, **options: Any) -> adp.Store:
    """A store of real files; the test is skipped where one of them is not there."""
    missing = [str(path) for path in sources if not path.exists()]
    if missing or not sources:
        pytest.skip(f"no sample at {missing[0] if missing else 'this place'}")
    return adp.convert([str(path) for path in sources], str(tmp_path / "store"), **options)


def store_of(tmp_path: Path, rows: Sequence[Any], name: str = "rows.jsonl") -> adp.Store:
    """A store of rows that a test writes; a file of another ending has them as one list."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    text = lines if name.endswith(".jsonl") else json.dumps(rows, ensure_ascii=False, indent=1)
    path.write_text(text, "utf-8")
    return adp.convert([str(path)], str(tmp_path / "made"))


def table(store: adp.Store, name: str) -> list[dict[str, Any]]:
    """The rows of a table."""
    return store.scan(name).collect().to_dicts()


def records(path: Path) -> list[Any]:
    """The records of a file of JSON or JSON Lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        value = json.loads(text)
        return value if isinstance(value, list) else [value]
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def arguments(call: dict[str, Any]) -> Any:
    """The arguments of a call."""
    return None if call["arguments"] is None else json.loads(call["arguments"])
