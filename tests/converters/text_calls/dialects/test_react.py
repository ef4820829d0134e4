"""ReAct: each way to write an action, and texts that only look like it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from adp.converters.text_calls.dialects.react import DIALECT
from tests.converters.text_calls.dialects import checks, upstream

CHATS = [
    "datasets/fireact/gpt_format.hotpotqa.head8.jsonl",
    "datasets/fireact/gpt_format.multitask_multimethod.head8.jsonl",
    "datasets_new/fireact_more/hotpotqa_multimethod.rows300+60.jsonl",
    "datasets/toolbench/real.toolllama_G123_dfs_train.row1_conversations.json",
    "datasets/toolbench/derived.toolllama_dfs_shape.json",
]
ALPACA = [
    "datasets/fireact/alpaca_format.hotpotqa.head8.json",
    "datasets/fireact/alpaca_format.multitask_multimethod.head8.json",
]
T = "Thought: I think.\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (T + 'Action: find\nAction Input: {"q": "a", "n": 1.50}', [("find", {"q": "a", "n": 1.5})]),
        ("\nThought: \nAction: f\nAction Input: {\n \"a\": 1", [("f", '{\n "a": 1')]),
        (T + "Action: f\nAction Input: {'a': True, 'b': None}", [("f", {"a": True, "b": None})]),
        (T + "Action: f\nAction Input: red shoes\nand socks", [("f", "red shoes\nand socks")]),
        (T + "Action: f\nAction Input:", [("f", {})]),
        (T + 'Action: f\nAction Input: ```json\n{"a": 1}\n```', [("f", {"a": 1})]),
        (T + 'Action: f with Action Input: {"a": 1}', [("f", {"a": 1})]),
        (T + 'Action: My Tool\nAction Input: {"a": 1}', [("My Tool", {"a": 1})]),
        (T + '**Action:** f\n**Action Input:** {"a": 1}', [("f", {"a": 1})]),
        (T + "Action: search[red [big] shoes]", [("search", {"keywords": "red [big] shoes"})]),
        ("Thought 1: a\nAction 1: Search[b]", [("Search", {"keywords": "b"})]),
        ("Thought1: a\nAction1: Lookup[b]", [("Lookup", {"input": "b"})]),
        ("Thought 12: a\nAction 12: Lookup[b]", [("Lookup", {"input": "b"})]),
        ("Thought:\na\n\nAction:\nclick[Buy Now]", [("click", {"element": "Buy Now"})]),
        (T + "Action: finish[1999]", [("finish", {"answer": "1999"})]),
        (T + "Action: execute[ls -l | wc]", [("execute", {"command": "ls -l | wc"})]),
        (T + "Action: f(a=1, b='x')", [("f", {"a": 1, "b": "x"})]),
        (T + "Action: get(New York, #2)", [("get", {"arg0": "New York", "arg1": "#2"})]),
        (T + "Action: submit()", [("submit", {})]),
        (T + 'Action:\n```\n{"action": "f", "action_input": {"a": 1}}\n```', [("f", {"a": 1})]),
        (T + 'Action: {"action": "f", "action_input": "x"}', [("f", {"input": "x"})]),
        (T + "Action: go to shelf 1", [("go", {"location": "shelf 1"})]),
        (T + "Action: take mug 1 from desk 2", [("take", {"item": "mug 1", "source": "desk 2"})]),
        ("Action: put a 1 in/on b 2", [("put", {"item": "a 1", "target": "b 2"})]),
        (T + "Action: focus on lamp", [("perform_action", {"action": "focus on lamp"})]),
        (T + "Action: look", [("look", {})]),
        (T + "API Name: Find\nAPI Input: {'city': 'Rome'}", [("Find", {"city": "Rome"})]),
        (T + 'Action: a\nAction Input: {"x": 1}\nThought: b\nAction: b\nAction Input: {"x": 2}',
         [("a", {"x": 1}), ("b", {"x": 2})]),
        (T + "Action: search[x]\nThat should help.", [("search", {"keywords": "x"})]),
    ],
)  # fmt: skip
def test_calls(text: str, expected: list[tuple[str, Any]]) -> None:
    assert checks.calls(DIALECT, text) == expected
    assert checks.rewritten(DIALECT, text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('Action: f\nAction Input: {"a": 1}', "object"),
        ("Action: f\nAction Input: {'a': 1}", "python_literal"),
        ("Action: f\nAction Input: {'a': g()}", "invalid"),
        ("Action: f\nAction Input: a", "text"),
        ("Action: search[a]", "dsl"),
    ],
)
def test_how_arguments_are_written(text: str, kind: str) -> None:
    assert [call.written_as for call in DIALECT.parse(text).calls] == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "In ReAct, a turn has a Thought: and an Action: with an Action Input:.",
        "Use this form:\n```\nThought: t\nAction: f\nAction Input: {}\n```\nThat is all.",
        "Action: Please restart the server.",
        "Plan\nAction: restart the server",
        "Action:\n",
        T + "Action: None\nAction Input: None",
        "Thought: I know the answer, it is 4.",
        "Recommended Action: restart",
        "The call to action: buy now",
        "Action items:\n- search[x]",
        T + "Action: I would ask the user for a name.",
        "",
    ],
)
def test_what_is_no_call(text: str) -> None:
    turn = checks.checked(DIALECT, text)
    assert not turn


def test_thoughts_answers_and_prose() -> None:
    text = "Sure.\nThought: one\ntwo\n\nAction: f\nAction Input: {}\n"
    assert checks.thoughts(DIALECT, text) == ["one\ntwo"]
    assert checks.prose(DIALECT, text) == "Sure."
    text = "Thought: I now know.\nFinal Answer: 42\nand more"
    assert checks.answer(DIALECT, text) == "42\nand more"
    assert checks.thoughts(DIALECT, text) == ["I now know."]
    assert DIALECT.parse(T + "Action: I ask: why?").left is not None


def test_the_name_of_a_tool_alone() -> None:
    text = "Plan\nAction: Restart"
    assert checks.calls(DIALECT, text) == []
    assert checks.calls(DIALECT, text, "Restart") == [("Restart", {})]


@pytest.mark.parametrize("name", ["get_time", "time.now", "getTime", "GetTime", "time2", "_t"])
def test_a_word_that_is_a_name_is_called_without_arguments(name: str) -> None:
    text = f"{T}Action: {name}"
    assert checks.calls(DIALECT, text) == [(name, {})]
    assert checks.calls(DIALECT, text, "search") == [(name, {})]
    assert checks.rewritten(DIALECT, text)
    assert checks.calls(DIALECT, f"Plan\nAction: {name}") == []


@pytest.mark.parametrize("word", ["wait", "2", "Wait", "wait."])
def test_a_plain_word_is_no_name(word: str) -> None:
    assert (word, {}) not in checks.calls(DIALECT, f"{T}Action: {word}")


def test_words_behind_the_name_of_a_tool_are_left() -> None:
    text = T + "Action: search the web please"
    assert checks.calls(DIALECT, text, "search") == []
    assert "arguments" in str(DIALECT.parse(text, ("search",)).left)
    assert "arguments" in str(DIALECT.parse(T + "Action: web_search red shoes").left)
    assert "on offer" in str(DIALECT.parse(T + "Action: focus on lamp", ("search",)).left)
    action = [("perform_action", {"action": "search the web please"})]
    assert checks.calls(DIALECT, text) == action
    assert checks.calls(DIALECT, text, "perform_action") == action


@pytest.mark.parametrize(
    "mark", ["Observation: ", "Observation 3: ", "Response: ", "Observation:\n", ""]
)
def test_results(mark: str) -> None:
    assert checks.results(DIALECT, f"{mark}It is 4.\n", "Action: search[x]") == ["It is 4.\n"]


def test_a_text_that_holds_a_run() -> None:
    parts = [
        "Thought: a\nAction: search[b]\n",
        "Observation: c\nmore\n",
        "Thought: d\nAction: finish[e]\n",
        "Observation: Episode finished, reward = True\n",
    ]
    pieces = DIALECT.pieces("".join(parts))
    assert ["".join(parts)[slice(*piece.span)] for piece in pieces] == parts
    assert [piece.source for piece in pieces] == ["agent", "result", "agent", "result"]
    numbered = "Question: q\nThought 1: a\nAction 1: Search[b]\nObservation 1: c\nThought 2: d"
    assert [piece.source for piece in DIALECT.pieces(numbered)] == ["agent", "result", "agent"]
    assert DIALECT.pieces(parts[0]) == []
    assert DIALECT.pieces(parts[0] + "Observation:") == []
    assert DIALECT.pieces("Observation: a man walks in.\nThought: hm") == []


@pytest.mark.parametrize(
    ("text", "change", "expected"),
    [
        ("Thought 3: a\nAction 3: Search[b]", {"arguments": '{"keywords": "c"}'},
         "Thought 3: a\nAction 3: Search[c]"),
        ("Action: f\nAction Input: {'a': 1}\n", {"arguments": '{"a": 2}'},
         'Action: f\nAction Input: {"a": 2}\n'),
        ("**Action:** f\n**Action Input:** x", {"name": "g", "raw": "y"},
         "**Action:** g\n**Action Input:** y"),
        ("Action: f with Action Input: {}", {"arguments": '{"a": 2}'},
         'Action: f with Action Input: {"a": 2}'),
        ("Action:\ngo to desk 1", {"arguments": '{"location": "bed 2"}'}, "Action:\ngo to bed 2"),
    ],
)  # fmt: skip
def test_edits_keep_the_labels(text: str, change: dict[str, Any], expected: str) -> None:
    (call,) = DIALECT.parse(text).calls
    written = DIALECT.write(replace(call, **change))
    assert written is not None
    assert text[: call.span[0]] + written + text[call.span[1] :] == expected


def test_edits() -> None:
    text = T + 'Action: f\nAction Input: {"a": 1}\n'
    assert checks.edited(DIALECT, text, name="g") == [("g", {"a": 1})]
    assert checks.edited(DIALECT, text, arguments='{"a":[2]}') == [("f", {"a": [2]})]
    text = T + "Action: search[x]"
    assert checks.edited(DIALECT, text, arguments='{"keywords": "y"}') == [
        ("search", {"keywords": "y"})
    ]
    assert checks.edited(DIALECT, text, arguments='{"n": 1}') == [("search", {"n": 1})]
    text = T + "Action: go to desk 1"
    assert checks.edited(DIALECT, text, arguments='{"location": "bed 2"}') == [
        ("go", {"location": "bed 2"})
    ]


@pytest.mark.parametrize("path", CHATS)
def test_real_turns(path: str) -> None:
    turns = upstream.agent_turns(path)
    assert turns
    for text in turns:
        line = re.findall(r"^Action: *(.*)$", text, re.MULTILINE)[-1].strip()
        ((name, values),) = checks.calls(DIALECT, text)
        if "Action Input:" in text:
            given = text.split("Action Input:", 1)[1].strip()
            assert (name, values) == (line, json.loads(given))
        else:
            assert f"{name}[{''.join(values.values())}]" == line
        thought = text.split("Thought:", 1)[1].split("\nAction:", 1)[0].strip()
        assert checks.thoughts(DIALECT, text) == [thought]
        assert checks.prose(DIALECT, text) == ""
        checks.rewritten(DIALECT, text)


def test_real_texts_that_hold_runs() -> None:
    texts = [
        *(row["output"] for path in ALPACA for row in upstream.sample(path)),
        *upstream.sample("datasets_new/react_prompts/prompts_naive.json").values(),
    ]
    for text in texts:
        actions = re.findall(r"^Action(?: \d+)?: *(.*)", text, re.MULTILINE)
        results = re.findall(r"^Observation(?: \d+)?: *\S", text, re.MULTILINE)
        pieces = DIALECT.pieces(text)
        agent = [text[slice(*piece.span)] for piece in pieces if piece.source == "agent"]
        calls = [call for part in agent for call in checks.calls(DIALECT, part)]
        assert [f"{name}[{''.join(values.values())}]" for name, values in calls] == actions
        assert len(pieces) - len(agent) == len(results)
