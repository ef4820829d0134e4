"""Serialised runs of the OpenAI Agents SDK: what examples mean, and real files counted."""

from __future__ import annotations

import json

import pytest

from tests.converters.readers.stores import EXAMPLES, convert, load, real, rows

FOLDER = EXAMPLES / "openai_agents_run_state"
FILES = real("formats_new/openai_agents_run_state")


def test_items_are_read_once(tmp_path):
    convert(FOLDER / "handoff.json", tmp_path / "s")
    steps = rows(tmp_path / "s", "steps")
    assert [(it["source"], it["actor"], it["response_id"]) for it in steps] == [
        ("user", None, None),
        ("agent", "triage", "resp_1"),
        ("agent", "triage", "resp_2"),
        ("agent", "billing", "resp_3"),
    ]
    assert [it["tokens_out"] for it in steps] == [None, 5, 6, 7]
    assert steps[1]["reasoning"] == "Look the customer up."
    [run] = rows(tmp_path / "s", "trajectories")
    assert (run["final_answer"], run["terminated"]) == ("You have the gold plan.", True)
    assert (run["total_tokens_in"], run["total_tokens_out"]) == (60, 18)
    answers = rows(tmp_path / "s", "observations")
    assert [it["call_id"] for it in answers] == ["call_1", "call_2"]
    assert json.loads(answers[0]["structured"]) == {"plan": "gold", "since": 2020}
    # What the model gave and the session does not have is not lost.
    assert "This was filtered out." in run["extra"]


def test_camel_case(tmp_path):
    convert(FOLDER / "camel_case.json", tmp_path / "s")
    steps = rows(tmp_path / "s", "steps")
    assert [(it["source"], it["tokens_in"], it["response_id"]) for it in steps] == [
        ("user", None, None),
        ("agent", 11, "r9"),
    ]
    [answer] = rows(tmp_path / "s", "observations")
    assert (answer["call_id"], answer["text"]) == ("c1", "It rains there.")
    assert rows(tmp_path / "s", "trajectories")[0]["stop_reason"] == "next_step_interruption"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_real_files(path, tmp_path):
    convert(path, tmp_path / "s")
    raw = load(path)
    items = list(raw["session_items"])
    items += [it for it in raw["generated_items"] if it not in items]
    kinds = [it["raw_item"]["type"] for it in items]
    results = [kind for kind in kinds if kind.endswith("_output")]
    assert len(rows(tmp_path / "s", "tool_calls")) == sum(it.endswith("_call") for it in kinds)
    assert len(rows(tmp_path / "s", "observations")) == len(results)
    texts = [
        part["text"]
        for it in items
        for part in it["raw_item"].get("content", [])
        if it["raw_item"]["type"] == "message"
    ]
    written = "\n".join(it["text"] or "" for it in rows(tmp_path / "s", "steps"))
    assert all(text in written for text in texts)
