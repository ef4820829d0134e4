"""Rows for fine-tuning, and logged requests."""

from __future__ import annotations

import re

from adp.converters.known.head import Head
from adp.converters.known.signature import (
    CHAT,
    SHAREGPT,
    KnownFormat,
    Row,
    blocks,
    first,
    has,
    inner,
    is_text,
    items,
    kept_as,
    text,
)

_BRACKET_CALL = re.compile(r"\s*\[[^\[\](){}\"']+\(.*\)\s*\]\s*\Z", re.DOTALL)
_V1_BLOCKS = {"text", "reasoning", "tool_call", "image_url", "video_url", "audio_url"}
_ANTHROPIC_BLOCKS = {"tool_use", "tool_result", "thinking", "redacted_thinking"}


def _has_v1_blocks(messages: list[Row]) -> bool:
    result = blocks(messages)
    return bool(result) and all(
        text(block, "type") in _V1_BLOCKS and "value" in block for block in result
    )


def _llamafactory_v1(row: Row) -> bool:
    return any(
        _has_v1_blocks(items(row, key))
        for key in ("messages", "chosen_messages", "rejected_messages")
    )


def _anthropic(row: Row) -> bool:
    messages = items(row, "messages")
    if not messages or has(row, "stats") or text(row, "id").startswith("T-"):
        return False
    tools = items(row, "tools")
    kinds = {str(block.get("type")) for block in blocks(messages)}
    return any("input_schema" in tool for tool in tools) or bool(kinds & _ANTHROPIC_BLOCKS)


def _responses(row: Row) -> bool:
    answer = inner(row, "response") or row
    return answer.get("object") == "response" and isinstance(answer.get("output"), list)


def _responses_items(row: Row) -> bool:
    kinds = {item.get("type") for item in items(row, "input")}
    return bool(kinds & {"function_call", "function_call_output", "reasoning"})


def _xlam(row: Row) -> bool:
    return is_text(row, "query") and has(row, "answers", "tools")


def _alpaca(row: Row) -> bool:
    return is_text(row, "instruction", "output") and set(row) <= {
        *("instruction", "input", "output", "system", "history", "id", "tools", "images"),
    }


def _prompt_completion(row: Row) -> bool:
    answer = "completion" if "completion" in row else "response"
    return "messages" not in row and any(
        isinstance(row.get("prompt"), kind) and isinstance(row.get(answer), kind)
        for kind in (str, list)
    )


def _toolace(row: Row) -> bool:
    turns = items(row, "conversations")
    spoken = [text(turn, "value") for turn in turns if turn.get("from") in ("assistant", "gpt")]
    return is_text(row, "system") and any(_BRACKET_CALL.match(value) for value in spoken)


def _apibench(row: Row) -> bool:
    return has(row, "api_call", "api_data", "provider", "code")


def _managed_agents(head: Head) -> bool:
    return any(
        isinstance(record, list)
        and len(record) == 2
        and isinstance(record[0], str)
        and record[0].startswith("client.beta.sessions.")
        for record in head.records
    )


FORMATS: tuple[KnownFormat, ...] = (
    KnownFormat("llamafactory_v1", "LLaMA-Factory v1 rows", first(_llamafactory_v1), outranks=CHAT),
    KnownFormat("anthropic_messages", "Anthropic requests", first(_anthropic), outranks=CHAT),
    KnownFormat(
        "anthropic_events",
        "events of Anthropic's managed agents",
        kept_as("lines", _managed_agents),
    ),
    KnownFormat(
        "openai_responses",
        "OpenAI Responses requests",
        first(lambda row: _responses(row) or _responses_items(row)),
    ),
    KnownFormat("xlam", "xLAM rows (query, tools, answers)", first(_xlam)),
    KnownFormat("glaive_v2", "Glaive rows", first(lambda row: is_text(row, "system", "chat"))),
    KnownFormat("toolace", "ToolACE rows", first(_toolace)),
    KnownFormat("alpaca", "Alpaca rows (instruction, output)", first(_alpaca)),
    KnownFormat("prompt_completion", "rows of prompt and completion", first(_prompt_completion)),
    KnownFormat("apibench", "APIBench rows", first(_apibench)),
    KnownFormat(
        "action_studio",
        "ActionStudio rows",
        first(lambda row: has(row, "unique_trajectory_id", "conversation")),
        outranks=SHAREGPT,
    ),
    KnownFormat(
        "sage_dialogs",
        "SAGE dialogs",
        first(lambda row: has(row, "dialog_id", "turns", "target_tools")),
    ),
)
