"""Reasoning in tags of turns whose calls are rows of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import adp
from adp.converters.text_calls.dialects.think import DIALECT
from tests.converters.text_calls.dialects.common import calls, check_work

RECIPES = {
    "toolmind": {"source_file": "made", "row_index": 1, "id": "tm-1"},
    "nemotron_agentic": {"uuid": "n-1", "used_in": ["a"]},
}


def messages() -> list[dict[str, Any]]:
    """A chat with calls of its own and reasoning in its texts."""
    function = {"name": "get_time", "arguments": '{"zone": "UTC"}'}
    return [
        {"role": "user", "content": "What time is it?"},
        {"role": "assistant", "content": "<think>\nAsk the clock.\n</think>\nI look.",
         "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "10:00"},
        {"role": "assistant", "content": "<think>Easy.</think>\n\nTen."},
    ]  # fmt: skip


def test_there_are_no_actions_and_no_results() -> None:
    assert calls(DIALECT, DIALECT.example) == []
    assert DIALECT.results_in("Observation: 1", ()) == ()
    assert not DIALECT.automatic
    check_work(DIALECT, ["<think>", "</think>", "<think>a</think>\n"])


def test_reasoning_beside_calls_is_taken_by_recipes(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "get_time", "parameters": {}}}
    for name, more in RECIPES.items():
        key = "conversations" if name == "toolmind" else "messages"
        source = tmp_path / f"{name}.jsonl"
        source.write_text(json.dumps({key: messages(), "tools": [tool], **more}) + "\n")
        (run,) = adp.convert([source], tmp_path / name)
        assert run.dataset == name
        agent = [step for step in run.steps if step.source == "agent"]
        assert [step.reasoning for step in agent] == ["Ask the clock.", "Easy."]
        assert [step.prose for step in agent] == ["I look.", "Ten."]
        assert [call.name for step in agent for call in step.calls] == ["get_time"]
        assert [it.text for step in agent for it in step.observations] == ["10:00"]
