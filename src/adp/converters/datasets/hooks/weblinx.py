"""WebLINX: chat of an instructor and a navigator, and what the navigator does in the browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adp.converters.datasets.families.messages import item_object
from adp.converters.datasets.paths import look, plain, text_at
from adp.converters.datasets.turns import DatasetRow, DatasetTurn, Source, TurnCall
from adp.converters.kit.source_object import SourceObject
from adp_schema import jsontext


def turns(row: DatasetRow) -> Iterator[DatasetTurn]:
    """What was said, and before each action the page that it was done on."""
    items = row.items("replay.data") or row.items("data") or row.items("replay")
    for number, raw in enumerate(items):
        source = item_object(raw, f"$.replay.data[{number}]", row)
        if source.word("type") == "chat":
            text = source.text("utterance", "value")
            speaker: Source = "agent" if source.word("speaker") == "navigator" else "user"
            yield DatasetTurn(speaker, text, extra=source.rest())
        else:
            yield from _action(source)


def _action(source: SourceObject) -> Iterator[DatasetTurn]:
    action = source.child("action")
    arguments = action.take("arguments")
    seen = SourceObject(arguments, "$.arguments", source.losses)
    columns: dict[str, Any] = {}
    url = text_at(look(seen, "metadata.url"))
    if url is not None:
        columns["url"] = url
    for key, column in (("viewportWidth", "viewport_width"), ("viewportHeight", "viewport_height")):
        if isinstance(size := plain(look(seen, f"metadata.{key}")), int | float):
            columns[column] = float(size)
    state = source.child("state")
    image, page = state.text("screenshot"), state.text("page")
    if page is not None:
        columns["structured"] = jsontext.text_of({"page": page})
    if image or columns:
        yield DatasetTurn("result", images=[image] if image else [], columns=columns)
    intent = action.text("intent")
    calls = [TurnCall(intent, arguments, kind="gui")] if intent else []
    if not calls and arguments is not None:
        action.values["arguments"] = arguments
    yield DatasetTurn("agent", None, calls, extra=source.rest())
