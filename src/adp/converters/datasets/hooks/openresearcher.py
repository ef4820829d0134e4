"""OpenResearcher: Harmony messages as rows of Arrow: channels, recipients, and parts with nulls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Raw

from adp.converters.datasets.families.messages import item_object
from adp.converters.datasets.turns import DatasetRow, DatasetTurn, Source, TurnCall
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, NULL
from adp_schema import jsontext


def turns(row: DatasetRow) -> Iterator[DatasetTurn]:
    """The messages; thoughts on the channel ``analysis`` belong to what follows them."""
    thoughts: list[str] = []
    tools: list[Any] = []
    for number, raw in enumerate(row.items("messages")):
        source = item_object(raw, f"$.messages[{number}]", row)
        is_thought = source.word("channel") == "analysis" and not source.word("recipient")
        text, rest = _content(source, tools)
        if is_thought and source.word("role") == "assistant":
            thoughts.append(text or "")
            source.drop("channel")
            source.drop("role")
            if rest := {**_filled(source.rest()), **rest}:
                yield DatasetTurn("agent", None, reasoning="\n\n".join(thoughts), extra=rest)
                thoughts = []
            continue
        turn = _turn(source, text, rest)
        if turn.source == "agent" and thoughts:
            turn.reasoning, thoughts = "\n\n".join(thoughts), []
        yield turn
    if thoughts:
        yield DatasetTurn("agent", None, reasoning="\n\n".join(thoughts))
    if tools:
        row.run.columns["tools"] = jsontext.text_of(tools)
        row.run.columns["tools_origin"] = "recorded"


def _turn(source: SourceObject, text: str | None, rest: dict[str, Any]) -> DatasetTurn:
    role, name = source.text("role") or "", source.text("name")
    if role == "assistant" and (recipient := source.text("recipient")):
        call = TurnCall(recipient, jsontext.raw(jsontext.text_of(text or "")))
        return DatasetTurn("agent", None, [call], extra={**_filled(source.rest()), **rest})
    extra = {**_filled(source.rest()), **rest}
    if role == "tool":
        return DatasetTurn("result", text, name=name, extra=extra)
    speaker: Source = "agent" if role == "assistant" else "user" if role == "user" else "system"
    return DatasetTurn(speaker, text, name=name, extra=extra)


def _content(source: SourceObject, tools: list[Any]) -> tuple[str | None, dict[str, Any]]:
    """The words of the parts of a message, what else they say, and the tools that they offer."""
    texts, left = [], []
    for part in source.objects("content"):
        text, kind = part.text("text"), part.word("type")
        if text is not None:
            texts.append(text)
        if kind == "text":
            part.drop("type")
        for space, raw in part.peek("tools").values.items():
            tools += _tools(space, raw)
        if rest := _filled(part.rest()):
            left.append(rest)
    return "\n\n".join(texts) if texts else None, {"parts": left} if left else {}


def _tools(space: str, raw: Raw) -> Iterator[dict[str, Any]]:
    """The tools of a namespace, in the form of OpenAI's API."""
    listed = jsontext.decode_value(raw) if jsontext.first_byte(raw) == BRACE else {}
    for tool in listed.get("tools") or ():
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            given = _without_nulls(tool)
            parameters = given.pop("parameters", {"type": "object", "properties": {}})
            function = {**given, "name": f"{space}.{tool['name']}", "parameters": parameters}
            yield {"type": "function", "function": function}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(it) for key, it in value.items() if it is not None}
    return [_without_nulls(it) for it in value] if isinstance(value, list) else value


def _filled(values: dict[str, Any]) -> dict[str, Any]:
    """What is not null: Arrow gives each part the keys of all kinds."""
    return {
        key: it
        for key, it in values.items()
        if not isinstance(it, Raw) or jsontext.first_byte(it) != NULL
    }
