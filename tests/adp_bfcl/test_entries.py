"""What is wrong with a row of questions is said in a sentence."""

from __future__ import annotations

import pytest

from adp_bfcl.entries import BadRowError, entry_of

FUNCTION = {"name": "f", "parameters": {"type": "dict", "properties": {}}}
ROW = {
    "id": "simple_python_0",
    "question": [[{"role": "user", "content": "Do it."}]],
    "function": [FUNCTION],
    "ground_truth": [{"f": {}}],
}
TURNS = {
    "id": "multi_turn_base_0",
    "question": [[{"role": "user", "content": "Do it."}]],
    "involved_classes": ["MathAPI"],
    "initial_config": {},
    "ground_truth": [["mean(numbers=[1])"]],
}


def test_the_rows_are_right_as_they_are():
    entry = entry_of(ROW)
    assert (entry.category, entry.answers, entry.scorable) == ("simple_python", [{"f": {}}], True)
    assert entry_of({**ROW, "function": FUNCTION}).functions == [FUNCTION]
    turns = entry_of({**TURNS, "missed_function": {"1": [{"name": "mean"}, "sum"]}})
    assert turns.held_back == {1: ["mean", "sum"]}


@pytest.mark.parametrize(
    ("row", "changes", "message"),
    [
        (ROW, {"id": None}, "it has no id"),
        (ROW, {"id": ""}, "it has no id"),
        (ROW, {"question": "Do it."}, "no list of turns"),
        (ROW, {"question": [[], "x"]}, "no list of messages"),
        (ROW, {"question": [[{"role": "user"}]]}, "has no text"),
        (ROW, {"question": [[{"content": "x"}]]}, "has no role"),
        (ROW, {"function": "f"}, "its function is no list"),
        (ROW, {"function": []}, "it has no function"),
        (ROW, {"function": [{"parameters": {}}]}, "has no name"),
        (ROW, {"function": [{"name": "f", "parameters": []}]}, "no parameters.properties"),
        (ROW, {"ground_truth": {"f": {}}}, "is no list"),
        (ROW, {"ground_truth": [{"f": {}, "g": {}}]}, "no single call"),
        (ROW, {"ground_truth": [{"f": []}]}, "has no parameters"),
        (TURNS, {"ground_truth": [{"f": {}}]}, "no list of calls"),
        (TURNS, {"involved_classes": []}, "has no involved_classes"),
        (TURNS, {"involved_classes": "MathAPI"}, "no list of names"),
        (TURNS, {"initial_config": []}, "initial_config is no object"),
        (TURNS, {"missed_function": {"one": []}}, "no number of a turn"),
        (TURNS, {"missed_function": {"1": [7]}}, "no list of names"),
    ],
)
def test_what_is_wrong_is_said(row, changes, message):
    with pytest.raises(BadRowError, match=message):
        entry_of({**row, **changes})
    with pytest.raises(BadRowError, match="no object"):
        entry_of([row])
