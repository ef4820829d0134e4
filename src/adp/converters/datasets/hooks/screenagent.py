"""ScreenAgent: a session of screens; each has an answer with its actions as JSON in a fence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from adp.converters.datasets.paths import plain
from adp.converters.datasets.turns import DatasetRow, DatasetTurn, TurnCall, take_text
from adp.converters.kit.source_object import SourceObject

_FENCE = re.compile(r"```json[ \t]*\n(.*?)```", re.DOTALL)
_TASK = ("task_prompt_en", "task_prompt", "task_prompt_zh")
_ANSWERS = ("LLM_response_editer_en", "LLM_response_editer", "LLM_response")
_SIZES = {"video_width": "viewport_width", "video_height": "viewport_height"}


def turns(row: DatasetRow) -> Iterator[DatasetTurn]:
    """The task once; then for each item its screen, and the answer."""
    items, row.rows = row.rows or [row.source], []
    task = next((words for key in _TASK if (words := items[0].word(key))), None)
    yield DatasetTurn("user", task)
    for source in items:
        for key in _TASK:
            source.drop_text(key, task)
        image = take_text(source, "screenshot") or take_text(source, "saved_image_name")
        columns = {
            column: size
            for key, column in _SIZES.items()
            if (size := source.number(key)) is not None
        }
        yield DatasetTurn("result", images=[image] if image else [], columns=columns)
        text = source.text(*_ANSWERS)
        calls = _listed(source) or ([] if text is None else _fenced(text))
        yield DatasetTurn("agent", text, calls, extra=source.rest())


def _listed(source: SourceObject) -> list[TurnCall]:
    """The actions of a key of their own; the row keeps it."""
    values = source.values.get("actions")
    return [] if values is None else _calls(plain(values))


def _fenced(text: str) -> list[TurnCall]:
    """The actions in the fences of a text."""
    calls = []
    for match in _FENCE.finditer(text):
        try:
            made = _calls(json.loads(match[1]))
        except (ValueError, RecursionError):
            continue
        for call in made[:1]:
            call.span = match.span()
        calls += made
    return calls


def _calls(actions: Any) -> list[TurnCall]:
    items = actions if isinstance(actions, list) else [actions]
    return [
        TurnCall(it["action_type"], {key: value for key, value in it.items() if
                                     key != "action_type"}, kind="gui")
        for it in items
        if isinstance(it, dict) and isinstance(it.get("action_type"), str)
    ]  # fmt: skip
