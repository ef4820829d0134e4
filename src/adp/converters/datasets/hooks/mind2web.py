"""Mind2Web: pages, and the element that a person chose on each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adp.converters.datasets.families.messages import item_object
from adp.converters.datasets.paths import plain, text_at
from adp.converters.datasets.turns import DatasetRow, DatasetTurn, TurnCall
from adp.converters.kit.source_object import SourceObject


def turns(row: DatasetRow) -> Iterator[DatasetTurn]:
    """The task; then the page before each action, and the action."""
    yield DatasetTurn("user", row.take_text("confirmed_task"))
    words = [text_at(raw) for raw in row.items("action_reprs")]
    actions = row.items("actions")
    if more := words[len(actions) :]:
        row.run.extra["action_reprs"] = more
    for number, raw in enumerate(actions):
        source = item_object(raw, f"$.actions[{number}]", row)
        html = source.text("raw_html", "cleaned_html")
        if html is not None:
            yield DatasetTurn("result", columns={"html": html})
        operation = source.child("operation")
        name, value = operation.text("op"), operation.text("value")
        arguments: dict[str, Any] = _target(source)
        if value:
            arguments["value"] = value
        text = words[number] if number < len(words) else None
        calls = [TurnCall(name, arguments, kind="gui")] if name else []
        yield DatasetTurn("agent", text, calls, extra=source.rest())


def _target(source: SourceObject) -> dict[str, Any]:
    """The element that was acted on, by its id in the page."""
    values = source.values.get("pos_candidates")
    candidates = plain(values) if values is not None else None
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    if not isinstance(first, dict):
        return {}
    known = {"backend_node_id": first.get("backend_node_id"), "tag": first.get("tag")}
    return {key: value for key, value in known.items() if value is not None}
