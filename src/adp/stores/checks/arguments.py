"""Checks of the arguments of calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from adp.stores.checks import tool_schema
from adp.stores.checks.call_pass import INVALID, CheckedCall
from adp.stores.checks.model import CallRule, Check, SqlCheck
from adp.stores.checks.sql import call_path
from adp.stores.checks.tool_schema import ArgumentSchemas
from adp.stores.stats import INVALID_ARGUMENTS

_TOOL_KINDS = frozenset({"function", "mcp", "gui", None})
_SEARCH_WORDS = ("query", "search", "keyword", "phrase", "pattern", "regex", "text")

Faults = Iterator[tuple[CheckedCall, str, str]]


def _of_tools(calls: Sequence[CheckedCall]) -> Iterator[CheckedCall]:
    """The calls of tools, not of code or messages."""
    return (call for call in calls if call.kind in _TOOL_KINDS)


def _double_encoded(calls: Sequence[CheckedCall], tools: ArgumentSchemas | None) -> Faults:
    for call in calls:
        if isinstance(call.value, str) and _holds_json(call.value):
            yield call, ".arguments", call.arguments or ""


def _holds_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return False
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _not_an_object(calls: Sequence[CheckedCall], tools: ArgumentSchemas | None) -> Faults:
    for call in _of_tools(calls):
        if call.value is INVALID or isinstance(call.value, dict):
            continue
        if not (isinstance(call.value, str) and _holds_json(call.value)):
            yield call, ".arguments", call.arguments or ""


def _quoted_strings(calls: Sequence[CheckedCall], tools: ArgumentSchemas | None) -> Faults:
    """Quotes around every value of an argument; around one alone they may be meant."""
    values: dict[tuple[str | None, str], list[tuple[CheckedCall, str]]] = defaultdict(list)
    for call in _of_tools(calls):
        for key, value in call.fields.items():
            if isinstance(value, str) and value:
                values[call.name, key].append((call, value))
    everywhere = all(_is_quoted(text) for item in values.values() for _, text in item)
    several = sum(map(len, values.values())) > 1
    for (_, key), result in values.items():
        if not all(_is_quoted(text) for _, text in result):
            continue
        searches = any(word in key.lower() for word in _SEARCH_WORDS)
        if searches and not (everywhere and several):
            continue
        for call, text in result:
            yield call, f".arguments.{key}", text


def _is_quoted(text: str) -> bool:
    if len(text) < 2 or text[0] not in "\"'" or text[-1] != text[0]:
        return False
    child = text[1:-1]
    return text[0] not in child.replace("\\\\", "").replace("\\" + text[0], "")


def _unknown_tool(calls: Sequence[CheckedCall], tools: ArgumentSchemas | None) -> Faults:
    if tools is None or not tools.by_name:
        return
    for call in _of_tools(calls):
        if call.name and call.name not in tools.by_name:
            near = ", ".join(tools.by_name)
            yield call, ".name", f"{call.name} is not one of {near}"


def _missing_argument(calls: Sequence[CheckedCall], tools: ArgumentSchemas | None) -> Faults:
    for call, tool in _known(calls, tools):
        for name in tool_schema.missing(tool, call.fields):
            yield call, f".arguments.{name}", f"{call.name} {call.arguments}"


def _unknown_argument(calls: Sequence[CheckedCall], tools: ArgumentSchemas | None) -> Faults:
    for call, tool in _known(calls, tools):
        for name in tool_schema.unknown(tool, call.fields):
            yield call, f".arguments.{name}", f"{call.name} {call.arguments}"


def _misfit(calls: Sequence[CheckedCall], tools: ArgumentSchemas | None) -> Faults:
    for call, tool in _known(calls, tools):
        for name, wanted in tool_schema.misfits(tool, call.fields):
            value = msgspec.json.encode(call.fields[name]).decode()
            yield call, f".arguments.{name}", f"{value[:60]} is not {wanted}"


def _known(
    calls: Sequence[CheckedCall], tools: ArgumentSchemas | None
) -> Iterator[tuple[CheckedCall, tool_schema.ArgumentSchema]]:
    """Calls whose arguments are an object, each with its tool."""
    if tools is None:
        return
    for call in _of_tools(calls):
        tool = tools.by_name.get(call.name or "")
        if tool is not None and isinstance(call.value, dict):
            yield call, tool


CHECKS = (
    Check(
        "invalid-arguments",
        "error",
        "The arguments of a call are no JSON, although the source writes JSON there.",
        "Mend them, or leave the step out of training.",
        SqlCheck(
            f"""
            SELECT c.seq, c.trajectory_id, c.step, c.call AS place,
                {call_path("c", ".arguments_raw")} AS path,
                coalesce(c.name, '?') || ' ' || left(c.arguments_raw, 300) AS excerpt
            FROM tool_calls c
            WHERE {INVALID_ARGUMENTS}"""
        ),
    ),
    Check(
        "double-encoded-arguments",
        "warning",
        "The arguments are a JSON string that holds JSON once more.",
        "Decode them once.",
        CallRule(_double_encoded),
    ),
    Check(
        "arguments-not-object",
        "warning",
        "The arguments of a tool are JSON, but no object: a list, a number, a string.",
        "Name the arguments.",
        CallRule(_not_an_object),
    ),
    Check(
        "quoted-string",
        "warning",
        'Every value of an argument in a trajectory has quotes inside of its string: "\\"red\\"". '
        "An argument that is always a quoted phrase looks the same.",
        "Take the inner quotes away.",
        CallRule(_quoted_strings),
    ),
    Check(
        "unknown-tool",
        "warning",
        "A call names a tool that is not among the tools of its trajectory.",
        "Correct the name, or add the tool to the list. A model that made the name up should not "
        "be trained on it.",
        CallRule(_unknown_tool),
    ),
    Check(
        "missing-argument",
        "warning",
        "A call lacks an argument that its tool requires.",
        "Leave the step out of training, or correct the tool's schema.",
        CallRule(_missing_argument),
    ),
    Check(
        "unknown-argument",
        "warning",
        "A call has an argument that its tool does not list.",
        "Leave the step out of training, or correct the tool's schema.",
        CallRule(_unknown_argument),
    ),
    Check(
        "unfit-argument",
        "warning",
        "An argument has another type than its tool says, or is none of the listed values.",
        "Leave the step out of training, or correct the tool's schema.",
        CallRule(_misfit),
    ),
)
