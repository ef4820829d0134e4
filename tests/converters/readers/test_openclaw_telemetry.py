"""OpenClaw's telemetry: events joined to the messages that say the same, and the sessions."""

from __future__ import annotations

import json

import pytest

from tests.converters.readers.samples_store import convert, numbers, real
from tests.fuzz.readers import EXAMPLES


@pytest.fixture
def ask(tmp_path):
    return convert(EXAMPLES / "openclaw_telemetry", tmp_path / "store")


def test_a_call_of_an_event_and_of_a_message_is_one_call(ask):
    assert numbers(ask) == (5, 4, 4)
    calls = ask("select t.source_id s, c.name, call_id, duration_ms d from tool_calls c"
                " join trajectories t using (seq) order by seq, step, call")  # fmt: skip
    main, sub = "agent:main", "agent:main:subagent:aaaa-1"
    assert [tuple(it.values()) for it in calls] == [
        (main, "exec", "t1", 291.0),
        (main, "sessions_spawn", "t2", 40.5),
        (main, "exec", None, 12.0),
        (sub, "exec", None, 7.0),
        (sub, "exec", None, None),
    ]
    results = ask("select is_error, call_step, text from observations order by seq, step")
    assert [it["is_error"] for it in results] == [False, False, False, True]


def test_what_no_message_says_becomes_a_step(ask):
    steps = ask("select source, text, kind, is_copied_context c from steps"
                " where seq = (select min(seq) from steps) order by step")  # fmt: skip
    talk = [(it["source"], it["text"]) for it in steps if it["text"] and not it["c"]]
    assert talk == [
        ("user", "Grind the rye"),
        ("agent", "The rye is ground."),
        ("user", "A summary of the rye"),
        ("user", "Grind the rye"),
        ("agent", "Again it is ground."),
        ("user", "Go on"),
    ]
    assert sum(it["kind"] == "context_edit" for it in steps) == 1
    links = ask("select kind, step, call, target_id from links")
    assert [tuple(it.values()) for it in links] == [
        ("subagent", 1, 1, "agent:main:subagent:aaaa-1")]  # fmt: skip


def test_real_telemetry(tmp_path):
    """Calls, results, messages and tokens are those that a walk over the lines finds."""
    for number, path in enumerate(real("formats_new/openclaw/scout__*.jsonl")):
        ask = convert(path, tmp_path / str(number))
        events = [json.loads(line) for line in path.read_text().splitlines()]
        started = [it for it in events if it["type"] == "tool.start"]
        ended = [it for it in events if it["type"] == "tool.end"]
        assert numbers(ask) == (len(started), len(ended), len(ended))
        longest = max((it["messages"] for it in events if it.get("messages")), key=len)
        rows = ask("select text, tokens_out o, response_id r from steps where r is not null"
                   " order by seq, step")  # fmt: skip
        turns = [it for it in longest if it["role"] == "assistant" and "responseId" in it]
        assert [(it["r"], it["o"]) for it in rows] == [
            (it["responseId"], it["usage"]["output"]) for it in turns]  # fmt: skip
        subagents = {it["sessionKey"] for it in events if ":subagent:" in it.get("sessionKey", "")}
        runs = {it["source_id"] for it in ask("select source_id from trajectories")}
        assert runs == {"agent:main", *subagents}
        links = ask("select target_id from links where kind = 'subagent'")
        assert {it["target_id"] for it in links} == subagents
        prompts = {it["prompt"] for it in events if it["type"] == "agent.start"}
        texts = {it["text"] for it in ask("select text from steps where source = 'user'")}
        assert prompts <= texts
