"""OmniACT: a task with its script in one text, a screenshot, and the boxes on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adp.converters.datasets.paths import plain
from adp.converters.datasets.turns import DatasetRow, DatasetTurn, TurnCall
from adp_schema import jsontext

_SCRIPT = "Output Script:"


def turns(row: DatasetRow) -> Iterator[DatasetTurn]:
    """The task, the screenshot, and the script as code."""
    text = row.take_text("task") or ""
    place = text.rfind(_SCRIPT)
    words = text if place < 0 else text[:place]
    task = words.rstrip("\n")
    yield DatasetTurn("user", task, extra={"cut": ["", words[len(task) :]]})
    image = row.take_text("image")
    boxes = _boxes(plain(row.look("box")))
    columns = {"annotations": jsontext.text_of(boxes)} if boxes else {}
    if image or boxes:
        yield DatasetTurn("result", images=[image] if image else [], columns=columns)
    if place >= 0:
        answer = text[place:]
        script = answer[len(_SCRIPT) :].strip()
        start = answer.index(script) if script else len(answer)
        code = TurnCall("python", script, kind="code", language="python",
                        span=(start, start + len(script)))  # fmt: skip
        yield DatasetTurn("agent", answer, [code] if script else [],
                          columns={"prose": answer[:start].strip()} if script else {},
                          extra={"cut": ["", ""]})  # fmt: skip


def _boxes(box: Any) -> list[dict[str, Any]]:
    """Boxes with their labels, as the Agent Data Protocol has them; the row keeps its own lists."""
    lists = [box.get(key) for key in ("label", "top_left", "bottom_right")] if isinstance(
        box, dict) else []  # fmt: skip
    if not lists or not all(isinstance(it, list) for it in lists):
        return []
    return [
        {"text": label, "element_type": "button", "bounding_box": {
            "x": left[0], "y": left[1], "width": right[0] - left[0], "height": right[1] - left[1]}}
        for label, left, right in zip(*lists, strict=False)
        if _is_point(left) and _is_point(right)
    ]  # fmt: skip


def _is_point(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(it, int | float) for it in value)
    )
