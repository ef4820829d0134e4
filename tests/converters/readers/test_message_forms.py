"""Lists of messages and of items by themselves."""

from __future__ import annotations

import json

import pytest

from adp.converters.registry import formats
from adp.workflows.doctor import diagnose
from adp_schema import jsontext
from adp_schema.protocols import Match
from tests.converters.readers.samples_store import convert, example, numbers, real
from tests.fuzz.readers import EXAMPLES


def test_messages_with_their_calls():
    rows = example("message_list", "chat.json")
    assert [step["source"] for step in rows["steps"]] == ["system", "user", "agent", "agent"]
    assert rows["steps"][2]["reasoning"] == "Look."
    assert [call["name"] for call in rows["tool_calls"]] == ["get_rain", "get_wind"]
    assert [(it["text"], it["call"]) for it in rows["observations"]] == [
        ("calm", 1),
        ("no rain", 0),
    ]


def test_items_are_turns():
    rows = example("message_list", "items.json")
    assert [step["source"] for step in rows["steps"]] == ["user", "agent", "agent"]
    assert rows["observations"][0]["call"] == 0


def test_lists_are_trajectories_of_their_own():
    rows = example("message_list", "lists.json")
    assert len(rows["trajectories"]) == 2
    assert len(rows["steps"]) == 5


@pytest.mark.parametrize("form", ["lines", "list a line", "page", "items"])
def test_forms(form, tmp_path):
    messages = json.loads((EXAMPLES / "message_list" / "chat.json").read_text())
    text = {
        "lines": "".join(json.dumps(message) + "\n" for message in messages),
        "list a line": json.dumps(messages) + "\n",
        "page": json.dumps({"object": "list", "data": messages, "has_more": False}),
        "items": json.dumps({"items": messages}),
    }[form]
    path = tmp_path / ("talk.jsonl" if form in ("lines", "list a line") else "talk.json")
    path.write_text(text, encoding="utf-8")
    (file,) = diagnose([str(path)]).files
    assert (file.format, file.trajectories) == ("message_list", 1)
    assert (file.steps, file.calls, file.answered) == (4, 2, 2)


@pytest.mark.parametrize(
    "record",
    [
        {"role": "user"},
        {"type": "function_call", "name": "a", "sessionId": "s"},
        {"type": "message", "uuid": "u", "role": "user", "content": "hi"},
    ],
)
def test_lines_of_logs_are_left_alone(record):
    values = jsontext.decode_object(json.dumps(record).encode())
    assert formats.get("message_list").sniff(values) == Match.NO


def test_real_files_by_a_plain_walk(tmp_path):
    for number, path in enumerate(real("datasets_new/webvoyager/task*.json")):
        messages = json.loads(path.read_bytes())
        sql = convert(path, tmp_path / str(number), "message_list")
        assert sql("select count(*) n from steps")[0]["n"] == len(messages)
        assert numbers(sql) == (0, 0, 0)
        blocks = [it for message in messages if isinstance(message["content"], list)
                  for it in message["content"]]  # fmt: skip
        images = sum(block["type"] == "image_url" for block in blocks)
        query = """select coalesce(sum(len(regexp_extract_all(content, '"type": ?"media"'))), 0) n
            from steps"""
        assert sql(query)[0]["n"] == images
