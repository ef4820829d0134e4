"""Real samples: turns of raw files, and the actions of the Agent Data Protocol for them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.samples import ROOT

_ROLES = {"gpt": "assistant", "human": "user", "ai": "assistant"}


def sample(path: str) -> Any:
    """The content of a JSON or JSON Lines file of the samples; skips the test when it is gone."""
    file = ROOT / path
    if not file.exists():
        pytest.skip(f"the sample {path} is not there")
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return json.loads(text)


def chats(path: str) -> Iterator[list[tuple[str, str]]]:
    """The chats of a raw file: role and text of each turn."""
    for record in sample(path):
        listed = next(
            record[key] for key in ("conversations", "conversation", "messages", "trajectory")
            if key in record
        )  # fmt: skip
        yield [_turn(turn) for turn in listed]


def _turn(turn: dict[str, Any]) -> tuple[str, str]:
    role = turn.get("role") or turn.get("from") or ""
    text = next((turn[key] for key in ("content", "value", "text") if turn.get(key)), "")
    return _ROLES.get(role, role), text


def agent_turns(path: str) -> list[str]:
    """The texts of the agent in a raw file."""
    return [text for chat in chats(path) for role, text in chat if role == "assistant"]


def standard_actions(path: str) -> list[tuple[str, Any]]:
    """Name and arguments of the API actions, language and code of the code actions of a file."""
    actions: list[tuple[str, Any]] = []
    for run in sample(path):
        for item in run["content"]:
            if item["class_"] == "api_action":
                values = {key: _unquoted(value) for key, value in item["kwargs"].items()}
                actions.append((item["function"], values))
            elif item["class_"] == "code_action":
                actions.append((item["language"], item["content"]))
    return actions


def _unquoted(value: Any) -> Any:
    """The value of an argument, which may be the source text of a literal."""
    if not isinstance(value, str) or not re.fullmatch(r"\d+|(['\"]).*\1", value, re.DOTALL):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value[1:-1]
