"""Stores of small runs for tests of the ops that select: groups, tasks, outcomes and calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from adp_schema.builder import Origin, RowBuilder
from adp_schema.store import Store
from tests.store_builders import write_store


def run(
    name: str,
    *,
    text: str | None = "hello",
    calls: int = 0,
    requestor: str | None = None,
    **columns: Any,
) -> dict[str, Any]:
    """A run of one turn: the user says ``text``, ``requestor`` makes ``calls`` calls."""
    return {
        "name": name,
        "text": text,
        "calls": calls,
        "requestor": requestor,
        "columns": columns,
    }


def write_runs(folder: Path, runs: Iterable[dict[str, Any]], shards: int = 1) -> Store:
    """Write a store of runs, in order, cut into shards."""
    listed = list(runs)
    size = -(-len(listed) // shards) or 1
    builders = []
    for start in range(0, max(len(listed), 1), size):
        builder = RowBuilder()
        for place, result in enumerate(listed[start : start + size], start):
            _add(builder, place * 10, result)
        builders.append(builder)
    return write_store(folder, *builders)


def _add(builder: RowBuilder, seq: int, fields: dict[str, Any]) -> None:
    builder.begin(Origin(seq=seq, dataset=fields["columns"].get("dataset") or "d"))
    builder.trajectory({"source_id": fields["name"], **fields["columns"]})
    if fields["text"] is not None:
        builder.step({"source": "user", "kind": "message", "text": fields["text"]})
    if fields["calls"]:
        builder.step({"source": "agent", "kind": "llm_turn", "text": "so"})
        for number in range(fields["calls"]):
            builder.call(
                {
                    "kind": "function",
                    "name": f"tool{number}",
                    "arguments": "{}",
                    "requestor": fields["requestor"],
                }
            )
    builder.finish()


def groups(sizes: dict[str, int], length: Sequence[int] = (5,)) -> list[dict[str, Any]]:
    """Runs of several data sets; their texts have the lengths, one after the other."""
    return [
        run(f"{name}{number}", dataset=name, text="x" * length[number % len(length)])
        for name, size in sizes.items()
        for number in range(size)
    ]
