"""Logs of OpenHands' model calls and of managed agents: examples, and real files counted."""

from __future__ import annotations

import json

import pytest

from tests.converters.readers.stores import EXAMPLES, convert, load, need, real, rows

LOGS = real("formats/openhands_llm_logs", "formats_new/openhands_llm_logs")
TAPES = [
    path
    for path in real("formats_new/anthropic_managed_agents", "formats/langsmith")
    if path.suffix == ".jsonl" and "managed" in path.name
]


def test_a_completion_log(tmp_path):
    convert(EXAMPLES / "openhands_llm_logs" / "structured.json", tmp_path / "s")
    [run] = rows(tmp_path / "s", "trajectories")
    assert (run["agent_name"], run["source_id"]) == ("openhands", "chatcmpl-5")
    assert "tools" not in json.loads(run["extra"])["kwargs"]
    last = rows(tmp_path / "s", "steps")[-1]
    assert (last["cost_usd"], last["duration_ms"], last["tokens_cached"]) == (0.023172, 5500, 7872)
    assert last["reasoning"] == "Ask the shell."
    [answer] = rows(tmp_path / "s", "observations")
    assert (answer["call_id"], answer["text"]) == ("call_0", "a.py")


def test_calls_that_the_model_wrote_as_text(tmp_path):
    convert(EXAMPLES / "openhands_llm_logs" / "as_text.json", tmp_path / "s")
    steps = rows(tmp_path / "s", "steps")
    assert [it["text"] for it in steps] == ["You are an agent.", "Where are we now?", ""]
    assert [it["name"] for it in rows(tmp_path / "s", "tool_calls")] == ["terminal"]
    [run] = rows(tmp_path / "s", "trajectories")
    assert {"prompt_messages", "response"} <= set(json.loads(run["extra"]))
    assert run["tools_origin"] == "recorded"


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_real_completion_logs(path, tmp_path):
    convert(path, tmp_path / "s")
    raw = load(path)
    messages = raw.get("raw_messages") or raw["messages"]
    reply = raw["response"]["choices"][0]["message"]
    results = [it for it in messages if it["role"] == "tool"]
    calls = [call for it in [*messages, reply] for call in it.get("tool_calls") or []]
    steps = rows(tmp_path / "s", "steps")
    assert len(steps) == len(messages) - len(results) + 1
    assert len(rows(tmp_path / "s", "tool_calls")) == len(calls)
    observations = rows(tmp_path / "s", "observations")
    assert [it["call_id"] for it in observations] == [it["tool_call_id"] for it in results]
    assert steps[-1]["tokens_in"] == raw["response"]["usage"]["prompt_tokens"]


def test_events_of_a_managed_agent(tmp_path):
    convert(EXAMPLES / "anthropic_managed_agents", tmp_path / "s")
    [run] = rows(tmp_path / "s", "trajectories")
    assert (run["agent_name"], run["agent_model"]) == ("Gardener", "claude-x")
    assert (run["error_type"], run["terminated"]) == ("billing_error", True)
    steps = rows(tmp_path / "s", "steps")
    turns = [it for it in steps if it["source"] == "agent"]
    assert [(it["tokens_in"], it["tokens_out"]) for it in turns] == [(732, 50), (3, 9)]
    assert [it["kind"] for it in steps if it["source"] == "system"] == ["message", "context_edit"]
    calls = rows(tmp_path / "s", "tool_calls")
    assert [(it["kind"], it["status"]) for it in calls] == [("mcp", "ask"), ("function", None)]
    answers = rows(tmp_path / "s", "observations")
    assert [(it["call"], it["source"], it["is_error"], it["text"]) for it in answers] == [
        (0, "user", True, "no servers please"),
        (0, "environment", True, "The call was denied by the user."),
        (1, "environment", None, "four euros"),
    ]


def test_what_a_client_sends_counts_once(tmp_path):
    message = {"type": "user.message", "content": [{"type": "text", "text": "Which day is it?"}]}
    back = {**message, "id": "sevt_1", "processed_at": "2026-07-06T16:26:01+00:00"}
    lost = {"type": "user.interrupt"}
    tape = [
        ["client.beta.sessions.events.send", ["sesn_1", {"events": [message, lost]}]],
        ["client.beta.sessions.events.stream", back],
        ["client.beta.sessions.archive", {"id": "sesn_1"}],
    ]
    path = tmp_path / "tape.jsonl"
    path.write_text("\n".join(map(json.dumps, tape)))
    convert(path, tmp_path / "s")
    steps = rows(tmp_path / "s", "steps")
    assert [it["text"] for it in steps if it["source"] == "user"] == ["Which day is it?"]
    assert [it["kind"] for it in steps] == ["event", "message", "event"]
    assert rows(tmp_path / "s", "trajectories")[0]["session_id"] == "sesn_1"


def test_real_tapes(tmp_path):
    need(TAPES)
    for number, path in enumerate(TAPES):
        store = tmp_path / str(number)
        convert(path, store, "anthropic_managed_agents")
        events = [
            pair[1]
            for pair in map(json.loads, filter(str.strip, path.read_text().splitlines()))
            if pair[0].endswith("stream")
        ]
        ends = [it for it in events if it["type"] == "span.model_request_end"]
        calls = [it for it in events if it["type"].endswith("tool_use")]
        results = [it for it in events if it["type"].endswith(("_result", "_confirmation"))]
        steps = rows(store, "steps")
        turns = [it for it in steps if it["source"] == "agent"]
        assert len(turns) == len(ends)
        written = [it["model_usage"]["output_tokens"] for it in ends]
        assert [it["tokens_out"] for it in turns] == written
        assert len(rows(store, "tool_calls")) == len(calls)
        answers = rows(store, "observations")
        assert len(answers) == len(results)
        assert all(it["call_id"] for it in answers)
        users = [it for it in events if it["type"] == "user.message"]
        assert sum(it["source"] == "user" for it in steps) == len(users)
