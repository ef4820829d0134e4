"""Sessions of the Cline CLI: a document of messages, and what is known of the session beside it."""

from __future__ import annotations

import json

import pytest

from tests.converters.readers.real_files import Rows
from tests.converters.readers.stores import EXAMPLES

FOLDER = EXAMPLES / "cline_sessions"


@pytest.fixture
def rows(tmp_path):
    return Rows([FOLDER], tmp_path / "store")


def test_messages_calls_results_and_tokens(rows):
    document = json.loads((FOLDER / "1786000000000_ab1cd.messages.json").read_bytes())
    blocks = [block for it in document["messages"] for block in it["content"]]
    kinds = [block["type"] for block in blocks]
    tokens = [it["metrics"]["inputTokens"] for it in document["messages"] if "metrics" in it]
    assert rows.count("tool_calls") == kinds.count("tool_use")
    assert rows.count("observations", "call_step is not null") == kinds.count("tool_result")
    assert rows.total("tokens_in") == sum(tokens)
    assert rows.all("select source from steps order by step") == [
        {"source": name} for name in ("system", "user", "agent", "agent")
    ]


def test_results_have_their_text_and_their_failure(rows):
    results = rows.all('select text t, is_error e from observations order by "order"')
    assert [tuple(it.values()) for it in results] == [("7 wool\n", None), ("ENOENT", True)]


def test_the_session_beside_the_messages(rows):
    (run,) = rows.all("select * from trajectories")
    assert (run["agent_version"], run["session_id"]) == ("3.0.65", "1786000000000_ab1cd")
    assert (run["total_tokens_in"], run["total_cost_usd"]) == (230, 0.03)
    assert run["ended_at"] is not None
    assert rows.manifest.counts.used == rows.manifest.counts.records == 2


def test_what_the_cli_prints(tmp_path):
    """Two turns with the tokens of each; a tool that failed."""
    rows = Rows([EXAMPLES / "cline_printed" / "run.jsonl"], tmp_path / "store")
    turns = rows.all("select text t, reasoning r, tokens_in i from steps"
                     " where kind = 'llm_turn' order by step")  # fmt: skip
    assert [tuple(turn.values()) for turn in turns] == [
        ("I count.", "A command first.", 100), ("There is none.", None, 130),
    ]  # fmt: skip
    (result,) = rows.all("select text t, is_error e, call c from observations")
    assert tuple(result.values()) == ("no wool", True, 0)
    (run,) = rows.all("select * from trajectories")
    assert (run["agent_model"], run["total_tokens_in"], run["final_answer"]) == (
        "knit-1", 230, "There is none.",
    )  # fmt: skip
