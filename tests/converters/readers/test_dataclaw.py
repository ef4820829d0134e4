"""DataClaw: calls that keep their results, with and without ids."""

from __future__ import annotations

import json

import pytest

from tests.converters.readers.samples_store import convert, numbers, real
from tests.fuzz.readers import EXAMPLES


@pytest.fixture
def ask(tmp_path):
    return convert(EXAMPLES / "dataclaw", tmp_path / "store")


def test_a_result_answers_the_call_that_it_is_kept_in(ask):
    assert numbers(ask) == (7, 5, 5)
    results = ask('select name, call, text, is_error, exit_code, structured from observations'
                  ' order by seq, step, "order"')  # fmt: skip
    assert [tuple(it.values())[:5] for it in results] == [
        ("Bash", 1, "dough", False, None),
        ("Read", 2, "no such file", True, None),
        ("shell", 3, "ab", False, 3),
        ("Wait", 4, None, False, None),
        ("Ask", 5, "a list\n\nof texts", False, None),
    ]
    assert json.loads(results[0]["structured"]) == {"stdout": "dough", "interrupted": False}
    calls = ask("select call_id, status, arguments_kind k from tool_calls order by seq, call")
    assert [it["call_id"] for it in calls] == [None] * 5 + ["toolu_9", None]
    assert (calls[0]["status"], calls[2]["status"], calls[6]["k"]) == (None, "error", "invalid")


def test_sessions(ask):
    runs = ask("select source_id, agent_name, agent_model, total_tokens_in i from trajectories")
    assert [tuple(it.values()) for it in runs] == [
        ("dc-1", "claude-code", "loaf-4", 1423), ("dc-2", "codex", None, None)]  # fmt: skip
    media = ask("select count(*) n from media")
    assert media == [{"n": 1}]


def test_real_exports(tmp_path):
    """Messages, reasoning, calls and results are those that a walk over the rows finds."""
    for number, path in enumerate(real("formats/dataclaw/*.jsonl")):
        ask = convert(path, tmp_path / str(number))
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        messages = [it for row in rows for it in row["messages"]]
        steps = ask("select text, reasoning from steps order by seq, step")
        assert [(it["text"], it["reasoning"]) for it in steps] == [
            (it.get("content"), it.get("thinking")) for it in messages]  # fmt: skip
        uses = [use for it in messages for use in it.get("tool_uses", [])]
        assert numbers(ask) == (len(uses), len(uses), len(uses))
        results = ask('select o.name, text, is_error, arguments a from observations o'
                      ' join tool_calls c on (c.seq, c.step, c.call) = (o.seq, o.call_step, o.call)'
                      ' order by o.seq, o.step, "order"')  # fmt: skip
        assert [
            (it["name"], it["text"], it["is_error"], json.loads(it["a"])) for it in results
        ] == [
            (it["tool"], it["output"].get("text"), it["status"] == "error", it["input"])
            for it in uses
        ]
        (total,) = ask("select sum(total_tokens_in) i, sum(total_tokens_out) o from trajectories")
        assert total["i"] == sum(row["stats"]["input_tokens"] for row in rows)
        assert total["o"] == sum(row["stats"]["output_tokens"] for row in rows)
