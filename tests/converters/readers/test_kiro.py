"""Kiro: conversations of version 1, lines of version 2, lines of the editor, and its database."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from tests.converters.readers.samples_store import convert, numbers, real
from tests.fuzz.readers import EXAMPLES

FOLDER = EXAMPLES / "kiro"


def test_turns_of_a_conversation(tmp_path):
    ask = convert(FOLDER / "conversation.json", tmp_path / "store")
    assert numbers(ask) == (3, 3, 3)
    steps = ask("select source, kind, text, reasoning, model, response_id from steps order by step")
    assert [(it["source"], it["text"]) for it in steps if it["kind"] != "context_edit"] == [
        ("user", "Grind the rye"),
        ("agent", "I look at the sacks first."),
        ("agent", None),
        ("user", "No file, please"),
        ("agent", "Then I only grind."),
    ]
    assert (steps[2]["reasoning"], steps[2]["response_id"]) == ("There may be no rye.", "req-1")
    results = ask('select text, is_error, exit_code from observations order by step, "order"')
    assert (results[0]["is_error"], results[0]["exit_code"]) == (True, 2)
    assert (results[1]["text"], results[1]["is_error"]) == ("40 kg\n\nof rye", False)
    (run,) = ask("select tools, agent_model, extra from trajectories")
    assert json.loads(run["tools"])[0]["function"]["name"] == "execute_bash"
    edits = ask("select edit_summary s from steps where kind = 'context_edit'")
    assert [it["s"] for it in edits] == ["Two sacks of wheat were ground before."]


def test_what_a_tool_was_called_before_is_kept_where_it_differs(tmp_path):
    ask = convert(FOLDER / "conversation.json", tmp_path / "store")
    extras = ask("select extra from tool_calls order by step, call")
    assert [it["extra"] and json.loads(it["extra"])["orig_name"] for it in extras] == [
        None, "weigh", None]  # fmt: skip


def test_lines_with_the_file_about_their_session(tmp_path):
    ask = convert(FOLDER, tmp_path / "store")
    runs = {it["source_id"]: it for it in ask("select * from trajectories")}
    run = runs["0b5e0000-0000-4000-8000-00000000000a"]
    assert (run["agent_model"], run["started_at"].hour) == ("loaf-4", 22)
    where = f"where seq = {run['seq']}"
    steps = ask(f"select source, kind, text from steps {where} order by step")
    assert [it["source"] for it in steps] == [
        "user", "agent", "agent", "system", "environment", "user"]  # fmt: skip
    results = ask(f'select call, exit_code, text from observations {where} order by step, "order"')
    assert [(it["call"], it["exit_code"]) for it in results] == [(1, None), (0, 1)]
    editor = runs["editor-1"]
    assert (editor["agent_name"], editor["ended_at"].minute) == ("kiro", 1)
    results = ask(f"select text, call from observations where seq = {editor['seq']}")
    assert results == [{"text": "nine sacks", "call": 0}]


def test_a_database(tmp_path):
    """Also the same conversation in two folders; tables that are not read are named."""
    path = tmp_path / "data.sqlite3"
    value = (FOLDER / "conversation.json").read_text()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE conversations_v2 (key TEXT, conversation_id TEXT, value TEXT,"
            " created_at INTEGER, updated_at INTEGER, PRIMARY KEY (key, conversation_id));"
            "CREATE TABLE history (id INTEGER, command TEXT); INSERT INTO history VALUES (1, 'ls')"
        )
        for key, text in (("/a", value), ("/b", value), ("/c", "no JSON")):
            row = (key, f"id{key}" if key == "/c" else "conv-mill-1", text, 1772355600000, None)
            connection.execute("INSERT INTO conversations_v2 VALUES (?, ?, ?, ?, ?)", row)
        connection.commit()
    import adp

    store = adp.convert([str(path)], str(tmp_path / "store"))
    counts = store.manifest.counts
    assert (counts.used, counts.skipped, counts.trajectories) == (3, 1, 3)
    assert store.query("select count(*) n from tool_calls").to_pylist() == [{"n": 6}]
    extra = store.query("select extra from trajectories where source_id = 'id/c'").to_pylist()
    assert json.loads(extra[0]["extra"])["conversations_v2"]["value"] == "no JSON"


@pytest.mark.parametrize("both", [False, True])
def test_the_database_of_an_early_version(tmp_path, both):
    """The key is the folder; where there is a table of a later version, that is read."""
    import adp

    path = tmp_path / "data.sqlite3"
    value = json.dumps(json.loads((FOLDER / "conversation.json").read_text()))
    later = "CREATE TABLE conversations_v2 (key TEXT, conversation_id TEXT, value TEXT);"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE conversations (key TEXT PRIMARY KEY, value TEXT);"
            "CREATE TABLE auth_kv (key TEXT PRIMARY KEY, value TEXT);" + later * both
        )
        connection.execute("INSERT INTO conversations VALUES ('/srv/mill', ?)", (value,))
        if both:
            row = ("/srv/mill", "conv-2", value)
            connection.execute("INSERT INTO conversations_v2 VALUES (?, ?, ?)", row)
        connection.commit()
    store = adp.convert([str(path)], str(tmp_path / "store"))
    (run,) = store.query("select source_id, extra from trajectories").to_pylist()
    assert run["source_id"] == ("conv-2" if both else "conv-mill-1")
    table = "conversations_v2" if both else "conversations"
    assert json.loads(run["extra"])[table]["key"] == "/srv/mill"
    assert store.manifest.counts.skipped == both


@pytest.mark.parametrize("line", [{"kind": "Prompt"}, {"type": "x", "payload": {"type": "user"}}])
def test_lines_of_others_are_left_alone(line):
    from adp.converters.readers.kiro import CONVERTER
    from adp_schema import jsontext
    from adp_schema.protocols import Match

    assert CONVERTER.sniff(jsontext.decode_object(json.dumps(line).encode())) == Match.NO


def test_real_conversations(tmp_path):
    """Prompts, answers and calls are those that a walk over the JSON finds."""
    for number, path in enumerate(real("formats_new/kiro/*.json")):
        turns = json.loads(path.read_text())["history"]
        ask = convert(path, tmp_path / str(number))
        asked = [turn["user"]["content"]["Prompt"]["prompt"] for turn in turns
                 if "Prompt" in turn["user"]["content"]]  # fmt: skip
        rows = ask("select text from steps where source = 'user' order by step")
        assert [it["text"] for it in rows] == asked
        answers = [next(iter(turn["assistant"].values())) for turn in turns]
        rows = ask("select native_id, text from steps where source = 'agent' order by step")
        assert [(it["native_id"], it["text"] or "") for it in rows] == [
            (it["message_id"], it["content"]) for it in answers]  # fmt: skip
        calls = [call for it in answers for call in it.get("tool_uses", [])]
        rows = ask("select call_id, name, arguments from tool_calls order by step, call")
        assert [(it["call_id"], it["name"], json.loads(it["arguments"])) for it in rows] == [
            (it["id"], it["name"], it["args"]) for it in calls]  # fmt: skip
