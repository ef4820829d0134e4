"""Traps of published data sets, one to five, on small rows that were written for them."""

from __future__ import annotations

import json

import pytest

from tests.converters.datasets.stores import arguments, store_of, table
from tests.converters.datasets.trap_rows import SAMPLES, TOOL, chat, linked

ACTION = "<function=bash>\n<parameter=command>ls</parameter>\n</function>"
OPEN_ENDED = {
    "swe_smith": [
        {
            "instance_id": "own__boats.0a1b2c3d.lines_1",
            "messages": chat(
                "<pr_description>\nFix it.\n</pr_description>",
                ACTION,
                "OBSERVATION:\nsrc",
                "<function=submit>\n</function>",
            ),
        }
    ],
    "alfworld": [
        {
            "id": "alfworld_1",
            "conversations": chat(
                "Interact with a household.",
                "OK. I'll follow your instructions.",
                "Here is your task.\nYou see a shelf 1.\nYour task is to: put a rope on the shelf.",
                "THOUGHT: I go.\n ACTION: go to shelf 1",
                "You see a rope 1.",
                "ACTION: take rope 1 from shelf 1",
            ),
        }
    ],
    "nebius": [
        {
            "instance_id": "n",
            "model_name": "m",
            "target": False,
            "exit_status": "exit_context",
            "generated_patch": "",
            "eval_logs": "",
            "trajectory": [
                {
                    "role": "system",
                    "text": None,
                    "system_prompt": "Fix.",
                    "mask": False,
                    "cutoff_date": None,
                },
                {
                    "role": "user",
                    "text": "An issue.",
                    "system_prompt": None,
                    "mask": False,
                    "cutoff_date": None,
                },
                {
                    "role": "ai",
                    "text": "I look.\n```\nls\n```",
                    "system_prompt": None,
                    "mask": True,
                    "cutoff_date": None,
                },
                {
                    "role": "user",
                    "text": "src",
                    "system_prompt": None,
                    "mask": False,
                    "cutoff_date": None,
                },
                {
                    "role": "ai",
                    "text": "I open it.\n```\nopen src\n```",
                    "system_prompt": None,
                    "mask": True,
                    "cutoff_date": None,
                },
            ],
        }
    ],
    "openai_sft": [
        {
            "messages": [
                {"role": "user", "content": "Tide?"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "tide", "arguments": "{}"},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "nine"},
                {
                    "role": "assistant",
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "tide", "arguments": "{}"},
                        }
                    ],
                },
            ],
            "tools": [TOOL],
        }
    ],
}


@pytest.mark.parametrize("name", OPEN_ENDED)
def test_1_rows_that_end_on_a_call(tmp_path, name):
    """Two calls, one result: the last call has none, and none is made up."""
    store = store_of(tmp_path, OPEN_ENDED[name])
    calls, results = table(store, "tool_calls"), table(store, "observations")
    assert len(calls) == 2
    assert [(it["call_step"], it["call"]) for it in results] == [
        (calls[0]["step"], calls[0]["call"])
    ]
    assert calls[1]["step"] == max(step["step"] for step in table(store, "steps"))


def test_2_more_results_than_calls(tmp_path):
    call = {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": "{}"}
    output = {"type": "function_call_output", "id": None}
    row = {
        "responses_create_params": {"input": "Count."},
        "response": {
            "id": "r",
            "object": "response",
            "model": "m",
            "output": [
                call,
                {**output, "call_id": "c1", "output": "one"},
                {**output, "call_id": "c2", "output": "two"},
                {**output, "call_id": "c3", "output": "three"},
            ],
        },
        "reward": 1.0,
    }
    store = store_of(tmp_path, [row])
    results = table(store, "observations")
    assert len(table(store, "tool_calls")) == 1
    assert [it["text"] for it in results] == ["one", "two", "three"]
    assert linked(store) == 1


def test_2_results_in_turns_of_the_user(tmp_path):
    turns = chat(
        "Answer by <tool_call> tags.\n\nUser: Which boats?",
        (
            "<think>\nI look.\n</think>\n<tool_call>\n"
            '{"name": "search", "arguments": {"query": ["boats"]}}\n</tool_call>'
        ),
        "<tool_response>\nHeron\n</tool_response>",
        "<think>\nGood.\n</think>\n<answer>\nHeron\n</answer>",
    )
    row = {
        "type": "chatml",
        "task": "t",
        "messages": turns,
        "tool_calls": [],
        "answer": [["Heron"]],
        "functions": [{"name_for_model": "search", "parameters": {"type": "object"}}],
    }
    store = store_of(tmp_path, [row])
    (result,) = table(store, "observations")
    assert (result["text"], linked(store)) == ("Heron", 1)
    assert [step["source"] for step in table(store, "steps")] == ["user", "agent", "agent"]


def test_2_results_that_stand_with_the_call(tmp_path):
    rows = [
        {"role": "User", "text": "Tide?"},
        {
            "role": "API",
            "api_name": "Tide",
            "param_dict": {"place": "Oban"},
            "result": {"api_name": "Tide", "input": {}, "output": "nine", "exception": None},
        },
        {"role": "AI", "text": "At nine."},
    ]
    store = store_of(tmp_path, rows, "Tide-level-1-1.jsonl")
    (call,), (result,) = table(store, "tool_calls"), table(store, "observations")
    assert (call["name"], arguments(call)) == ("Tide", {"place": "Oban"})
    assert (result["text"], result["call"]) == ("nine", 0)


def called(arguments_: object, key: str = "arguments") -> dict[str, object]:
    return {
        "messages": [
            {"role": "user", "content": "Tide?"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"function": {"name": "tide", key: arguments_}}],
            },
        ],
        "tools": [TOOL],
    }


