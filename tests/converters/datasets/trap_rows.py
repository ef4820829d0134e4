"""Rows of tests of traps, written for them."""

from __future__ import annotations

from typing import Any

from adp import Store
from tests.converters.datasets.stores import table


def chat(*turns: str) -> list[dict[str, str]]:
    """Messages of a user and an assistant by turns."""
    return [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(turns)]


def turns_of(*turns: str) -> list[dict[str, str]]:
    """Turns of a person and a model by turns, as ShareGPT has them."""
    return [{"from": ("human", "gpt")[n % 2], "value": text} for n, text in enumerate(turns)]


def linked(store: Store) -> int:
    """How many results belong to a call."""
    return sum(row["call"] is not None for row in table(store, "observations"))


TOOL = {
    "type": "function",
    "function": {
        "name": "tide",
        "description": "High water.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}
SAMPLES: dict[str, dict[str, Any]] = {
    "rlla": {
        "instruction": (
            "You can use the following tools:\n1. Name: tide\nDescription: d\n"
            "Parameters: {}\n"
            '<tool_call>\n{"name": "Tool name", "parameters": {}}\n</tool_call>'
        ),
        "input": "**Dialogue Records History**\n<user> Hello </user>",
        "output": "<think> A greeting. </think>\n<response> Hello. </response>",
    },
    "webdancer": {
        "type": "chatml",
        "task": "t",
        "tool_calls": [],
        "answer": [["a"]],
        "tag": "x",
        "functions": [{"name_for_model": "search", "parameters": {}}],
        "messages": chat(
            (
                'Write <tool_call>\n{"name": "search", "arguments": {}}\n'
                "</tool_call> <answer> sample </answer>\n\nUser: Two and two?"
            ),
            "<think>\nEasy.\n</think>\n<answer>\n4\n</answer>",
        ),
    },
    "terminus": {
        "agent": "terminus-2",
        "model": "m",
        "task": "t",
        "episode": "0",
        "conversations": chat(
            (
                'Respond with {"analysis": "a", "plan": "p", "commands": [{"keystrokes": "ls\\n'
                '", "duration": 0.1}]}\n\nTask Description:\nWait.\n\n'
                "Current terminal state:\n$"
            ),
            '{"analysis": "nothing to do", "plan": "none", "commands": [], "task_complete": false}',
        ),
    },
}
"""Prompts that show what a call looks like, in which nothing is called."""
