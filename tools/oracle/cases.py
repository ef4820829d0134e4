"""Hand-written ShareGPT records with what LLaMA-Factory makes of each.

They show that the oracle can say no: a run in which one of them gets another verdict fails.
``accepted but X`` means that the loader takes the record and the template X stops at it.
"""

from __future__ import annotations

import json
from typing import Any

Turn = tuple[str, Any]

CALL = '{"name": "look", "arguments": {"at": "sea"}}'
HUMAN, GPT = ("human", "What is there?"), ("gpt", "The sea.")
FUNCTION, RESULT = ("function_call", CALL), ("observation", "water")
FLAT = {
    "name": "look",
    "description": "Looks.",
    "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
}
TOOLS = json.dumps([FLAT])
STOPS = "failed"
DROPS = "dropped"


def record(*turns: Turn, **columns: Any) -> dict[str, Any]:
    """A record with these turns and columns."""
    return {"conversations": [{"from": who, "value": what} for who, what in turns], **columns}


def calling(value: str, tools: Any = TOOLS) -> dict[str, Any]:
    """A record whose call is written like this."""
    return record(HUMAN, ("function_call", value), RESULT, GPT, tools=tools)


def _tools(**changes: Any) -> str:
    return json.dumps([{**FLAT, "parameters": {**FLAT["parameters"], **changes}}])  # type: ignore[dict-item]


CASES: dict[str, tuple[dict[str, Any], str]] = {
    # order of turns
    "one_exchange": (record(HUMAN, GPT), "accepted"),
    "two_exchanges": (record(HUMAN, GPT, HUMAN, GPT), "accepted"),
    "a_call": (record(HUMAN, FUNCTION, RESULT, GPT, tools=TOOLS), "accepted"),
    "a_call_without_tools": (record(HUMAN, FUNCTION, RESULT, GPT), "accepted"),
    "ends_with_a_call": (record(HUMAN, FUNCTION), "accepted"),
    "begins_with_a_result": (record(RESULT, GPT), "accepted"),
    "empty_words": (record(("human", ""), ("gpt", "a")), "accepted"),
    "two_humans": (record(HUMAN, HUMAN, GPT), DROPS),
    "two_answers": (record(HUMAN, GPT, GPT), DROPS),
    "answer_then_call": (record(HUMAN, GPT, FUNCTION, RESULT, GPT), DROPS),
    "two_calls_in_a_row": (record(HUMAN, FUNCTION, FUNCTION, RESULT, GPT), DROPS),
    "two_results_in_a_row": (record(HUMAN, FUNCTION, RESULT, RESULT, GPT), DROPS),
    "result_then_human": (record(HUMAN, FUNCTION, RESULT, HUMAN, GPT), DROPS),
    "ends_with_human": (record(HUMAN, GPT, HUMAN), DROPS),
    "ends_with_a_result": (record(HUMAN, FUNCTION, RESULT), DROPS),
    "begins_with_an_answer": (record(GPT, HUMAN, GPT), DROPS),
    "no_turns": (record(), DROPS),
    "other_role": (record(HUMAN, FUNCTION, ("tool", "water"), GPT), DROPS),
    # system
    "system_turn": (record(("system", "Be brief."), HUMAN, GPT), "accepted"),
    "system_column": (record(HUMAN, GPT, system="Be brief."), "accepted"),
    "system_twice": (record(("system", "a"), ("system", "b"), HUMAN, GPT), DROPS),
    "system_later": (record(HUMAN, GPT, ("system", "b"), HUMAN, GPT), DROPS),
    # values
    "null_words": (record(HUMAN, ("gpt", None)), STOPS),
    "list_of_words": (record(HUMAN, ("gpt", ["a"])), STOPS),
    "lone_surrogate": (record(HUMAN, ("gpt", "\ud83d")), STOPS),
    # calls
    "parallel_calls": (calling(f"[{CALL}, {CALL}]"), "accepted but glm4"),
    "call_with_an_id": (calling('{"name": "look", "arguments": {}, "id": "1"}'), "accepted"),
    "arguments_in_a_string": (calling('{"name": "look", "arguments": "{}"}'), "accepted"),
    "no_arguments": (calling('{"name": "look"}'), STOPS),
    "no_name": (calling('{"arguments": {}}'), STOPS),
    "no_json": (calling("look(sea)"), STOPS),
    "words_then_call": (calling(f"I look. {CALL}"), STOPS),
    "thought_on_one_line": (calling(f"<think>I look.</think>{CALL}"), STOPS),
    "thought": (calling(f"<think>\nI look.\n</think>\n\n{CALL}"), "accepted but mistral"),
    "words_and_tag": (
        calling(f"I look.\n<tool_call>\n{CALL}\n</tool_call>"),
        "accepted but mistral",
    ),
    "words_and_tag_with_two": (
        calling(f"I look.\n<tool_call>\n[{CALL}, {CALL}]\n</tool_call>"),
        "accepted but glm4, mistral",
    ),
    # tools
    "wrapped_tools": (
        calling(CALL, json.dumps([{"type": "function", "function": FLAT}])),
        "accepted",
    ),
    "empty_tools": (calling(CALL, ""), "accepted"),
    "tools_as_a_list": (calling(CALL, [FLAT]), STOPS),
    "one_tool_without_a_list": (calling(CALL, json.dumps(FLAT)), STOPS),
    "tools_no_json": (calling(CALL, "look(at)"), STOPS),
    "tool_without_properties": (
        calling(CALL, '[{"name": "look", "parameters": {}}]'),
        "accepted but chatml, default",
    ),
    "tool_required_null": (calling(CALL, _tools(required=None)), "accepted but chatml, default"),
    # files
    "image": (record(("human", "<image>What?"), GPT, images=["sea.png"]), "accepted"),
    "image_without_a_place": (record(HUMAN, GPT, images=["sea.png"]), STOPS),
}
