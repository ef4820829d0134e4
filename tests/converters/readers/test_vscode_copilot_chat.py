"""Copilot Chat in VS Code: requests, rounds, and what the editor shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.converters.readers.real_files import Rows, real, silent

EXAMPLE = Path(__file__).parent / "examples/vscode_copilot_chat/chat.json"


def test_rounds(tmp_path):
    rows = Rows([EXAMPLE], tmp_path / "store")
    steps = rows.all("select source, kind, text, reasoning, tokens_in from steps order by step")
    assert [step["source"] for step in steps] == ["user", "user", "agent", "agent", "user", "agent"]
    assert steps[1]["text"].endswith("Is the roof whole?")
    assert (steps[2]["reasoning"], steps[2]["text"]) == ("Read the file.", "I look.")
    assert (steps[3]["text"], steps[3]["tokens_in"]) == ("It is whole.", 700)
    assert steps[5]["text"] == "I mend \n\n now."
    first, second = rows.all("select * from observations order by step")
    assert (first["call"], first["text"]) == (0, "line one\nline two\nplain end")
    assert second["name"] == "copilot_runInTerminal"
    (run,) = rows.all("select * from trajectories")
    assert (run["error_type"], run["agent_version"]) == ("rateLimited", "0.33.1")


@pytest.mark.slow
@pytest.mark.parametrize("path", real("formats_new/vscode_copilot_chat/*.json"))
def test_real_files(path, tmp_path):
    rows = Rows([path], tmp_path / "store")
    requests = json.loads(path.read_text())["requests"]
    data = [request["result"]["metadata"] for request in requests]
    rounds = [done for metadata in data for done in metadata["toolCallRounds"]]
    asked = [call["id"] for done in rounds for call in done["toolCalls"]]
    assert rows.count("steps", "kind = 'llm_turn'") == len(rounds)
    assert rows.count("tool_calls") == len(asked)
    answered = sum(name in metadata["toolCallResults"] for metadata in data for name in asked)
    assert rows.count("observations", "call is not null") == answered
    assert rows.count("observations", "length(text) > 10") == answered
    assert silent("vscode_copilot_chat", path) == []
