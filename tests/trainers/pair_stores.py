"""Small stores of pairs and rated runs: agents that call a tool and answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from adp_schema.builder import Origin, RowBuilder
from adp_schema.store import Store
from tests.store_builders import write_store

TOOLS = json.dumps(
    [
        {
            "type": "function",
            "function": {
                "name": "search",
                "description": "search for a query",
                "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
            },
        }
    ]
)

Step = dict[str, Any]


def call(query: str, result: str, text: str = "", **columns: Any) -> Step:
    """A step that searches, and what comes back."""
    return {"text": text, "query": query, "result": result, "columns": columns}


def say(text: str, **columns: Any) -> Step:
    """A step that only says something."""
    return {"text": text, "columns": columns}


def run(name: str, ask: str, steps: Sequence[Step], **columns: Any) -> dict[str, Any]:
    """A run: the user asks, and the agent takes steps."""
    return {"name": name, "ask": ask, "steps": list(steps), "columns": columns}


def write_pairs(
    folder: Path,
    runs: Iterable[dict[str, Any]],
    pairs: Iterable[dict[str, Any]] = (),
    tasks: Iterable[dict[str, Any]] = (),
) -> Store:
    """Write a store of runs, pairs and tasks. The ids of runs are ``d/NAME``."""
    builder = RowBuilder()
    known = {task["task_id"]: task for task in tasks}
    for place, result in enumerate(runs):
        builder.begin(Origin(seq=place * 10, dataset="d"))
        builder.trajectory({"source_id": result["name"], "tools": TOOLS, **result["columns"]})
        if result["columns"].get("parent_id"):
            for step in result["steps"]:
                _step(builder, step)
            builder.finish()
            continue
        if place == 0:
            for task in known.values():
                builder.task({"dataset": "d", **task})
        builder.step({"source": "user", "kind": "message", "text": result["ask"]})
        for step in result["steps"]:
            _step(builder, step)
        builder.finish()
    for number, pair in enumerate(pairs):
        builder.pair({"pair_id": f"p{number:04d}", "level": "trajectory", **pair})
    return write_store(folder, builder)


def _step(builder: RowBuilder, step: Step) -> None:
    if "source" in step["columns"]:
        builder.step({"kind": "message", "text": step["text"], **step["columns"]})
        return
    builder.step({"source": "agent", "kind": "llm_turn", "text": step["text"], **step["columns"]})
    if "query" in step:
        arguments = json.dumps({"query": step["query"]})
        builder.call({"kind": "function", "name": "search", "arguments": arguments})
        builder.observation({"source": "environment", "text": step["result"]}, by_order=True)


def sides(chosen: str, rejected: str, first: int = 1, **columns: Any) -> dict[str, Any]:
    """A pair of two runs from a step on."""
    return {
        "chosen_id": f"d/{chosen}",
        "chosen_from": first,
        "rejected_id": f"d/{rejected}",
        "rejected_from": first,
        **columns,
    }
