"""Logs of which a part was passed on: without a header, an id, or the file beside them."""

from __future__ import annotations

import json

import pytest

from tests.converters.readers.real_files import Rows


def write(path, *lines):
    """A file of lines, or of one document."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


CALL = {"type": "tool_use", "id": "call-1", "name": "look", "input": {"at": "b"}}
CLAUDE = [
    {"type": "user", "message": {"role": "user", "content": "Look."}},
    {"type": "assistant", "message": {"role": "assistant", "content": [CALL]}},
]
COPILOT = [
    {"type": "user.message", "data": {"content": "Look."}},
    {"type": "tool.execution_start",
     "data": {"toolCallId": "call-1", "toolName": "look", "arguments": {"at": "b"}}},
    {"type": "tool.execution_complete",
     "data": {"toolCallId": "call-1", "success": False, "error": "none"}},
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "lines"), [("claude_code", CLAUDE), ("copilot_cli", COPILOT)], ids=str
)
def test_lines_without_ids_and_times(name, lines, tmp_path):
    write(tmp_path / "log.jsonl", *lines)
    rows = Rows([tmp_path / "log.jsonl"], tmp_path / "store")
    assert rows.value("select source_format from trajectories") == name
    assert rows.count("calls", "name = 'look'") == 1


def test_a_folder_of_events_without_a_state(tmp_path):
    """The first event of OpenHands owns the others."""
    events = [
        {"id": "e0", "kind": "MessageEvent", "source": "user", "timestamp": "2026-01-01T10:00:00",
         "llm_message": {"role": "user", "content": [{"type": "text", "text": "Look."}]}},
        {"id": "e1", "kind": "ActionEvent", "source": "agent", "timestamp": "2026-01-01T10:00:01",
         "tool_name": "terminal", "tool_call_id": "call-1", "thought": [],
         "action": {"kind": "TerminalAction", "command": "ls"}},
        {"id": "e2", "kind": "ObservationEvent", "source": "environment",
         "timestamp": "2026-01-01T10:00:02", "tool_name": "terminal", "tool_call_id": "call-1",
         "action_id": "e1", "observation": {"kind": "TerminalObservation", "content": "a"}},
    ]  # fmt: skip
    for number, event in enumerate(events):
        write(tmp_path / f"run/events/event-{number:05}-0a{number}.json", event)
    rows = Rows([tmp_path / "run"], tmp_path / "store")
    assert rows.count("trajectories") == 1
    assert rows.count("observations", "call is not null") == 1
    assert rows.manifest.counts.used == 3


def test_requests_of_a_batch_that_were_not_answered_are_skipped(tmp_path):
    reply = {"id": "msg-1", "type": "message", "role": "assistant", "content": [CALL]}
    failed = {"type": "error", "error": {"type": "invalid_request_error", "message": "too long"}}
    results = [
        {"type": "succeeded", "message": reply},
        {"type": "errored", "error": failed},
        {"type": "expired"},
        {"type": "canceled"},
    ]
    lines = [{"custom_id": f"r{n}", "result": result} for n, result in enumerate(results)]
    write(tmp_path / "batch.jsonl", *lines)
    counts = Rows([tmp_path / "batch.jsonl"], tmp_path / "store").manifest.counts
    assert (counts.used, counts.skipped, counts.rejected) == (1, 3, 0)


def test_an_error_says_whose_request_it_answers(tmp_path):
    request = {"model": "m", "messages": [{"role": "user", "content": "Look."}]}
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    write(tmp_path / "log.jsonl", {"request": request, "response": error})
    (row,) = Rows([tmp_path / "log.jsonl"], tmp_path / "store").all("select * from trajectories")
    assert (row["source_format"], row["error_message"]) == ("anthropic_messages", "Overloaded")


def test_the_folder_of_the_first_versions_of_opencode(tmp_path):
    """A session, its messages and their parts, with the session in the path of each part."""
    root = tmp_path / "storage/session"
    time = {"created": 1767225600000}
    session = {"id": "ses_1", "version": "0.3.1", "title": "Look", "time": time}
    write(root / "info/ses_1.json", session)
    for name, role in (("msg_1", "user"), ("msg_2", "assistant")):
        message = {"id": name, "sessionID": "ses_1", "role": role, "time": time}
        write(root / f"message/ses_1/{name}.json", message)
    text = {"id": "prt_1", "messageID": "msg_1", "sessionID": "ses_1", "type": "text", "text": "hi"}
    state = {"status": "completed", "input": {"command": "ls"}, "output": "a"}
    tool = {"id": "prt_2", "messageID": "msg_2", "sessionID": "ses_1", "type": "tool",
            "tool": "bash", "callID": "call-1", "state": state}  # fmt: skip
    write(root / "part/ses_1/msg_1/prt_1.json", text)
    write(root / "part/ses_1/msg_2/prt_2.json", tool)
    rows = Rows([tmp_path / "storage"], tmp_path / "store")
    assert rows.count("trajectories", "source_id = 'ses_1'") == 1
    assert rows.count("observations", "call is not null and text = 'a'") == 1
    assert rows.manifest.counts.used == 5
