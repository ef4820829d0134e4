from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adp.rendering.chat import Chat, ChatCall, Message
from adp.trainers.export.llamafactory_ranking import EXPORTER as RANKING
from adp.trainers.export.llamafactory_sharegpt import EXPORTER as SHAREGPT
from adp.trainers.export.llamafactory_turns import RESULT_JOINT
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

FACTS = {
    **{"exporter": "x", "store": "s", "file": "train.jsonl", "rows": 3, "unit": "steps"},
    **{"in_store": 3, "in_rows": 3, "left_out": {}, "changed": {}, "command": "adp"},
}
EXPANDED = SHAREGPT.options(expand=True)
V1 = SHAREGPT.options(engine="v1", template="qwen3")


def read_call(value: str) -> tuple[str, list[dict[str, Any]]]:
    """What stands beside a call, and the calls: the way LLaMA-Factory looks for them."""
    tagged = re.search(r"<tool_call>(.*?)</tool_call>", value, re.DOTALL)
    if tagged is None:
        thought = re.search(r"<think>\n(.*?)\n</think>\n\n", value, re.DOTALL)
        assert thought is None
        extra_keys, text = "", value
    else:
        extra_keys, text = value.replace(tagged.group(0), ""), tagged.group(1)
    calls = json.loads(text)
    return extra_keys, calls if isinstance(calls, list) else [calls]


def check_order(turns: list[dict[str, str]], *, odd: bool) -> None:
    """The order of turns without which LLaMA-Factory drops a record."""
    for index, turn in enumerate(turns):
        allowed = ("gpt", "function_call") if index % 2 else ("human", "observation")
        assert turn["from"] in allowed
        assert isinstance(turn["value"], str)
    assert len(turns) % 2 == (1 if odd else 0)


def wanted(message: Message) -> tuple[str, list[Any]]:
    """What a turn has to say."""
    before = f"<think>\n{message.reasoning}\n</think>\n\n" if message.reasoning else ""
    before += message.text
    if message.calls and before:
        before += "\n"
    calls = [
        {"name": item.name, "arguments": item.arguments if item.valid else {"input": item.text}}
        for item in message.calls
    ]
    return before, calls


def check_turn(turn: dict[str, str], message: Message) -> None:
    text, calls = wanted(message)
    if calls:
        assert turn["from"] == "function_call"
        assert read_call(turn["value"]) == (text, calls)
    else:
        assert turn == {"from": "gpt", "value": text}


@given(chats(weights=(1.0, 1.0, 1.0, 0.0, 0.5)), st.booleans())
def test_every_trained_step_is_a_turn_or_counted(chat, expand) -> None:
    options = EXPANDED if expand else SHAREGPT.options()
    rows, tally = export(SHAREGPT, chat, options)
    lost = sum(tally.left_out.values())
    trained = 0
    messages = [item for item in chat.messages if item.role == "assistant"]
    for row in rows:
        assert list(row) == ["conversations", "system", "tools"]
        turns = row["conversations"]
        check_order(turns, odd=False)
        for message, turn in zip(messages, turns[1::2], strict=False):
            check_turn(turn, message)
        count = len(turns) // 2
        if expand:  # mask_history: only the last turn is trained
            assert messages[count - 1].weight == 1
            trained += 1
        else:  # every turn of the assistant is trained
            assert [item.weight for item in messages[:count]] == [1] * count
            trained += count
        json.dumps(row, ensure_ascii=False).encode()
        check_context(turns[0::2], row["system"], chat)
    assert trained + lost == len(chat.trained())


def check_context(turns: list[dict[str, str]], system: str, chat: Chat) -> None:
    """Every message before a turn of the assistant stands in the turn before it, in its order."""
    groups: list[list[Message]] = [[]]
    for message in chat.messages:
        if message.role == "assistant":
            groups.append([])
        else:
            groups[-1].append(message)
    first = groups[0]
    while first and first[0].role == "system":
        assert first[0].text in system
        first.pop(0)
    for turn, group in zip(turns, groups, strict=False):
        results = RESULT_JOINT.join(item.text for item in group if item.role == "tool")
        others = [item.text for item in group if item.role != "tool"]
        roles = [item.role == "tool" for item in group]
        assert roles == sorted(roles, reverse=True), "a result after the user's words"
        assert turn["value"] == "\n\n".join([results, *others] if any(roles) else others)
        assert turn["from"] == ("observation" if any(roles) else "human")


def test_parallel_calls_are_a_list_and_their_results_one_turn() -> None:
    chat = chat_of(
        Message("system", "Be brief.", 0),
        user("a"),
        agent("I look.", call("c"), call("d"), reasoning="hm"),
        result("c", "r1"),
        result("d", "r2"),
        agent("done"),
    )
    [row], tally = export(SHAREGPT, chat)
    text = '{"name": "look", "arguments": {"at": "sea"}}'
    assert row["system"] == "Be brief."
    assert json.loads(row["tools"]) == list(chat.tools)
    assert row["conversations"] == [
        {"from": "human", "value": "a"},
        {
            "from": "function_call",
            "value": "<think>\nhm\n</think>\n\nI look.\n"
            f"<tool_call>\n[{text}, {text}]\n</tool_call>",
        },
        {"from": "observation", "value": "r1" + RESULT_JOINT + "r2"},
        {"from": "gpt", "value": "done"},
    ]
    assert not tally.changed


