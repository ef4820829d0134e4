"""Chat messages with nothing around them, against a plain walk over the raw JSON."""

from __future__ import annotations

import json

import pytest

import adp
from adp_schema.errors import InputError
from tests.converters.readers.real_files import Rows, real
from tests.converters.readers.stores import EXAMPLES

FOLDER = EXAMPLES / "message_list"


def walk(messages):
    """Steps, calls and results of a list of messages."""
    steps = calls = results = 0
    for message in messages:
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        kinds = [block.get("type") for block in blocks]
        calls += len(message.get("tool_calls") or []) + kinds.count("tool_use")
        results += (message["role"] == "tool") + kinds.count("tool_result")
        steps += message["role"] != "tool" and (not kinds or set(kinds) != {"tool_result"})
    return steps, calls, results


def counts(rows):
    return rows.count("steps"), rows.count("tool_calls"), rows.count("observations")


def test_lines_and_a_list(tmp_path):
    lines = list(map(json.loads, (FOLDER / "calls.jsonl").read_text().splitlines()))
    assert counts(Rows([FOLDER / "calls.jsonl"], tmp_path / "lines")) == walk(lines)
    printed = json.loads((FOLDER / "printed.json").read_bytes())
    assert counts(Rows([FOLDER / "printed.json"], tmp_path / "list")) == walk(printed)


def test_a_list_a_line_is_a_trajectory(tmp_path):
    rows = Rows([FOLDER / "lists.jsonl"], tmp_path / "store")
    lists = list(map(json.loads, (FOLDER / "lists.jsonl").read_text().splitlines()))
    assert rows.count("trajectories") == len(lists)
    assert counts(rows) == tuple(map(sum, zip(*map(walk, lists), strict=True)))
    assert rows.count("media") == 1


def test_reasoning_tokens_and_what_no_column_holds(tmp_path):
    rows = Rows([FOLDER / "calls.jsonl"], tmp_path / "store")
    turns = rows.all("select reasoning r, tokens_in i, extra x from steps where source = 'agent'")
    assert [turn["r"] for turn in turns] == ["I count the lines.", "One of them is the head."]
    assert (turns[1]["i"], json.loads(turns[1]["x"])) == (31, {"mood": "calm"})


def test_a_format_with_keys_of_its_own_comes_first(tmp_path):
    line = {"role": "user", "content": "hi", "timestamp": "2026-01-02T03:04:05"}
    (tmp_path / "conversation.jsonl").write_text(json.dumps(line) + "\n")
    rows = Rows([tmp_path / "conversation.jsonl"], tmp_path / "store")
    assert rows.value("select source_format from trajectories") == "gptme"


def test_other_objects_with_a_role_are_left_alone(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"role": "poet", "content": "hi"}) + "\n")
    with pytest.raises(InputError):
        adp.convert([str(tmp_path / "a.jsonl")], str(tmp_path / "store"))


@pytest.mark.parametrize("path", real("datasets_new/webvoyager/task*.json"))
def test_real_lists(path, tmp_path):
    messages = json.loads(path.read_bytes())
    store = Rows([path], tmp_path / "store", format="message_list", dialect="none")
    assert counts(store) == walk(messages)
