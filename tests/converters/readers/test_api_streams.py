"""Streams of events: each reply is a turn, also one whose stream was cut."""

from __future__ import annotations

import json

import pytest

from tests.converters.readers.real_files import Rows
from tests.converters.readers.stores import EXAMPLES, convert, need, real, rows


def test_streams_are_turns(tmp_path):
    convert(EXAMPLES / "api_streams", tmp_path / "s")
    steps = rows(tmp_path / "s", "steps")
    assert [(it["response_id"], it["tokens_in"], it["stop_reason"]) for it in steps] == [
        ("resp_s", 12, "completed"),
        ("resp_t", None, "in_progress"),
    ]
    assert {it["text"] for it in steps} == {"It is a Linux machine."}
    assert [it["name"] for it in rows(tmp_path / "s", "tool_calls")] == ["shell"]
    assert rows(tmp_path / "s", "trajectories")[0]["tags"] == ["reply only"]


def test_real_streams(tmp_path):
    files = [it for it in real("formats_new/openai_responses") if it.name.endswith("chunks.txt")]
    need(files)
    for number, path in enumerate(files):
        convert(path, tmp_path / str(number))
        events = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        whole = [it["response"] for it in events if it["type"] == "response.completed"]
        items = [item for response in whole for item in response["output"]]
        steps = rows(tmp_path / str(number), "steps")
        assert [it["response_id"] for it in steps] == [it["id"] for it in whole]
        assert [it["tokens_in"] for it in steps] == [it["usage"]["input_tokens"] for it in whole]
        calls = [it for it in items if it["type"].endswith("_call")]
        assert len(rows(tmp_path / str(number), "tool_calls")) == len(calls)
        texts = [part["text"] for it in items if it["type"] == "message" for part in it["content"]]
        assert [it["text"] for it in steps if it["text"]] == texts


@pytest.mark.parametrize(("file", "tokens"), [("chat.sse", (30, 4)), ("messages.sse", (12, 9))])
def test_a_text_of_server_sent_events(file, tokens, tmp_path):
    store = Rows([EXAMPLES / "api_stream_text" / file], tmp_path / "store")
    (call,) = store.all("select name, arguments from calls")
    assert (call["name"], json.loads(call["arguments"])) == ("look", {"at": "b"})
    assert (store.total("tokens_in"), store.total("tokens_out")) == tokens
