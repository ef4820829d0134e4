"""Calls that stood in texts, written as calls by the format that they were read from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import adp
from tests.converters.text_calls.test_store import run

CALLING = run(2)


def sharegpt(record: dict[str, Any]) -> dict[str, Any]:
    roles = {"system": "system", "user": "human", "assistant": "gpt"}
    turns = [{"from": roles[it["role"]], "value": it["content"]} for it in record["messages"]]
    return {"id": str(record["id"]), "conversations": turns, "note": "kept"}


def export(record: dict[str, Any], to: str, folder: Path, *, structured: bool) -> dict[str, Any]:
    (folder / "rows.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    store = adp.convert(folder / "rows.jsonl", folder / "store", dialect="react")
    out = folder / "out"
    adp.export(store, to, out, structured=structured)
    (line,) = (out / "rows.jsonl").read_text("utf-8").splitlines()
    return json.loads(line)


def test_chats_get_tool_calls(tmp_path: Path) -> None:
    record = export({**CALLING, "note": "kept"}, "openai_chat", tmp_path, structured=True)
    messages = record["messages"]
    roles = ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert [it["role"] for it in messages] == roles
    (call,) = messages[2]["tool_calls"]
    assert call["function"]["name"] == "search"
    assert json.loads(call["function"]["arguments"]) == {"q": "2"}
    assert not messages[2].get("content")
    assert messages[2]["reasoning_content"] == "look 0"
    assert messages[3]["content"] == "result 0"
    assert messages[3]["tool_call_id"] == call["id"]
    assert messages[6]["content"] == "it is so"
    assert record["note"] == "kept"


def test_sharegpt_gets_turns_of_calls(tmp_path: Path) -> None:
    record = export(sharegpt(CALLING), "sharegpt", tmp_path, structured=True)
    assert "Action Input" not in json.dumps(record["conversations"][2:])
    calls = [it["value"] for it in record["conversations"] if it["from"] == "function_call"]
    assert [json.loads(call)["name"] for call in calls] == ["search", "search"]
    assert record["note"] == "kept"
    observations = [it["value"] for it in record["conversations"] if it["from"] == "observation"]
    assert observations == ["result 0", "result 1"]


@pytest.mark.parametrize("to", ["openai_chat", "sharegpt"])
def test_without_it_the_texts_come_back(to: str, tmp_path: Path) -> None:
    record = CALLING if to == "openai_chat" else sharegpt(CALLING)
    assert export(record, to, tmp_path, structured=False) == record
