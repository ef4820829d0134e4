"""Rows for fine-tuning, and logged requests."""

from __future__ import annotations

import re
from typing import Any

from adp.converters.known.head import Head
from adp.converters.known.signature import (
    CHAT,
    LIST,
    SHAREGPT,
    TEXT,
    KnownFormat,
    begins,
    blocks,
    both,
    either,
    first,
    has,
    kept_as,
    lacks,
    no,
    only,
    some,
    word,
)

_BRACKET_CALL = re.compile(r"\s*\[[^\[\](){}\"']+\(.*\)\s*\]\s*\Z", re.DOTALL)
_ANTHROPIC_BLOCK = word("tool_use", "tool_result", "thinking", "redacted_thinking")
_RESPONSE = has(object=word("response"), output=LIST)
_RESPONSE_ITEM = word("function_call", "function_call_output", "reasoning")
_ALPACA = ("instruction", "input", "output", "system", "history", "id", "tools", "images")


def _calls_in_brackets(value: Any) -> bool:
    return isinstance(value, str) and _BRACKET_CALL.match(value) is not None


def _managed_agents(head: Head) -> bool:
    return any(
        isinstance(record, list) and len(record) == 2 and begins("client.beta.sessions.")(record[0])
        for record in head.records
    )


FORMATS: tuple[KnownFormat, ...] = (
    KnownFormat(
        "anthropic_messages",
        "Anthropic requests",
        first(
            both(
                has(messages=some(has())),
                lacks("stats"),
                no(has(id=begins("T-"))),
                either(
                    has(tools=some(has("input_schema"))),
                    has(messages=blocks(some(has(type=_ANTHROPIC_BLOCK)))),
                ),
            )
        ),
        outranks=CHAT,
    ),
    KnownFormat(
        "anthropic_events",
        "events of Anthropic's managed agents",
        kept_as("lines", _managed_agents),
    ),
    KnownFormat(
        "openai_responses",
        "OpenAI Responses requests",
        first(
            either(_RESPONSE, has(response=_RESPONSE), has(input=some(has(type=_RESPONSE_ITEM))))
        ),
    ),
    KnownFormat("glaive_v2", "Glaive rows", first(has(system=TEXT, chat=TEXT))),
    KnownFormat(
        "toolace",
        "ToolACE rows",
        first(
            has(
                system=TEXT,
                conversations=some(
                    has(value=_calls_in_brackets, **{"from": word("assistant", "gpt")})
                ),
            )
        ),
    ),
    KnownFormat(
        "alpaca",
        "Alpaca rows (instruction, output)",
        first(both(has(instruction=TEXT, output=TEXT), only(*_ALPACA))),
    ),
    KnownFormat(
        "prompt_completion",
        "rows of prompt and completion",
        first(
            both(
                lacks("messages"),
                either(
                    has(prompt=TEXT, completion=TEXT),
                    has(prompt=LIST, completion=LIST),
                    both(lacks("completion"), has(prompt=TEXT, response=TEXT)),
                    both(lacks("completion"), has(prompt=LIST, response=LIST)),
                ),
            )
        ),
    ),
    KnownFormat(
        "apibench", "APIBench rows", first(has("api_call", "api_data", "provider", "code"))
    ),
    KnownFormat(
        "action_studio",
        "ActionStudio rows",
        first(has("unique_trajectory_id", "conversation")),
        outranks=SHAREGPT,
    ),
    KnownFormat("sage_dialogs", "SAGE dialogs", first(has("dialog_id", "turns", "target_tools"))),
)
