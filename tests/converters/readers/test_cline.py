"""Cline and Roo Code: what the model saw, and what the user saw."""

from __future__ import annotations

import json
from pathlib import Path

from tests.converters.readers.real_files import Rows

EXAMPLES = Path(__file__).parent / "examples/cline"


def test_what_the_model_saw(tmp_path):
    rows = Rows([EXAMPLES / "api_conversation_history.json"], tmp_path / "store")
    steps = rows.all("select kind, text, model, tokens_in, cost_usd from steps order by step")
    kinds = ["message", "llm_turn", "llm_turn", "context_edit"]
    assert [step["kind"] for step in steps] == kinds
    assert (steps[1]["model"], steps[1]["tokens_in"], steps[1]["cost_usd"]) == (
        "model-n",
        300,
        0.004,
    )
    assert rows.count("observations", "call is not null and text = '4 balls'") == 1


def test_what_the_user_saw(tmp_path):
    """A request is a turn with its tokens and the texts that follow it."""
    folder = tmp_path / "task"
    folder.mkdir()
    (folder / "ui_messages.json").write_bytes((EXAMPLES / "ui_messages.json").read_bytes())
    rows = Rows([folder], tmp_path / "store")
    steps = rows.all("select source, kind, text, reasoning, tokens_in, tokens_out, tokens_cached,"
                     " cost_usd from steps order by step")  # fmt: skip
    assert [tuple(step.values()) for step in steps] == [
        ("user", "message", "Knit a scarf", None, None, None, None, None),
        ("agent", "llm_turn", "I count the wool.", "Wool first.", 500, 12, 200, 0.004),
        ("environment", "event", None, None, None, None, None, None),
        ("user", "message", "Make it blue", None, None, None, None, None),
        ("agent", "llm_turn", None, None, None, None, None, None),
    ]


def test_requests_give_their_tokens_to_the_turns_of_the_conversation(tmp_path):
    rows = Rows([EXAMPLES / "task_2"], tmp_path / "store")
    turns = rows.all("select text, tokens_in, tokens_out, cost_usd from steps"
                     " where source = 'agent' order by step")  # fmt: skip
    assert [tuple(turn.values()) for turn in turns] == [
        ("I look.", 150, 10, 0.01),
        ("It is grey.", 200, 5, 0.02),
    ]
    assert rows.count("trajectories") == 1
    assert rows.count("steps", "kind = 'event' and visibility = 'user'") == 6
    assert rows.count("observations", "call is not null") == 1


def test_requests_without_a_turn_are_in_the_totals(tmp_path):
    """A request that was cut off has no turn; times, and places, tell the others."""
    folder = tmp_path / "task"
    folder.mkdir()
    for name in ("api_conversation_history.json", "ui_messages.json"):
        text = (EXAMPLES / "task_2" / name).read_text("utf-8")
        entries = json.loads(text)
        if name == "ui_messages.json":
            entries.insert(4, {**entries[4], "ts": 1786000102500, "conversationHistoryIndex": 7})
        (folder / name).write_text(json.dumps(entries), "utf-8")
    rows = Rows([folder], tmp_path / "store")
    assert rows.total("tokens_in") == 350
    (run,) = rows.all("select * from trajectories")
    assert (run["total_tokens_in"], run["total_tokens_out"]) == (550, 20)


def test_calls_that_are_tags_in_the_text(tmp_path):
    """Calls with their places, results by the order, and what is left of the text."""
    rows = Rows([EXAMPLES / "tagged.json"], tmp_path / "store")
    calls = rows.all("select * from calls order by step")
    assert [(it["name"], json.loads(it["arguments"])) for it in calls] == [
        ("read_file", {"path": "clock.py"}),
        ("write_to_file", {"path": "clock.md",
                           "content": "Call <read_file><path>x</path></read_file> first."}),
        ("attempt_completion", {"result": "It is mended."}),
    ]  # fmt: skip
    for call in calls:
        text = rows.value(f"select text from steps where step = {call['step']}")
        tag = text[call["span_start"] : call["span_end"]]
        assert tag.startswith(f"<{call['name']}>")
        assert tag.endswith(f"</{call['name']}>")
    results = rows.all("select name, is_error, call_step from observations order by step")
    assert [(it["name"], it["is_error"]) for it in results] == [
        ("read_file", False), ("write_to_file", True)
    ]  # fmt: skip
    assert [it["call_step"] for it in results] == [calls[0]["step"], calls[1]["step"]]
    assert rows.value("select prose from steps where text like 'Now I write%'") == "Now I write."
    assert rows.count("steps", "source = 'user' and text like '%clock.py%environment%'") == 1


def test_what_lies_beside_a_conversation(tmp_path):
    folder = tmp_path / "task"
    folder.mkdir()
    (folder / "api_conversation_history.json").write_bytes((EXAMPLES / "tagged.json").read_bytes())
    (folder / "task_metadata.json").write_text(
        json.dumps({"files_in_context": [], "model_usage": [{"ts": 1, "model_id": "model-m"}]})
    )
    (folder / "history_item.json").write_text(
        json.dumps({"id": "t-1", "task": "Mend", "tokensIn": 90, "tokensOut": 8, "totalCost": 0.5})
    )
    rows = Rows([folder], tmp_path / "store")
    (row,) = rows.all("select * from trajectories")
    assert (row["agent_model"], row["session_id"], row["total_tokens_in"], row["total_tokens_out"],
            row["total_cost_usd"]) == ("model-m", "t-1", 90, 8, 0.5)  # fmt: skip
    assert rows.manifest.counts.rejected == 0
