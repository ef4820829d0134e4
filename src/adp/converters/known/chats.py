"""Rows for fine-tuning, and logged requests."""

from __future__ import annotations

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
    lacks,
    no,
    only,
    some,
    word,
)

_ANTHROPIC_BLOCK = word("tool_use", "tool_result", "thinking", "redacted_thinking")
_ALPACA = ("instruction", "input", "output", "system", "history", "id", "tools", "images")


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
        "action_studio",
        "ActionStudio rows",
        first(has("unique_trajectory_id", "conversation")),
        outranks=SHAREGPT,
    ),
)
