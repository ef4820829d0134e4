"""gptme: calls in the text of an answer, and what tools answer in messages of the program."""

from __future__ import annotations

import json

import pytest

from adp.converters.readers.gptme import CONVERTER
from adp_schema import jsontext
from adp_schema.protocols import Match
from tests.converters.readers.samples_store import convert, numbers, real
from tests.fuzz.readers import EXAMPLES

FOLDER = EXAMPLES / "gptme"


@pytest.fixture
def ask(tmp_path):
    return convert(FOLDER, tmp_path / "store")


def test_calls_stand_in_the_text_and_are_answered_by_id(ask):
    assert numbers(ask) == (2, 4, 2)
    calls = ask("select c.call_id, c.name, arguments, origin, span_start s, span_end e, text, prose"
                " from tool_calls c join steps using (seq, step) order by call")  # fmt: skip
    assert [(it["call_id"], it["name"], it["origin"]) for it in calls] == [
        ("call-1", "shell", "parsed_from_text"),
        ("call-2", "read", "parsed_from_text"),
    ]
    first = calls[0]
    assert first["text"][first["s"] : first["e"]] == '@shell(call-1): {"command": "heat 240"}'
    assert (first["prose"], calls[1]["arguments"]) == (
        "I heat the oven.", '{"path": "dough {1}.txt"}')  # fmt: skip
    results = ask('select text, name, call_id from observations order by seq, step, "order"')
    assert [tuple(it.values()) for it in results] == [
        ("dough", "read", "call-2"),
        ("Error: no gas", "shell", "call-1"),
        ("Ran command: `heat 200`", None, None),
        ("done", None, None),
    ]


def test_usage_of_both_forms(ask):
    rows = ask("select tokens_in i, tokens_out o, tokens_cached c, cost_usd d, model from steps"
               " where tokens_in is not null order by step")  # fmt: skip
    assert [tuple(it.values()) for it in rows] == [
        (207, 42, 80, 0.0012, "lab/loaf-4"), (10, 4, None, 0.5, "lab/loaf-4")]  # fmt: skip


def test_a_branch_leads_to_its_conversation(ask):
    runs = ask("select source_id, session_id from trajectories order by source_id")
    assert [it["source_id"] for it in runs] == [
        "2026-05-01-bake-bread", "2026-05-01-bake-bread/branches/cold"]  # fmt: skip
    links = ask("select kind, target_session_id from links")
    assert links == [{"kind": "fork", "target_session_id": "2026-05-01-bake-bread"}]


def test_messages_of_the_program_after_an_answer_alone_are_results(ask):
    steps = ask("select text, visibility v from steps where source = 'system' order by text")
    assert [(it["text"], it["v"]) for it in steps] == [
        ("Saving the session", "user"),
        ("You are gptme, a baker.", None),
        ("You are gptme, a baker.", None),
    ]


@pytest.mark.parametrize(("line", "match"), [
    ({"role": "user", "content": "a", "timestamp": "2026-01-01T00:00:00"}, Match.SHAPE),
    ({"role": "user", "content": "a", "timestamp": 5}, Match.NO),
    ({"role": "user", "content": "a", "timestamp": "x", "uuid": "y"}, Match.NO),
    ({"role": "user", "content": "a", "timestamp": "x", "pinned": True}, Match.STAMP),
])  # fmt: skip
def test_how_sure_it_is(line, match):
    assert CONVERTER.sniff(jsontext.decode_object(json.dumps(line).encode())) == match


def test_real_conversations(tmp_path):
    """Messages, results and tokens are those that a walk over the lines finds."""
    for number, path in enumerate(real("formats_new/gptme/*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        ask = convert(path, tmp_path / str(number))
        talk = [line["content"] for line in lines if line["role"] != "tool"]
        assert [it["text"] for it in ask("select text from steps order by step")] == talk
        results = [line["content"] for line in lines if line["role"] == "tool"]
        rows = ask('select text from observations order by step, "order"')
        assert [it["text"] for it in rows] == results
        usage = [line["metadata"]["usage"] for line in lines if "metadata" in line]
        (row,) = ask("select sum(tokens_in) i, sum(tokens_out) o, sum(tokens_cached) c from steps")
        assert row["o"] == sum(it["output_tokens"] for it in usage)
        assert row["c"] == sum(it["cache_read_tokens"] for it in usage)
        assert row["i"] == row["c"] + sum(it["input_tokens"] for it in usage)
