"""Ids of calls and the borders of parts arrive in other formats, or the report says not."""

import json

import pytest

from adp.converters.registry import BUILTIN, formats
from adp_schema.losses import Losses
from tests.roundtrip import read_one, write_one

OTHERS = sorted(set(BUILTIN) - {"openai_chat"})
HOLDERS = ["adp_v1", "atif", "sts"]
"""Formats with an id at each call and each result."""


def call(name, call_id="1"):
    function = {"name": name, "arguments": "{}"}
    return {"id": call_id, "type": "function", "function": function}


def step_with_calls(*calls):
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def result(content, call_id="1"):
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def chat(*messages):
    return json.dumps({"messages": [{"role": "user", "content": "q"}, *messages]}).encode()


IN_TURN = chat(step_with_calls(call("a")), result("A"), step_with_calls(call("b")), result("B"))
LATE = chat(step_with_calls(call("a")), step_with_calls(call("b")), result("B"), result("A"))
CROSSED = chat(
    step_with_calls(call("a")),
    step_with_calls(call("b")),
    result("B"),
    step_with_calls(call("c")),
    result("A"),
    result("C"),
)
AT_ONCE = chat(step_with_calls(call("a"), call("b")), result("A"), result("B"))


def there_and_back(data, target):
    """What a reader of the target finds: names of calls and what answers them, and the losses."""
    losses = Losses()
    (run,) = read_one(formats.get("openai_chat"), data)
    written = write_one(formats.get(target), run, losses)
    (back,) = read_one(formats.get(target), written)
    return answers(run), answers(back), ids(back), [item["path"] for item in losses.items]


def ids(run):
    return [call.native_id or call.call_id for step in run.steps for call in step.calls]


def answers(run):
    names = {(call.step, call.call): call.name for step in run.steps for call in step.calls}
    rows = [row for step in run.steps for row in step.observations]
    return {(names.get((row.call_step, row.call)), row.text) for row in rows}


@pytest.mark.parametrize("target", HOLDERS)
@pytest.mark.parametrize("data", [IN_TURN, LATE], ids=["in turn", "late"])
def test_an_id_that_is_used_again_comes_back(target, data):
    before, after, entry, reported = there_and_back(data, target)
    assert after == before
    assert entry == ["1", "1"]
    assert not [path for path in reported if path.endswith("_id")]


@pytest.mark.parametrize("target", HOLDERS)
def test_where_a_result_would_go_astray_the_number_is_reported(target):
    (run,) = read_one(formats.get("openai_chat"), AT_ONCE)
    losses = Losses()
    written = json.loads(write_one(formats.get(target), run, losses))
    (back,) = read_one(formats.get(target), json.dumps(written).encode())
    assert answers(back) == answers(run)
    assert ids(back) == ["1", "1#2"]
    paths = [item["path"] for item in losses.items if item["path"].endswith("_id")]
    assert paths == ["$.steps[1].calls[1].native_id", "$.steps[1].observations[1].native_call_id"]


@pytest.mark.parametrize("target", HOLDERS)
def test_pairing_survives_whatever_the_order(target):
    before, after, _, _ = there_and_back(CROSSED, target)
    assert after == before


PARTS = [{"type": "text", "text": "first"}, {"type": "text", "text": "second"}]


def parts_of(rows):
    return [len(row.json_value("content") or [None]) for row in rows]


@pytest.mark.parametrize("target", OTHERS)
def test_two_texts_stay_two_or_are_reported(target):
    messages = [step_with_calls(call("a")), result(PARTS), {"role": "user", "content": PARTS}]
    data = chat(*messages, {"role": "assistant", "content": PARTS})
    losses = Losses()
    (run,) = read_one(formats.get("openai_chat"), data)
    (back,) = read_one(formats.get(target), write_one(formats.get(target), run, losses))
    paths = {item["path"] for item in losses.items}
    if target in ("atif", "preference", "sts"):
        assert parts_of(back.steps) == parts_of(run.steps)
        rows = [row for step in back.steps for row in step.observations]
        assert parts_of(rows) == [2]
        assert not [path for path in paths if path.endswith(".content")]
    else:
        for row in ("steps[1].observations[0]", "steps[2]", "steps[3]"):
            assert f"$.{row}.content" in paths


def test_each_piece_of_a_result_keeps_the_id_of_its_call():
    (run,) = read_one(
        formats.get("openai_chat"), chat(step_with_calls(call("a", "x")), result(PARTS, "x"))
    )
    written = json.loads(write_one(formats.get("adp_v1"), run))
    pieces = [item for item in written["content"] if item["class_"] == "text_observation"][1:]
    assert [(item["content"], item["tool_call_id"]) for item in pieces] == [
        ("first", "x"),
        ("second", "x"),
    ]


def test_turns_that_become_one_are_reported():
    said_twice = [{"role": "assistant", "content": "c"}, {"role": "assistant", "content": "d"}]
    asked_twice = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    losses = Losses()
    (run,) = read_one(formats.get("openai_chat"), chat(*said_twice, *asked_twice, said_twice[0]))
    write_one(formats.get("sharegpt"), run, losses)
    assert [item["path"] for item in losses.items] == ["$.steps[2]", "$.steps[4]"]
