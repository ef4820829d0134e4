from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import given

from adp.rendering.chat import ChatCall, Message
from adp.trainers.export.openai_ft_dpo import EXPORTER as DPO
from adp.trainers.export.openai_ft_sft import EXPORTER as SFT
from tests.trainers.export.chats import (
    agent,
    call,
    chat_of,
    chats,
    export,
    pair_of,
    result,
    user,
    words,
)


def check_messages(messages: list[dict[str, Any]]) -> None:
    """What the chat API checks of messages."""
    waiting: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting, "a call without its result"
        if message["role"] != "assistant":
            assert set(message) == {"role", "content"}
            continue
        calls = message.get("tool_calls", [])
        assert calls or isinstance(message["content"], str)
        waiting = [entry["id"] for entry in calls]
        assert not seen & set(waiting)
        seen |= set(waiting)
        for item in calls:
            assert len(item["id"]) <= 40
            assert item["type"] == "function"
            assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", item["function"]["name"])
            assert isinstance(item["function"]["arguments"], str)


def assistants(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (message for message in row["messages"] if message["role"] == "assistant")


@given(chats(weights=(0.0, 1.0, 0.5)))
def test_every_trained_step_is_written_with_weight_1_or_counted(chat) -> None:
    rows, tally = export(SFT, chat)
    steps = len(chat.trained())
    lost = sum(tally.left_out.values())
    written = [assistant for row in rows for assistant in assistants(row)]
    assert sum(item["weight"] for item in written) == steps - lost
    for row in rows:
        check_messages(row["messages"])
        assert row["messages"][-1]["role"] == "assistant"
        assert row["messages"][-1]["weight"] == 1
        assert ("tools" in row) == ("parallel_tool_calls" in row) == bool(chat.tools)
        json.dumps(row, ensure_ascii=False).encode()
    ours = [item for item in chat.messages if item.role == "assistant"][: len(written)]
    for message, out in zip(ours, written, strict=True):
        assert out["weight"] == 0 or message.weight == 1
        assert out.get("content", "") == message.text
        texts = [tool_call["function"]["arguments"] for tool_call in out.get("tool_calls", [])]
        assert texts == [item.text for item in message.calls]


def test_arguments_are_the_characters_of_the_source() -> None:
    odd = ChatCall("look", {"n": 1e5}, '{"n":1e5 }', "c")
    [row], tally = export(SFT, chat_of(user("a"), agent("", odd), result("c", "r"), agent("done")))
    assert row["messages"][1] == {
        "role": "assistant",
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"n":1e5 }'}}
        ],
        "weight": 1,
    }
    assert not tally.left_out
    assert not +tally.changed


def test_a_late_result_would_tell_the_future_and_is_left_out() -> None:
    chat = chat_of(user("a"), agent("", call("c")), agent("I wait"), result("c", "r"), agent("b"))
    rows, tally = export(SFT, chat)
    assert not rows
    assert tally.left_out == {"a result that does not follow its call at once": 3}


def test_a_call_without_a_result_gets_an_empty_one() -> None:
    [row], tally = export(SFT, chat_of(user("a"), agent("", call("c")), user("b"), agent("done")))
    assert row["messages"][2] == {"role": "tool", "tool_call_id": "c", "content": ""}
    assert tally.changed["an empty result for a call that has none"] == 1


def test_names_and_ids_that_the_api_refuses_are_written_so_that_it_takes_them() -> None:
    tool = {"type": "function", "function": {"name": "web.look", "parameters": None}}
    made = call("x" * 50, name="web.look")
    chat = chat_of(user("a"), agent("", made), result("x" * 50, "r"), agent("b"), tools=[tool])
    [row], tally = export(SFT, chat)
    check_messages(row["messages"])
    assert row["tools"] == [{"type": "function", "function": {"name": "web_look"}}]
    assert row["messages"][1]["tool_calls"][0]["function"]["name"] == "web_look"
    assert row["messages"][1]["tool_calls"][0]["id"] == row["messages"][2]["tool_call_id"]
    assert sum(tally.changed.values()) == 2


def test_two_tools_with_the_same_name_afterwards_are_refused() -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in ("a.b", "a_b")]
    rows, tally = export(SFT, chat_of(user("a"), agent("b"), tools=tools))
    assert not rows
    assert sum(tally.left_out.values()) == 1


def test_reasoning_is_counted_and_a_step_of_reasoning_alone_is_not_trained() -> None:
    chat = chat_of(user("a"), agent("b", reasoning="r"), user("c"), agent(reasoning="only"))
    [row], tally = export(SFT, chat)
    assert len(row["messages"]) == 2
    assert "reasoning" not in json.dumps(row)
    assert tally.changed["reasoning, which the format has no place for"] == 1
    assert tally.left_out == {"a step of reasoning alone": 1}


def test_parallel_calls_can_be_forbidden() -> None:
    chat = chat_of(user("a"), agent("", call("c"), call("d")))
    rows, tally = export(SFT, chat, SFT.options(parallel_tool_calls=False))
    assert not rows
    assert tally.left_out == {"parallel calls, which parallel_tool_calls=false forbids": 1}


def test_too_many_tools_and_too_long_a_row() -> None:
    tools = [{"type": "function", "function": {"name": f"t{n}"}} for n in range(129)]
    rows, tally = export(SFT, chat_of(user("a"), agent("b"), tools=tools))
    assert not rows
    assert tally.left_out == {"more than 128 tools on offer": 1}
    [row], tally = export(SFT, chat_of(user("a" * 300_000), agent("b"), tools=[]))
    assert set(row) == {"messages"}
    assert len(tally.changed) == 1


@given(chats(), words, words, words)
def test_a_pair_is_a_prompt_and_two_messages(chat, better, worse, reasoning) -> None:
    chat = replace(chat, messages=(*chat.messages, Message("user", "go", 99)))
    pair = pair_of(chat, agent(better, call("x")), agent(worse, call("y"), reasoning=reasoning))
    rows, tally = export(DPO, pair)
    assert len(rows) + sum(tally.left_out.values()) == 1
    if better == worse:
        assert not rows
    for row in rows:
        check_messages(row["input"]["messages"])
        assert "weight" not in json.dumps(row)
        assert row["preferred_output"][0].get("content", "") == better
        assert row["non_preferred_output"][0].get("content", "") == worse


def test_a_side_of_several_messages_is_left_out() -> None:
    pair = pair_of(chat_of(user("a")), agent("b"), agent("c"))
    longer = replace(pair.chosen, messages=(*pair.chosen.messages, user("d"), agent("e")))
    rows, tally = export(DPO, replace(pair, chosen=longer))
    assert not rows
    assert tally.left_out == {"a side that is not one trained message after the prompt": 1}


def test_the_readme_says_when_there_are_too_few_rows() -> None:
    facts = {
        **{"exporter": SFT.name, "store": "s", "file": "train.jsonl", "rows": 3, "unit": "steps"},
        **{"in_store": 4, "in_rows": 3, "left_out": {"why": 1}, "changed": {}, "command": "adp"},
    }
    for exporter in (SFT, DPO):
        text = exporter.files(exporter.options(), facts)["README.md"]
        assert "at least 10 rows. These are 3." in text
        assert "| 1 | why |" in text
