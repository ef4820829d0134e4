"""Sessions of Continue, against a plain walk over the document."""

from __future__ import annotations

import json

import pytest

from tests.converters.readers.real_files import Rows
from tests.converters.readers.stores import EXAMPLES

PATH = EXAMPLES / "continue_sessions" / "c0c0-1.json"


@pytest.fixture
def rows(tmp_path):
    return Rows([PATH], tmp_path / "store")


def test_messages_calls_and_results(rows):
    history = [entry["message"] for entry in json.loads(PATH.read_bytes())["history"]]
    calls = [call["id"] for message in history for call in message.get("toolCalls", [])]
    turns = [message for message in history if message["role"] == "assistant"]
    assert rows.count("tool_calls") == len(calls)
    assert (
        rows.count("observations") == rows.count("observations", "call is not null") == len(calls)
    )
    assert rows.count("steps", "kind = 'llm_turn'") == len(turns)
    assert rows.total("tokens_in") == sum(turn["usage"]["prompt_tokens"] for turn in turns)
    assert rows.value("select reasoning from steps where step = 1") == "A command first."
    order = "select content from steps where step = 1 and content is not null"
    assert not rows.all(order), "reasoning, text and calls stand in this order, which is the usual"


def test_the_session(rows):
    (run,) = rows.all("select * from trajectories")
    assert (run["session_id"], run["agent_name"], run["agent_model"]) == (
        "c0c0-1", "continue", "bee-2",
    )  # fmt: skip
    assert (run["total_tokens_in"], run["total_cost_usd"]) == (230, 0.05)
