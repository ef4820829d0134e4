"""QwenPaw: messages of a memory, and results in messages of the program."""

from __future__ import annotations

import json

from tests.converters.readers.samples_store import convert, numbers, real
from tests.fuzz.readers import EXAMPLES


def test_a_session(tmp_path):
    ask = convert(EXAMPLES / "qwenpaw", tmp_path / "store")
    assert numbers(ask) == (2, 2, 2)
    steps = ask("select source, kind, text, reasoning, actor from steps order by step")
    assert [(it["source"], it["text"]) for it in steps if it["text"]] == [
        ("system", "You are a miller."),
        ("user", "Grind the rye"),
        ("agent", "I start."),
        ("system", "The wind is low."),
        ("agent", "The rye is ground."),
        ("environment", "It will rain."),
    ]
    assert (steps[3]["reasoning"], steps[3]["actor"]) == ("The stone first.", "Mia")
    assert steps[1]["kind"] == "context_edit"
    results = ask('select name, call, text from observations order by step, "order"')
    assert [tuple(it.values()) for it in results] == [("count", 1, "nine"), ("run", 0, "flour")]


def test_arguments_are_those_that_the_model_wrote_where_they_say_the_same(tmp_path):
    ask = convert(EXAMPLES / "qwenpaw", tmp_path / "store")
    calls = ask("select arguments, extra from tool_calls order by call")
    assert [it["arguments"] for it in calls] == ['{"command":  "grind"}', '{"n": 1}']
    assert json.loads(calls[1]["extra"]) == {"raw_input": '{"n": 2}'}


def test_real_sessions(tmp_path):
    """Messages are those that a walk over the JSON finds."""
    for number, path in enumerate(real("formats_new/qwenpaw/*.json")):
        agent = json.loads(path.read_text())["agent"]
        messages = [message for message, _ in agent["memory"]["content"]]
        ask = convert(path, tmp_path / str(number))
        rows = ask("select native_id, source, text from steps where native_id is not null"
                   " order by step")  # fmt: skip
        who = {"assistant": "agent"}
        assert [tuple(it.values()) for it in rows] == [
            (it["id"], who.get(it["role"], it["role"]), it["content"][0]["text"]) for it in messages
        ]
        (prompt,) = ask("select text from steps where source = 'system'")
        assert prompt["text"] == agent["_sys_prompt"]
