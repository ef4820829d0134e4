"""Hermes Agent: exports, documents, and rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.converters.readers.real_files import Rows, real, silent

EXAMPLES = Path(__file__).parent / "examples/hermes_agent"


def test_an_export(tmp_path):
    rows = Rows([EXAMPLES / "export.jsonl"], tmp_path / "store")
    run, other = rows.all("select * from trajectories order by seq")
    assert (run["total_tokens_in"], run["total_tokens_cached"]) == (405, 300)
    assert (run["total_cost_usd"], run["stop_reason"]) == (0.03, "user_exit")
    assert other["source_id"] == "he-2"
    assert rows.value("select target_session_id from links") == "he-0"
    steps = rows.all("select source, text, reasoning, tokens_out, visibility from steps"
                     " order by seq, step")  # fmt: skip
    assert steps[0] | {"source": "system", "text": "You are a messenger."} == steps[0]
    assert (steps[2]["reasoning"], steps[2]["tokens_out"]) == ("Count first.", 17)
    assert [step["visibility"] for step in steps[:5]] == [None, None, None, "none", None]
    calls = rows.all("select name, arguments, arguments_raw from tool_calls order by call")
    assert [call["arguments_raw"] for call in calls] == [None, "not json"]
    assert rows.count("observations", "call is not null") == 2


def test_a_document_and_rows(tmp_path):
    rows = Rows([EXAMPLES / "document.json", EXAMPLES / "rows.json"], tmp_path / "store")
    assert rows.count("trajectories", "tools_origin = 'recorded'") == 1
    prompts = rows.all("select text from steps where source = 'system' order by seq")
    assert [prompt["text"] for prompt in prompts] == ["Be brief.", "Bow politely."]
    assert rows.count("steps", "text = 'Good day' and source = 'user'") == 1
    assert rows.count("tool_calls", "name = 'bow'") == 1


@pytest.mark.parametrize("path", real("formats*/hermes_agent/*.json*"))
def test_real_files(path, tmp_path):
    rows = Rows([path], tmp_path / "store")
    text = path.read_text()
    records = ([json.loads(text)] if path.suffix == ".json"
               else [json.loads(line) for line in text.splitlines()])  # fmt: skip
    messages = [message for record in records for message in record["messages"]]
    roles = [message["role"] for message in messages]
    for role, source in (("user", "user"), ("assistant", "agent")):
        assert rows.count("steps", f"source = '{source}'") == roles.count(role)
    assert rows.count("observations", "call is not null") == roles.count("tool")
    calls = sum(len(message.get("tool_calls") or []) for message in messages)
    assert rows.count("tool_calls") == calls
    thoughts = sum(bool(message.get("reasoning") or message.get("reasoning_content"))
                   for message in messages)  # fmt: skip
    assert rows.count("steps", "reasoning is not null") == thoughts
    assert silent("hermes_agent", path) == []
