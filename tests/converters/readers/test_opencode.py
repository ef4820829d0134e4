"""opencode: exports, rows of its database, and printed events."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from tests.converters.readers.real_files import Rows, real

EXAMPLES = Path(__file__).parent / "examples/opencode"


@pytest.fixture
def export(tmp_path):
    return Rows([EXAMPLES / "export.json"], tmp_path / "store")


def test_turns_of_a_message_have_their_own_usage(export):
    steps = export.all(
        "select source, kind, reasoning, text, tokens_in, tokens_out, tokens_reasoning, cost_usd,"
        " stop_reason from steps where native_id = 'msg_02' order by step"
    )
    first, second = steps
    assert (first["tokens_in"], first["tokens_out"]) == (200, 42)  # reasoning was apart
    assert (second["tokens_in"], second["tokens_out"]) == (320, 9)
    assert [step["cost_usd"] for step in steps] == [0.01, 0.0025]
    assert [step["stop_reason"] for step in steps] == ["tool-calls", "stop"]
    assert first["reasoning"] == "Look at the rows."
    assert second["text"] == "Twelve."
    assert export.value("select round(sum(cost_usd), 4) from steps") == 0.5125


def test_calls_and_results(export):
    results = export.all(
        "select c.name, c.status, c.duration_ms, o.text, o.is_error, o.exit_code from tool_calls c"
        " left join observations o on o.call_step = c.step and o.call = c.call"
        " order by c.step, c.call"
    )
    assert [(row["name"], row["is_error"], row["exit_code"]) for row in results] == [
        ("bash", False, 0),
        ("read", True, None),
        ("task", False, None),
        ("bash", None, None),
    ]
    assert results[0]["duration_ms"] == 250.0
    assert results[3]["status"] == "running"
    (link,) = export.all("select kind, step, call, target_session_id from links")
    assert link == {"kind": "subagent", "step": 2, "call": 2, "target_session_id": "ses_child7"}


def test_a_summary_replaces_the_context_but_for_its_tail(export):
    (edit,) = export.all("select * from steps where kind = 'context_edit'")
    assert edit["edit_summary"] == "Twelve trees were counted."
    assert edit["edit_boundary"] == "replace"
    kept = export.all("select native_id from steps where step in (2, 4) order by step")
    assert (edit["edit_from"], edit["edit_to"]) == (2, 4)
    assert [row["native_id"] for row in kept] == ["msg_02", "msg_03"]


def test_what_was_taken_back_is_a_branch(export):
    main, branch = export.all("select * from all_trajectories order by seq")
    assert main["parent_id"] is None
    assert branch["branch_kind"] == "rewind"
    assert branch["parent_step"] == 9
    texts = export.all("select text from steps where step >= 9 order by step")
    assert [row["text"] for row in texts] == ["Never mind.", "Fine."]


def test_system_prompt_and_images(export):
    assert export.all("select source, text from steps where step = 0") == [
        {"source": "system", "text": "Answer in one line."}
    ]
    assert export.count("media", "mime = 'image/png'") == 1


def test_printed_events(tmp_path):
    rows = Rows([EXAMPLES / "printed.jsonl"], tmp_path / "store")
    assert rows.value("select session_id from trajectories") == "ses_print1"
    assert rows.value("select error_message from trajectories") == "the pipe broke"
    assert rows.count("steps", "kind = 'llm_turn'") == 2
    assert rows.count("observations", "call is not null") == rows.count("tool_calls") == 1
    assert rows.total("tokens_in") == 16 + 24


def test_rows_of_the_database(tmp_path):
    rows = Rows([EXAMPLES / "rows.json"], tmp_path / "store")
    assert [row["source"] for row in rows.all("select source from steps order by step")] == [
        "user",
        "agent",
        "agent",
    ]
    assert rows.total("tokens_in") == 6
    assert rows.count("observations", "call is not null") == 1


@pytest.mark.parametrize("path", real("formats/opencode/*.db"))
def test_real_rows(path, tmp_path):
    base = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    base.row_factory = sqlite3.Row
    tables = {
        name: [dict(row) for row in base.execute(f"select * from {name}")]
        for name in ("session", "message", "part")
    }
    tables["session"] = tables["session"][0]
    record = tmp_path / "record.json"
    record.write_text(json.dumps(tables))
    rows = Rows([record], tmp_path / "store")
    parts = [json.loads(row["data"]) for row in tables["part"]]
    messages = [json.loads(row["data"]) for row in tables["message"]]
    tools = [part for part in parts if part["type"] == "tool"]
    assert rows.count("tool_calls") == len(tools)
    assert rows.count("observations", "call is not null") == len(tools)
    failed = sum(part["state"]["status"] == "error" for part in tools)
    assert rows.count("observations", "is_error") == failed
    tokens = [message["tokens"] for message in messages if "tokens" in message]
    written = sum(used["input"] + used["cache"]["read"] for used in tokens)
    assert rows.total("tokens_in") == written
    assert rows.count("steps", "source = 'user'") == 1


@pytest.mark.parametrize("path", real("formats_new/opencode/*/message/*/*.json"))
def test_files_of_the_old_folder_are_named(path, tmp_path):
    rows = Rows([path], tmp_path / "store")
    assert rows.manifest.counts.skipped == 1


def test_a_part_that_is_printed_again_is_read_once(tmp_path):
    rows = Rows([EXAMPLES / "updates.jsonl"], tmp_path / "store")
    assert rows.all("select name, status from tool_calls") == [
        {"name": "bash", "status": "completed"}
    ]
    assert rows.all("select text, exit_code from observations") == [
        {"text": "oars", "exit_code": 0}
    ]
    assert rows.all("select text from steps") == [{"text": "I look into it."}]
    assert rows.total("tokens_out") == 3


def test_events_of_the_server_are_messages_with_their_last_parts(tmp_path):
    rows = Rows([EXAMPLES / "server.jsonl"], tmp_path / "store")
    main, agent = rows.all("select * from all_trajectories order by seq")
    assert (main["session_id"], main["agent_model"]) == ("ses_srv1", "oak-1")
    assert (agent["session_id"], agent["branch_kind"]) == ("ses_srv2", "subagent")
    steps = rows.all("select seq, source, text from steps where kind <> 'event' order by seq, step")
    assert [(row["seq"], row["source"], row["text"]) for row in steps] == [
        (main["seq"], "user", "How many oaks?"),
        (main["seq"], "agent", None),
        (agent["seq"], "user", "count"),
        (agent["seq"], "agent", "Seven."),
    ]
    assert rows.all("select status from tool_calls") == [{"status": "completed"}]
    assert rows.all("select text from observations") == [{"text": "Seven."}]
    assert rows.total("tokens_in") == 50
    assert rows.value("select target_session_id from links") == "ses_srv2"