WANTED = {"place": "Oban"}
ARGUMENTS = {
    "object": called(WANTED),
    "string": called(json.dumps(WANTED)),
    "parameters": {
        "instruction": (
            "You can use the following tools:\n1. Name: tide\n"
            "Description: High water\nParameters: {}"
        ),
        "input": "**Dialogue Records History**\n<user> Tide? </user>",
        "output": (
            "<think> I look. </think>\n<tool_call>\n"
            '{"name": "tide", "parameters": {"place": "Oban"}}\n</tool_call>'
        ),
    },
    "action_input": {
        "id": "webshop_x1",
        "conversation": chat(
            "Use tools.", 'Thought: I look.\nAction: tide\nAction Input: {"place": "Oban"}'
        ),
    },
    "python_call": {
        "system": "You are an expert in composing functions. Functions that you can invoke:\n"
        '[{"name": "tide", "description": "d", "parameters": {"type": "dict", '
        '"properties": {}}}]. \nShould you decide',
        "conversations": [
            {"from": "user", "value": "Tide?"},
            {"from": "assistant", "value": '[tide(place="Oban")]'},
        ],
    },
    "python_literal": {
        "id": "h",
        "conversations": [
            {"from": "human", "value": "Tide?"},
            {
                "from": "gpt",
                "value": (
                    "<tool_call>\n{'name': 'tide', 'arguments': {'place': 'Oban'}}\n</tool_call>"
                ),
            },
        ],
        "category": "c",
        "subcategory": "s",
        "task": "t",
        "tools": "[]",
    },
}


@pytest.mark.parametrize("form", ARGUMENTS)
def test_3_arguments_in_any_form(tmp_path, form):
    (call,) = table(store_of(tmp_path, [ARGUMENTS[form]]), "tool_calls")
    assert (call["name"], arguments(call)) == ("tide", WANTED)


def test_3_arguments_that_are_no_object_are_kept_as_they_are(tmp_path):
    (call,) = table(store_of(tmp_path, [called('{"place": "Oban')]), "tool_calls")
    assert (call["arguments"], call["arguments_raw"]) == (None, '{"place": "Oban')


TOOLS = {
    "parameters": {
        "name": "tide",
        "description": "d",
        "parameters": {"place": {"type": "str", "description": "p"}},
    },
    "arguments": {"name": "tide", "description": "d", "arguments": {"place": "str"}},
    "input_schema": {
        "name": "tide",
        "description": "d",
        "input_schema": {"type": "object", "properties": {"place": {"type": "str"}}},
    },
    "input_parameters": {
        "name": "tide",
        "description": "d",
        "input_parameters": {"place": {"type": "str"}},
    },
    "params": {"name": "tide", "doc": "d", "params": {"place": "str"}},
    "dict": {
        "name": "tide",
        "description": "d",
        "parameters": {"type": "dict", "properties": {"place": {"type": "str"}}, "required": None},
    },
    "null_padded": {
        "name": "tide",
        "description": "d",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}, "code": None}},
    },
}


@pytest.mark.parametrize("key", TOOLS)
def test_4_schemas_of_tools_under_any_key(tmp_path, key):
    turns = [{"role": "user", "content": "Tide?"}, {"role": "assistant", "content": "Nine."}]
    row = {"conversation": json.dumps(turns), "tools": json.dumps([TOOLS[key]])}
    (run,) = table(store_of(tmp_path, [row]), "trajectories")
    (tool,) = json.loads(run["tools"])
    schema = tool["function"]["parameters"]
    assert schema["type"] == "object"
    assert {name: it.get("type") for name, it in schema["properties"].items()} == {
        "place": "string"
    }
    assert schema.get("required", []) is not None


@pytest.mark.parametrize("name", SAMPLES)
def test_5_samples_in_prompts_are_no_calls(tmp_path, name):
    store = store_of(tmp_path, [SAMPLES[name]])
    assert len(table(store, "trajectories")) == 1
    assert table(store, "tool_calls") == []
