"""Calls, results, messages and tokens as a plain walk over the raw JSON counts them.

For readers whose tests do not count them elsewhere; over the examples, and real files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.converters.readers.real_files import FOLDERS, Rows
from tests.fuzz.readers import EXAMPLES

Counts = dict[str, int]


def values_of(path: Path) -> list[dict[str, Any]]:
    """The objects of a file: its lines, or the document."""
    text = path.read_text("utf-8")
    try:
        value = json.loads(text)
    except ValueError:
        lines = [json.loads(line) for line in text.splitlines() if line.strip()]
        return [line for line in lines if isinstance(line, dict)]
    return value if isinstance(value, list) else [value]


def blocks(content: Any, *kinds: str) -> int:
    return sum(it.get("type") in kinds for it in content if isinstance(it, dict)) if isinstance(
        content, list) else 0  # fmt: skip


def pi(values: list[dict[str, Any]]) -> Counts:
    messages = [it["message"] for it in values if it.get("type") == "message"]
    turns = [it for it in messages if it.get("role") == "assistant"]
    return {
        "calls": sum(blocks(it.get("content"), "toolCall") for it in turns),
        "results": sum(it.get("role") == "toolResult" for it in messages),
        "turns": len(turns),
        "tokens": sum(it["usage"].get("output", 0) for it in turns if "usage" in it),
    }


def amp(values: list[dict[str, Any]]) -> Counts:
    messages = [message for it in values for message in it["messages"]]
    return {
        "calls": sum(blocks(it.get("content"), "tool_use") for it in messages),
        "results": sum(blocks(it.get("content"), "tool_result") for it in messages),
        "turns": sum(it["role"] == "assistant" for it in messages),
        "tokens": sum(it.get("usage", {}).get("outputTokens", 0) for it in messages),
    }


def cline(values: list[dict[str, Any]]) -> Counts:
    return {
        "calls": sum(blocks(it.get("content"), "tool_use") for it in values),
        "results": sum(blocks(it.get("content"), "tool_result") for it in values),
        "turns": sum(it.get("role") == "assistant" for it in values),
        "tokens": sum(it.get("metrics", {}).get("tokens", {}).get("completion", 0)
                      for it in values),
    }  # fmt: skip


def crush(values: list[dict[str, Any]]) -> Counts:
    messages = [message for it in values for message in it["messages"]]
    texts = [it["parts"] for it in messages if str(it["parts"]).startswith("[")]
    parts = [part for text in texts for part in json.loads(text)]
    return {
        "calls": blocks(parts, "tool_call"),
        "results": blocks(parts, "tool_result"),
        "turns": sum(it["role"] == "assistant" for it in messages),
        "prompts": sum(it["role"] == "user" for it in messages),
        "prompt_total": sum(it["sessions"].get("prompt_tokens") or 0 for it in values),
        "total": sum(it["sessions"].get("completion_tokens") or 0 for it in values),
        "links": sum(bool(it["sessions"].get("parent_session_id")) for it in values),
    }


def claude_workflow(values: list[dict[str, Any]]) -> Counts:
    """Lines of a journal, or the entries of a run; an agent is linked once."""
    entries = [it for value in values for it in value.get("workflowProgress", [value])]
    return {
        "events": len(entries),
        "links": len({it["agentId"] for it in entries if it.get("agentId")}),
        "texts": sum(
            isinstance(it.get("result"), str) or any(key in it for key in ("label", "title"))
            for it in entries
        ),
    }


def claude_stream_json(values: list[dict[str, Any]]) -> Counts:
    last = {it["message"]["id"]: it["message"] for it in values if it.get("type") == "assistant"}
    contents = [
        it["message"]["content"] for it in values if it.get("type") in ("user", "assistant")
    ]
    return {
        "calls": sum(blocks(it, "tool_use") for it in contents),
        "results": sum(blocks(it, "tool_result") for it in contents),
        "turns": len(last),
        "tokens": sum(it["usage"]["output_tokens"] for it in last.values()),
        "agents": len({it["parent_tool_use_id"] for it in values
                       if it.get("parent_tool_use_id")}),
    }  # fmt: skip


def gemini_cli(values: list[dict[str, Any]]) -> Counts:
    models = [
        it for value in values for it in value["messages"] if it.get("type") in ("gemini", "model")
    ]
    calls = [call for it in models for call in it.get("toolCalls") or []]
    used = [it["tokens"] for it in models if it.get("tokens")]
    return {
        "calls": len(calls),
        "results": sum(bool(it.get("result") or it.get("resultDisplay")) for it in calls),
        "turns": len(models),
        "prompt": sum(it["input"] for it in used),
    }


def chat_completions(values: list[dict[str, Any]]) -> Counts:
    messages = list(messages_of(values))
    calls = [it for message in messages for it in message.get("tool_calls") or ()]
    return {
        # Pieces of a stream after the first one have no id.
        "calls": sum("id" in it for it in calls) + sum("function_call" in it for it in messages),
        "results": sum(it.get("role") == "tool" for it in messages),
    }


def messages_of(value: Any) -> Iterator[dict[str, Any]]:
    """Every message below a value, and every piece of one, also in the text of a stream."""
    if isinstance(value, str) and value.startswith("data: {"):
        lines = [line.removeprefix("data: ") for line in value.splitlines()]
        value = [json.loads(line) for line in lines if line.startswith("{")]
    if isinstance(value, dict):
        if "role" in value or "tool_calls" in value:
            yield value
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        yield from messages_of(item)


def openhands_output(values: list[dict[str, Any]]) -> Counts:
    flat = [event for it in values for item in it["history"]
            for event in (item if isinstance(item, list) else [item])]  # fmt: skip
    named = [it.get("action") for it in flat if isinstance(it.get("action"), str)]
    seen = [it.get("observation") for it in flat if it.get("observation") not in (None, "null")]
    return {
        "calls": sum(it not in ("system", "message", "recall") for it in named)
        + sum(it.get("kind") == "ActionEvent" or "tool_call" in it for it in flat),
        "results": len(seen),
    }


def swe_agent_rows(values: list[dict[str, Any]]) -> Counts:
    """A fence in a turn is a call, and what the user says after it the result."""
    calls = results = prompts = turns = 0
    for value in values:
        is_open = False
        for line in value["trajectory"]:
            if line["role"] == "ai":
                turns += 1
                is_open = len(re.findall("^[ ]*```", line["text"] or "", re.MULTILINE)) > 1
                calls += is_open
            elif line["role"] == "user":
                results, prompts = results + is_open, prompts + (not is_open)
                is_open = False
    messages = sum(len(value["trajectory"]) for value in values)
    return {"calls": calls, "results": results, "prompts": prompts, "turns": turns,
            "messages": messages}  # fmt: skip


journal = claude_workflow
_WORKFLOW = "claude_workflow/3a3a0000-0000-4000-8000-000000000001"
FILES = {
    pi: ("pi/session.jsonl", "formats*/pi/*.jsonl", "formats*/openclaw/*session.jsonl"),
    amp: ("amp/thread.json",),
    cline: ("cline/api_conversation_history.json",),
    crush: ("crush/rows.jsonl",),
    claude_stream_json: ("claude_stream_json/run.jsonl",),
    gemini_cli: ("gemini_cli/document.json", "formats*/gemini_cli/*.json"),
    chat_completions: ("chat_completions/log.jsonl",),
    openhands_output: ("openhands_output/output.jsonl",),
    swe_agent_rows: (
        "swe_agent_rows/rows.jsonl",
        "adp_v1/nebius*/sample_raw.json",
        "datasets_new/adp_nebius*/sample_raw.json",
    ),
    claude_workflow: (
        f"{_WORKFLOW}/workflows/wf_loom.json",
        "formats*/claude_code/*/*/workflows/*.json",
    ),
    journal: (
        f"{_WORKFLOW}/subagents/workflows/wf_loom/journal.jsonl",
        "formats*/claude_code/*/*/subagents/workflows/*/journal.jsonl",
    ),
}
CASES = [
    pytest.param(count, path, id=f"{count.__name__}-{path.name}")
    for count, (example, *patterns) in FILES.items()
    for path in [EXAMPLES / example, *(it for folder in FOLDERS for pattern in patterns
                                       for it in sorted(Path(folder).glob(pattern)))]
]  # fmt: skip


@pytest.mark.parametrize(("count", "path"), CASES)
def test_the_store_has_what_the_raw_file_has(count, path, tmp_path):
    rows = Rows([path], tmp_path / "store")
    steps = "steps s where s.is_copied_context is not true"
    tables = {
        "calls": "select count(*) from tool_calls",
        "results": "select count(*) from observations",
        "turns": f"select count(*) from {steps} and source = 'agent'",
        "tokens": f"select coalesce(sum(tokens_out), 0) from {steps}",
        "prompts": f"select count(*) from {steps} and source = 'user'",
        "events": f"select count(*) from {steps} and kind = 'event'",
        "texts": f"select count(*) from {steps} and kind = 'event' and text is not null",
        "links": "select count(*) from links",
        "prompt_total": "select coalesce(sum(total_tokens_in), 0) from trajectories",
        "prompt": f"select coalesce(sum(tokens_in), 0) from {steps}",
        "total": "select coalesce(sum(total_tokens_out), 0) from trajectories",
        "agents": "select count(*) from all_trajectories where branch_kind = 'subagent'",
        "messages": "select (select count(*) from steps) + (select count(*) from observations)",
    }
    counted = count(values_of(path))
    assert {name: rows.value(tables[name]) for name in counted} == counted
