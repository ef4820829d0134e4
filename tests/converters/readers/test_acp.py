"""Logs of the Agent Client Protocol."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.converters.readers.real_files import Rows, real, silent

EXAMPLE = Path(__file__).parent / "examples/acp/updates.jsonl"


@pytest.fixture
def rows(tmp_path):
    return Rows([EXAMPLE], tmp_path / "store")


def test_pieces_are_put_together(rows):
    turns = rows.all("select * from steps where kind = 'llm_turn' order by step")
    assert turns[0]["reasoning"] == "The tomatoes need some water."
    assert turns[0]["text"] == "I water all of the tomatoes now."
    assert turns[1]["text"] == "Everything has been watered\n\n and it was fun, indeed"
    assert turns[-1]["stop_reason"] == "end_turn"
    assert turns[-1]["tokens_in"] == 80
    assert rows.count("steps", "source = 'user'") == 2
    assert rows.count("media", "mime = 'image/png'") == 1


def test_calls_grow_by_their_id(rows):
    calls = rows.all("select call_id, name, arguments, status from tool_calls order by step, call")
    assert [(call["call_id"], call["name"]) for call in calls] == [
        ("w1", "run_hose"),
        ("w2", "read_file"),
        ("w3", "late"),
    ]
    assert json.loads(calls[0]["arguments"]) == {"litres": 5}
    results = rows.all('select * from observations order by step, "order"')
    assert [(row["call_id"], row["is_error"]) for row in results] == [("w1", False), ("w2", True)]
    assert results[0]["text"] == "watered with five litres"
    assert results[0]["exit_code"] == 0
    assert results[1]["text"] == "no such file"


@pytest.mark.parametrize("path", real("formats*/grok_cli/*updates.jsonl"))
def test_real_files(path, tmp_path):
    rows = Rows([path], tmp_path / "store")
    updates = [json.loads(line)["params"]["update"] for line in path.read_text().splitlines()]
    calls = {update["toolCallId"] for update in updates if "toolCallId" in update}
    ends = [update for update in updates if update.get("status") in ("completed", "failed")]
    assert rows.count("tool_calls") == len(calls)
    assert rows.count("observations", "call is not null") == len(ends)
    failed = sum(update["status"] == "failed" for update in ends)
    assert rows.count("observations", "is_error") == failed
    assert silent("acp", path) == []
