"""Kimi CLI: messages of a context, with times and tokens from the recording beside them."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.converters.readers.samples_store import convert, numbers
from tests.fuzz.readers import EXAMPLES

FOLDER = EXAMPLES / "kimi_cli"
SESSION = FOLDER / "sessions" / "9f1c" / "5b1e0c3a-mill"


@pytest.fixture
def ask(tmp_path):
    return convert(FOLDER, tmp_path / "store")


def test_messages_get_their_times_and_tokens(ask):
    assert numbers(ask) == (1, 1, 1)
    steps = ask("select source, text, synthetic s, timestamp t, tokens_in i, tokens_cached c,"
                " response_id r, steps.extra from steps join trajectories using (seq)"
                " where source_id = '5b1e0c3a-mill' and visibility is distinct from 'none'"
                " order by step")  # fmt: skip
    assert [(it["source"], it["text"], it["s"]) for it in steps] == [
        ("system", "You keep a mill.", None),
        ("user", "<system>CHECKPOINT 0</system>", True),
        ("user", "Is the stone dry?", None),
        ("agent", "I look.", None),
        ("agent", "There is no stone.", None),
        ("user", "Then fetch one.", None),
    ]
    assert [it["t"] and it["t"].second for it in steps] == [None, None, 0, 1, 4, 9]
    assert (steps[3]["i"], steps[3]["c"], steps[3]["r"]) == (110, 80, "chatcmpl-1")
    assert json.loads(steps[3]["extra"]) == {"token_count": 140, "context_usage": 0.01}


def test_results_say_whether_they_failed(ask):
    (result,) = ask("select is_error, timestamp t, text, extra from observations")
    assert (result["is_error"], result["t"].second) == (True, 3)
    assert result["text"].endswith("no such stone")
    assert json.loads(result["extra"])["display"] == [{"type": "brief", "text": "Failed"}]


def test_the_session_and_what_belongs_to_it(ask):
    runs = {it["source_id"]: it for it in ask("select * from trajectories")}
    assert set(runs) == {"5b1e0c3a-mill", "5b1e0c3a-mill/context_1", "a616a2fc4"}
    extra = json.loads(runs["5b1e0c3a-mill"]["extra"])
    assert extra["custom_title"] == "The stone"
    kinds = [it["message"]["type"] for it in extra["wire"] if "message" in it]
    assert kinds == ["ApprovalRequest", "ApprovalResponse", "StepInterrupted"]
    assert "1 steps" in runs["5b1e0c3a-mill"]["losses"]
    assert runs["a616a2fc4"]["agent_model"] == "kimi-k2.6"
    (link,) = ask("select kind, target_session_id t from links")
    assert tuple(link.values()) == ("subagent", "5b1e0c3a-mill")


def test_without_a_recording(tmp_path):
    """The messages of early versions are all there is; so are contexts of subagents."""
    folder = tmp_path / "sessions" / "s-1"
    folder.mkdir(parents=True)
    shutil.copy(SESSION / "context.jsonl", folder)
    shutil.copy(SESSION / "context_1.jsonl", folder / "context_sub_1.jsonl")
    ask = convert(folder.parent, tmp_path / "store")
    assert numbers(ask) == (1, 1, 1)
    assert ask("select count(timestamp) n from steps") == [{"n": 0}]
    assert ask("select target_session_id t from links") == [{"t": "s-1"}]
