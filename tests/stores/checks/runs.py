"""Small trajectories for the tests of checks: a list of items a trajectory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from adp_schema.builder import Origin, RowBuilder
from adp_schema.media import media_of_bytes, media_of_uri
from adp_schema.parts import Parts

Item = tuple[str, dict[str, Any]]


def user(text: str | None = "Do it.", **columns: Any) -> Item:
    """A step of the user."""
    return "step", {"source": "user", "kind": "message", "text": text, **columns}


def system(text: str = "You are an agent.", **columns: Any) -> Item:
    """A step of the system."""
    return "step", {"source": "system", "kind": "message", "text": text, **columns}


def agent(text: str | None = "I look.", **columns: Any) -> Item:
    """A turn of the model."""
    return "step", {"source": "agent", "kind": "llm_turn", "text": text, **columns}


def call(
    name: str | None = "look", arguments: str | None = '{"at": "desk"}', **columns: Any
) -> Item:
    """A call of a tool by the step before."""
    kind = {"kind": "function", "arguments_kind": "object"}
    return "call", {**kind, "name": name, "arguments": arguments, **columns}


def result(text: str | None = "A lamp.", **columns: Any) -> Item:
    """A result; ``answers`` names a call, else it answers the oldest open one."""
    return "result", {"source": "environment", "text": text, **columns}


def link(kind: str, target: str) -> Item:
    """A reference to another trajectory by its id."""
    return "link", {"kind": kind, "target_id": target}


def image(uri: str | None = None, data: bytes = b"PNG") -> Item:
    """A step of the user that is an image."""
    return "image", {"uri": uri, "data": data}


@dataclass
class Run:
    """A trajectory.

    Attributes:
        items: its steps, calls and results in order.
        columns: columns of the trajectory.
    """

    items: list[Item]
    columns: dict[str, Any] = field(default_factory=dict)


def run(*items: Item, **columns: Any) -> Run:
    """A trajectory of these items."""
    return Run(list(items), columns)


DONE = (user(), agent(), call(call_id="c"), result(answers="c"), agent("There is a lamp."))
"""A run that nothing is wrong with."""


def add(builder: RowBuilder, seq: int, name: str, entry: Run) -> None:
    """Add a trajectory to a builder."""
    columns = {"license": "MIT", "agent_model": "m-1", "source_id": name, **entry.columns}
    origin = {"source_file": "made.jsonl", "source_hash": columns.pop("source_hash", f"{seq:032x}")}
    builder.begin(Origin(seq=seq, dataset="made", columns={**origin, "source_records": [seq]}))
    builder.trajectory(columns)
    for kind, values in entry.items:
        item = {key: value for key, value in values.items() if value is not None}
        if kind == "step":
            builder.step(item)
        elif kind == "call":
            builder.call(item)
        elif kind == "link":
            builder.link(item)
        elif kind == "image":
            parts = Parts()
            uri = item.get("uri")
            blob = media_of_uri(uri) if uri else media_of_bytes(item["data"], "image/png")
            parts.media(builder.media(blob))
            builder.step({"source": "user", "kind": "message", **parts.columns()})
        else:
            answers = item.pop("answers", None)
            linked = item.pop("linked", answers is None)
            builder.observation(item, answers=answers, by_order=linked)
    builder.finish()