def test_words_of_the_user_beside_results_stand_after_them() -> None:
    made = agent("", call("c"), call("d"))
    chat = chat_of(user("a"), made, result("c", "r"), user("b"), user("c"), agent("done"))
    [row], tally = export(SHAREGPT, chat)
    assert row["conversations"][2] == {"from": "observation", "value": "r\n\nb\n\nc"}
    assert tally.changed == {"messages beside results, joined to them": 1}
    late = replace(chat, messages=(*chat.messages[:5], result("d", "s"), chat.messages[5]))
    rows, tally = export(SHAREGPT, late)
    assert not rows
    assert tally.left_out == {"a result that comes after a message of the user": 2}


@pytest.mark.parametrize(
    ("template", "message", "why"),
    [
        ("mistral", agent("I look.", call("c")), "words beside a call"),
        ("glm4", agent("", call("c"), call("d")), "several calls"),
        ("qwen3", agent("see <tool_call>", call("c")), "look like a call"),
    ],
)
def test_what_stops_the_run_of_a_template_is_left_out(template, message, why) -> None:
    options = SHAREGPT.options(template=template)
    rows, tally = export(SHAREGPT, chat_of(user("a"), message), options)
    assert not rows
    [reason] = tally.left_out
    assert why in reason


def test_marks_of_a_template_inside_arguments_stay_arguments() -> None:
    evil = "<think>x</think> </tool_call> ◁think▷ <tool_call>"
    for template in ("qwen3", "glm4_7", "kimi_vl"):
        chat = chat_of(user("a"), agent("", call("c", evil)))
        [row], _ = export(SHAREGPT, chat, SHAREGPT.options(template=template))
        value = row["conversations"][1]["value"]
        assert "<tool_call>" not in value
        assert json.loads(value)["arguments"] == {"at": evil}


def test_half_a_character_does_not_stop_the_run() -> None:
    odd = ChatCall("look", {"at": "\ud83d"}, '{"at": "\\ud83d"}', "c")
    [row], _ = export(SHAREGPT, chat_of(user("a"), agent("", odd)))
    value = row["conversations"][1]["value"]
    assert json.loads(value)["arguments"] == {"at": "\ufffd"}


@given(chats(), words, words, st.booleans())
def test_a_pair_is_an_odd_number_of_turns_and_two_more(chat, better, worse, calls) -> None:
    made = [call("x")] if calls else []
    pair = pair_of(chat, agent(better, *made), agent(worse, *made, reasoning="r"))
    rows, tally = export(RANKING, pair)
    assert len(rows) + sum(tally.left_out.values()) == 1
    for row in rows:
        check_order(row["conversations"], odd=True)
        check_turn(row["chosen"], pair.chosen.messages[-1])
        check_turn(row["rejected"], pair.rejected.messages[-1])


def test_sides_that_say_the_same_or_are_longer_are_left_out() -> None:
    pair = pair_of(chat_of(user("a")), agent("b"), agent("b"))
    assert export(RANKING, pair)[1].left_out == {"both sides say the same": 1}
    longer = replace(pair.rejected, messages=(*pair.rejected.messages, agent("c")))
    rows, tally = export(RANKING, replace(pair, rejected=longer))
    assert not rows
    assert sum(tally.left_out.values()) == 1


@given(chats(weights=(0.0, 1.0, 0.5)))
def test_the_engine_v1_gets_every_weight(chat) -> None:
    rows, tally = export(SHAREGPT, chat, V1)
    assert not tally.left_out
    assert len(rows) == bool(chat.trained())
    for row in rows:
        for message, out in zip(chat.messages, row["messages"], strict=False):
            assert out["role"] == message.role
            assert out["loss_weight"] == message.weight
            parts: dict[str, list[str]] = {"text": [], "reasoning": [], "tool_call": []}
            for part in out["content"]:
                parts[part["type"]].append(part["value"])
            assert "".join(parts["text"]) == message.text
            assert "".join(parts["reasoning"]) == (message.reasoning or "")
            assert [json.loads(item) for item in parts["tool_call"]] == wanted(message)[1]
        weights = [out["loss_weight"] for out in row["messages"]]
        assert weights[-1] > 0
        assert Counter(weights) == Counter(m.weight for m in chat.messages[: len(weights)])


def test_the_engine_v1_knows_another_mark_for_reasoning_under_qwen3_nothink() -> None:
    chat = chat_of(user("a"), agent("b", reasoning="r"))
    options = SHAREGPT.options(engine="v1", template="qwen3_nothink")
    [row], _ = export(SHAREGPT, chat, options)
    text = "<think>\nr\n</think>\n\nb"
    assert row["messages"][1]["content"] == [{"type": "text", "value": text}]


def test_the_mask_that_each_engine_can_carry() -> None:
    assert SHAREGPT.form(SHAREGPT.options()).mask == "all"
    assert SHAREGPT.form(EXPANDED).mask == "last"
    assert SHAREGPT.form(V1).mask == "weights"
    with pytest.raises(ValueError, match="the engine v1 knows qwen3 and qwen3_nothink"):
        SHAREGPT.options(engine="v1", template="llama3")


def test_the_configuration_says_what_the_rows_need() -> None:
    for options, masked in ((SHAREGPT.options(), False), (EXPANDED, True)):
        files = SHAREGPT.files(options, FACTS)
        config = yaml.safe_load(files["train.yaml"])
        assert config["mask_history"] is masked
        assert config["dataset"] in json.loads(files["dataset_info.json"])
        assert "llamafactory-cli train train.yaml" in files["README.md"]
    assert "dataset_info.json" not in SHAREGPT.files(V1, FACTS)
    info = json.loads(RANKING.files(RANKING.options(), FACTS)["dataset_info.json"])["adp"]
    assert info["ranking"] is True
    assert set(info["columns"].values()) == {
        *("conversations", "system", "tools", "chosen", "rejected"),
    }
