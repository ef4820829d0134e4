"""AndroidControl: screenshots with their trees, and the actions between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from adp.converters.datasets.turns import DatasetRow, DatasetTurn, TurnCall
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext

_SIZES = {"screenshot_widths": "viewport_width", "screenshot_heights": "viewport_height"}
_LARGEST = 1 << 53
_TEXTS = ("text", "content_description", "hint_text", "tooltip")


def turns(row: DatasetRow) -> Iterator[DatasetTurn]:
    """The goal; then a screen before each action, and one after the last."""
    yield DatasetTurn("user", row.take_text("goal"))
    names = ("screenshots", "accessibility_trees", "screenshot_widths", "screenshot_heights",
             "actions", "step_instructions")  # fmt: skip
    lists = {name: row.items(name) for name in names}
    for number in range(max(map(len, lists.values()))):
        item = {name: values[number] for name, values in lists.items() if number < len(values)}
        seen = _seen(item)
        if seen is not None:
            yield seen
        if "actions" in item or "step_instructions" in item:
            yield DatasetTurn("agent", _text(item.get("step_instructions")), _calls(item))


def _seen(item: dict[str, Raw]) -> DatasetTurn | None:
    image, tree = _text(item.get("screenshots")), item.get("accessibility_trees")
    sizes = [key for key in _SIZES if key in item]
    if image is None and tree is None and not sizes:
        return None
    columns: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    if tree is not None:
        columns["structured"] = jsontext.one_line(tree)
        columns["annotations"] = jsontext.text_of(_boxes(tree))
    for key in sizes:
        size = jsontext.decode_value(item[key])
        if isinstance(size, int | float) and abs(size) < _LARGEST:
            columns[_SIZES[key]] = float(size)
        else:
            extra[key] = item[key]
    return DatasetTurn("result", images=[image] if image else [], columns=columns, extra=extra)


def _calls(item: dict[str, Raw]) -> list[TurnCall]:
    raw = item.get("actions")
    if raw is None or jsontext.first_byte(raw) != BRACE:
        return []
    fields = jsontext.decode_object(raw)
    name = fields.pop("action_type", None)
    return [TurnCall(_text(name), fields, kind="gui")]


def _text(raw: Raw | None) -> str | None:
    value = None if raw is None else jsontext.decode_value(raw)
    return value if value is None or isinstance(value, str) else jsontext.one_line(raw or Raw())


def _boxes(tree: Raw) -> list[dict[str, Any]]:
    """The elements of a screen as the Agent Data Protocol has them."""
    nodes = jsontext.decode_value(tree) if jsontext.first_byte(tree) == BRACKET else []
    boxes = []
    for node in nodes:
        box = node.get("bbox_pixels") if isinstance(node, dict) else None
        if isinstance(box, dict):
            text = next((node[key] for key in _TEXTS if node.get(key)), "")
            place = {"x": box.get("x_min"), "y": box.get("y_min"),
                     "width": box.get("width"), "height": box.get("height")}  # fmt: skip
            boxes.append({"text": text, "element_type": node.get("class_name") or "",
                          "bounding_box": place})  # fmt: skip
    return boxes
