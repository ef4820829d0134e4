"""Android in the Wild: a row a step, with the screen before the action and two points of touch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adp.converters.datasets.turns import DatasetRow, DatasetTurn, TurnCall, take_text
from adp.converters.kit.source_object import SourceObject
from adp_schema import jsontext

_KEYS = {5: "go_back", 6: "go_home", 7: "enter"}
_TYPE, _TOUCH, _DONE, _IMPOSSIBLE = 3, 4, 10, 11
_LISTS = ("image/ui_annotations_text", "image/ui_annotations_ui_types",
          "image/ui_annotations_positions")  # fmt: skip


def turns(row: DatasetRow) -> Iterator[DatasetTurn]:
    """The goal once; then for each row its screen and its action."""
    rows, row.rows = row.rows, []
    goal = rows[0].text("goal_info")
    yield DatasetTurn("user", goal)
    for source in rows:
        source.drop_text("goal_info", goal)
        image = take_text(source, "image/encoded")
        columns: dict[str, Any] = {"annotations": jsontext.text_of(_boxes(source))}
        for key, column in (("width", "viewport_width"), ("height", "viewport_height")):
            size = source.number(f"image/{key}")
            if size is not None:
                columns[column] = size
        call = _call(source)
        yield DatasetTurn("result", images=[image] if image else [], columns=columns,
                          extra={name: source.values.pop(name) for name in _LISTS
                                 if name in source.values})  # fmt: skip
        yield DatasetTurn("agent", None, [call] if call else [], extra=source.rest())


def _call(source: SourceObject) -> TurnCall | None:
    """The action of a row; its numbers stay in the row where the call says less than they."""
    kind = source.integer_at("results/action_type")
    if kind is None:
        return None
    if kind == _TOUCH:
        points = {
            name: jsontext.decode_array(source.values[f"results/yx_{key}"])
            for key, name in (("touch", "0"), ("lift", "1"))
            if source.copy().items(f"results/yx_{key}")
        }
        values = {f"{axis}{name}": yx[place] for name, yx in points.items() if len(yx) == 2
                  for axis, place in (("x", 1), ("y", 0))}  # fmt: skip
        return TurnCall("touch_and_lift", values, kind="gui")
    if kind == _TYPE:
        return TurnCall("type", {"text": source.word("results/type_action")}, kind="gui")
    if kind in _KEYS:
        return TurnCall("press", {"key_name": _KEYS[kind]}, kind="gui")
    if kind in (_DONE, _IMPOSSIBLE):
        return TurnCall("end", {"succeeds": kind == _DONE}, kind="gui")
    return TurnCall(f"action_{kind}", {}, kind="gui")


def _boxes(source: SourceObject) -> list[dict[str, Any]]:
    """The elements of a screen as the Agent Data Protocol has them."""
    lists = [[jsontext.decode_value(it) for it in source.copy().items(name)] for name in _LISTS]
    return [
        {"text": text, "element_type": kind,
         "bounding_box": {"x": box[1], "y": box[0], "width": box[3], "height": box[2]}}
        for text, kind, box in zip(*lists, strict=False)
        if isinstance(box, list) and len(box) == 4
    ]  # fmt: skip
