"""Mistral Vibe: messages of a chat, and what is known of their session beside them."""

from __future__ import annotations

import json

import pytest

from tests.converters.readers.samples_store import convert, numbers, real
from tests.fuzz.readers import EXAMPLES

FOLDER = EXAMPLES / "mistral_vibe"


@pytest.fixture
def ask(tmp_path):
    return convert(FOLDER / "session_20260501_1", tmp_path / "store")


def test_messages_calls_and_results(ask):
    assert numbers(ask) == (2, 2, 2)
    steps = ask("select source, text, reasoning, synthetic s, model, native_id n from steps"
                " join trajectories using (seq) where source_id = 'vibe-1'"
                " order by step")  # fmt: skip
    assert [(it["source"], it["n"], it["s"]) for it in steps] == [
        ("system", "v-0", None),
        ("user", "v-1", None),
        ("agent", "v-2", None),
        ("user", "v-4", True),
        ("agent", "v-5", None),
        ("environment", None, None),
    ]
    assert (steps[2]["reasoning"], steps[2]["model"]) == ("The stone first.", "mill-medium")
    assert steps[4]["model"] == "mill-large"
    results = ask('select name, call from observations order by "order"')
    assert [tuple(it.values()) for it in results] == [("grep", 1), ("bash", 0)]


def test_the_session_beside_the_messages(ask):
    (run,) = ask("select * from trajectories where source_id = 'vibe-1'")
    totals = (run["total_tokens_in"], run["total_tokens_out"], run["total_tokens_cached"])
    assert (*totals, run["total_cost_usd"]) == (1000, 50, 300, 0.25)
    assert (run["agent_model"], run["tools_origin"]) == ("mill-medium", "recorded")
    assert json.loads(run["extra"])["environment"]["working_directory"] == "/srv/mill"
    links = ask("select kind, target_session_id t from links order by kind")
    assert [tuple(it.values()) for it in links] == [
        ("continuation", "vibe-0"),
        ("subagent", "vibe-1"),
    ]


def test_real_sessions(tmp_path):
    """Messages and tokens are those that a walk over the JSON finds."""
    for number, path in enumerate(real("formats_new/mistral_vibe/*/messages.jsonl")):
        ask = convert(path.parent, tmp_path / str(number))
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        meta = json.loads((path.parent / "meta.json").read_text())
        talk = [(line["message_id"], line["content"]) for line in lines]
        rows = ask("select native_id, text from steps order by step")
        assert [tuple(it.values()) for it in rows] == talk
        (run,) = ask("select * from trajectories")
        assert run["source_id"] == meta["session_id"]
        assert run["total_tokens_in"] == meta["stats"]["session_prompt_tokens"]
        assert run["total_tokens_out"] == meta["stats"]["session_completion_tokens"]


def test_the_document_of_an_early_session(tmp_path):
    ask = convert(FOLDER / "session_20251210_1.json", tmp_path / "document")
    assert numbers(ask) == (1, 1, 1)
    (run,) = ask("select agent_name, session_id, agent_model, total_tokens_in from trajectories")
    assert tuple(run.values()) == ("mistral-vibe", "vibe-early", "mill-small", 100)


def test_a_printed_list_of_messages_with_ids(tmp_path):
    path = tmp_path / "printed.json"
    messages = [{"role": "user", "content": "Grind", "message_id": "p-1"},
                {"role": "assistant", "content": "Done.", "message_id": "p-2"}]  # fmt: skip
    path.write_text(json.dumps(messages), "utf-8")
    ask = convert(path, tmp_path / "store")
    assert ask("select agent_name from trajectories") == [{"agent_name": "mistral-vibe"}]
    assert len(ask("select * from steps")) == 2
