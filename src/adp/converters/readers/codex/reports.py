"""What an event of a Codex log says of a call: how it ended, its output, its command."""

from __future__ import annotations

from typing import Any

from adp.converters.kit.source_object import SourceObject
from adp.converters.readers.codex.repeated_items import block_texts
from adp.converters.reading import BRACE, NULL, QUOTE
from adp_schema.model import Columns

_FAILED = frozenset({"failed", "error", "declined"})


def outcome(item: SourceObject) -> Columns:
    """Exit code, error and duration of an event; the values stay in it."""
    columns: Columns = {}
    code = item.integer_at("exit_code", 32)
    if code is not None:
        columns["exit_code"] = code
    failed = item.word("status") in _FAILED or item.first("error") not in (0, NULL)
    succeeded = item.word("status") == "completed"
    if item.first("success") in (0x74, 0x66):
        failed, succeeded = item.first("success") == 0x66, item.first("success") == 0x74
    result = item.peek("result")
    if "Err" in result:
        failed = True
    for inner in (result, result.peek("Ok")):
        if inner.first("isError") == 0x74:
            failed = True
        elif inner.first("isError") == 0x66:
            succeeded = True
    if failed or succeeded:
        columns["is_error"] = failed
    duration = item.peek("duration")
    seconds, nanos = duration.integer_at("secs"), duration.integer_at("nanos")
    if seconds is not None:
        columns["duration_ms"] = seconds * 1e3 + (nanos or 0) / 1e6
    return columns


def output_of(item: SourceObject) -> tuple[str, dict[str, Any]]:
    """Take the text that stands for the output of an event; the others that are equal are named."""
    names = ("formatted_output", "aggregated_output", "stdout")
    for name in (*names, "revised_prompt"):
        if text := item.word(name):
            item.drop(name)
            same = [key for key in names if item.word(key) == text]
            item.drop(*same)
            return text, {"text_of": [name, *same]}
    return _result_text(item)


def _result_text(item: SourceObject) -> tuple[str, dict[str, Any]]:
    """The text of the result of an MCP call, which stays where it is."""
    if item.first("result") == BRACE:
        result = item.peek("result")
        if result.first("Err") == QUOTE:
            return result.word("Err"), {}
        result = result.peek("Ok") or result
        return "\n\n".join(block_texts(result.values.get("content"))), {}
    return "\n\n".join(block_texts(item.values.get("content_items"))), {}


def command_of(item: SourceObject, *keys: str) -> str:
    """A command as one text: what a shell is asked to run, or the words."""
    for key in keys:
        if item.first(key) == QUOTE:
            return item.word(key)
        words = block_texts(item.values.get(key))
        if words:
            return words[-1] if len(words) == 3 and words[1] in ("-lc", "-c") else " ".join(words)
    return ""
