"""Recorded traffic: a history that is repeated is stored once, and real tapes are counted."""

from __future__ import annotations

import json

import pytest

from tests.converters.readers.stores import EXAMPLES, convert, load, real, rows

FOLDER = EXAMPLES / "http_recording"
TAPES = [path for path in real("formats_new/cline_wire") if path.suffix == ".json"]


def test_a_history_is_stored_once(tmp_path):
    convert(FOLDER / "traffic.har.json", tmp_path / "s")
    main, title = rows(tmp_path / "s", "trajectories")
    assert main["session_id"] == title["session_id"] == "session-of-may"
    steps = rows(tmp_path / "s", "steps")
    turns = [it for it in steps if it["trajectory_id"] == main["trajectory_id"]]
    assert [it["source"] for it in turns] == ["system", "user", "agent", "agent", "environment"]
    assert [it["response_id"] for it in turns[2:4]] == ["msg_1", "msg_2"]
    assert [it["duration_ms"] for it in turns[2:4]] == [1250.5, 1250.5]
    [answer] = rows(tmp_path / "s", "observations")
    assert (answer["call_id"], answer["text"]) == ("toolu_1", "main.py and util.py")
    # The echo of the answer is left out, and says nothing that was not known.
    assert "repeated" not in json.loads(main["extra"])


def test_an_echo_that_differs_is_kept(tmp_path):
    traffic = load(FOLDER / "traffic.har.json")
    entry = traffic["log"]["entries"][3]
    body = json.loads(entry["request"]["postData"]["text"])
    body["messages"][1]["content"][0]["text"] = "This was rewritten by the client."
    entry["request"]["postData"]["text"] = json.dumps(body)
    path = tmp_path / "traffic.json"
    path.write_text(json.dumps(traffic))
    convert(path, tmp_path / "s")
    run = rows(tmp_path / "s", "trajectories")[0]
    assert "This was rewritten by the client." in run["extra"]


@pytest.mark.parametrize("path", TAPES, ids=lambda path: path.name)
def test_real_tapes(path, tmp_path):
    convert(path, tmp_path / "s")
    entries = load(path)
    streams = [it["response"] for it in entries if "chat.completion.chunk" in str(it["response"])]
    chunks = [
        [json.loads(line[5:]) for line in text.splitlines()
         if line.startswith("data:") and "[DONE]" not in line]
        for text in streams
    ]  # fmt: skip
    ids = {
        call["id"]
        for stream in chunks
        for chunk in stream
        for choice in chunk["choices"]
        for call in choice.get("delta", {}).get("tool_calls", [])
        if call.get("id")
    }
    assert {it["call_id"] for it in rows(tmp_path / "s", "tool_calls")} == ids
    steps = rows(tmp_path / "s", "steps")
    turns = [it for it in steps if it["source"] == "agent"]
    assert len(turns) == len(streams)
    assert len(steps) == len(entries)
    usages = [next(it["usage"] for it in reversed(stream) if it.get("usage")) for stream in chunks]
    assert [it["tokens_in"] for it in turns] == [it["prompt_tokens"] for it in usages]
    assert [it["tokens_out"] for it in turns] == [it["completion_tokens"] for it in usages]
    texts = ["".join(choice["delta"].get("content") or "" for it in stream
                     for choice in it["choices"]) for stream in chunks]  # fmt: skip
    assert [it["text"] or "" for it in turns] == texts
