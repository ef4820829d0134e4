"""Messages as spans repeat them: of chats, of parts, of Gemini, of Responses and of LangChain.

`groups` cuts a list of messages into those that make a step together; `MessageReader` reads one
group into the steps and observations that it stands for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from msgspec import Raw

from adp.converters.exchanges.langchain_messages import role_of
from adp.converters.kit.chat import RESULTS, SOURCES, add_call
from adp.converters.kit.chat_messages import ChatMessages
from adp.converters.kit.drafts import ObservationDraft, StepDraft, TrajectoryDraft
from adp.converters.kit.responses_items import CALLS, ResponseItems
from adp.converters.kit.responses_items import RESULTS as ANSWERS
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE
from adp.converters.spans.blocks import SpanBlocks, items_of, opened, plain, unwrapped, word_of
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses

Item = StepDraft | ObservationDraft
Group = tuple[Raw, ...]

_CONTENTS = ("parts", "contents", "content", "text")
"""Keys of contents; the first that has some counts."""
_RENAMED = {"toolCalls": "tool_calls", "toolCallId": "tool_call_id", "tool_name": "name"}
_RENAMED_CALL = {"toolCallId": "id", "toolName": "name"}
_TIMES = ("timestamp", "created_at")
"""A step has the time of its span; that of its message stays in ``extra``."""


def groups(messages: Iterable[Raw]) -> list[Group]:
    """Cut messages into groups: items of Responses that one turn of a model wrote stay together."""
    out: list[list[Raw]] = []
    joins = False
    for raw in messages:
        values = jsontext.decode_object(raw) if jsontext.first_byte(raw) == BRACE else {}
        kind = word_of(values.get("type"))
        item = is_item(values) and kind not in ANSWERS and (
            kind != "message" or SOURCES.get(word_of(values.get("role"))) == "agent")  # fmt: skip
        if item and joins:
            out[-1].append(raw)
        else:
            out.append([raw])
        joins = item
    return [tuple(group) for group in out]


def is_item(values: dict[str, Raw]) -> bool:
    """Whether an object is an item of the Responses API, and no message of a chat."""
    kind = word_of(values.get("type"))
    if kind == "message":
        return "role" in values and "parts" not in values
    return kind in CALLS or kind in ANSWERS or (kind == "reasoning" and "role" not in values)


def _calls_apart(raw: Raw) -> Raw:
    """A message whose content is the JSON of calls (Koog), as a message with calls."""
    if b"arguments" not in bytes(raw) or jsontext.first_byte(raw) != BRACE:
        return raw
    values = jsontext.decode_object(raw)
    content = values.get("content")
    inner = unwrapped(content)
    if "tool_calls" in values or content is None or jsontext.first_byte(content) != QUOTE:
        return raw
    items = items_of(inner) if inner is not None and jsontext.first_byte(inner) == BRACKET else []
    shapes = [set(jsontext.decode_object(it)) if jsontext.first_byte(it) == BRACE else set()
              for it in items]  # fmt: skip
    if not items or not all({"function", "id"} <= shape for shape in shapes):
        return raw
    del values["content"]
    return plain({**values, "role": "assistant", "tool_calls": items})


@dataclass
class MessageReader:
    """Reads groups of messages.

    Attributes:
        builder: takes media.
        losses: counts what is not known.
        tools: definitions of tools that stood among the messages.
        called: names of the tools that were called so far.
    """

    builder: RowBuilder
    losses: Losses
    tools: list[Raw]
    called: set[str]

    def read(self, group: Group, path: str, role: str = "") -> list[Item]:
        """Read a group.

        Args:
            group: messages, as `groups` cuts them.
            path: where they stand, for reports.
            role: the role of a message that says none.

        Returns:
            Its observations, and then its step.
        """
        scratch = TrajectoryDraft()
        blocks = SpanBlocks(self.builder, self.losses, scratch)
        items, chat = ResponseItems(blocks), ChatMessages(blocks)
        extra: dict[str, Any] = {}
        for raw in map(_calls_apart, group):
            if jsontext.first_byte(raw) != BRACE:
                raw = plain({"content": raw})
            source = opened(SourceObject(raw, path, self.losses))
            extra |= {key: source.take(key) for key in _TIMES if key in source}
            if is_item(source.values):
                items.item(source)
            elif self._holds_definitions(source):
                extra |= source.rest()
            else:
                invalid = source.objects("invalid_tool_calls")
                step = chat.message(source, self._prepared(source, role))
                if step is not None:
                    for call in invalid:
                        add_call(call, step, step.calls).columns.setdefault("status", "invalid")
        return self._items(scratch, extra)

    def _items(self, scratch: TrajectoryDraft, extra: dict[str, Any]) -> list[Item]:
        out: list[Item] = list(scratch.early)
        for step in scratch.steps:
            self.called.update(str(call.columns.get("name")) for call in step.calls)
            if (name := step.columns.pop("native_id", None)) is not None:
                step.extra["id"] = name  # the id of the step is that of its span
            if step.columns["source"] == "agent":
                step.columns["kind"] = "message"
            spoken = bool(step.parts.columns() or step.calls)
            results, step.observations = step.observations, []
            if not spoken and (results or scratch.early):
                out += results
                out[-1].extra.update(step.extra)
            else:
                out += [step, *results]
        if out:
            out[-1].extra.update(extra)
        return out

    def result(self, raw: Raw, observation: ObservationDraft, path: str) -> None:
        """Read the result that a span of a tool holds."""
        blocks = SpanBlocks(self.builder, self.losses, TrajectoryDraft())
        blocks.result(raw, observation, path)

    def _prepared(self, source: SourceObject, role: str) -> str:
        """Give a message the keys of a chat's message, and return its role."""
        kind = source.word("type")
        spoken = source.word("role") or role_of(kind) or role
        if role_of(kind) or kind == "message":
            source.drop("type")
        if SOURCES.get(source.word("role")) and spoken != "developer":
            source.drop("role")
        _rename(source, _RENAMED)
        if spoken in RESULTS or spoken in self.called or (
            spoken not in SOURCES and "tool_call_id" in source):  # fmt: skip
            return self._prepared_result(source, spoken)
        _set_content(source)
        calls = source.objects("tool_calls")
        if not calls and source.first("additional_kwargs") == BRACE:
            calls = source.child("additional_kwargs").objects("tool_calls")
        for call in calls:
            inner = call.child("tool_call")
            call.values |= inner.values
            inner.values = {}
            _rename(call, _RENAMED_CALL)
        if calls:
            source.values["tool_calls"] = plain([call.rest() for call in calls])
        return spoken

    def _prepared_result(self, source: SourceObject, role: str) -> str:
        if source.word("role") and (role in RESULTS or "name" not in source):
            source.drop("role")
        if role not in RESULTS:
            source.values.setdefault("name", plain(role))
        blocks = source.values.get("parts", source.values.get("content", Raw(b"")))
        if jsontext.first_byte(blocks) == BRACKET and b'"tool' in bytes(blocks):
            _set_content(source)
            return "user"  # a list of results
        if "tool_call_id" not in source and "id" in source:
            source.values["tool_call_id"] = source.values.pop("id")
        return "tool"

    def _holds_definitions(self, source: SourceObject) -> bool:
        """Take definitions of tools, which callbacks of LangChain write in the role of a tool."""
        content = unwrapped(source.values.get("content"))
        if (
            content is None or source.word("role") not in RESULTS or "tool_call_id" in source
            or not all(word in bytes(content) for word in (b'"function"', b'"parameters"'))
        ):  # fmt: skip
            return False
        self.tools.extend(items_of(content))
        source.drop("content")
        return True


def _rename(source: SourceObject, names: dict[str, str]) -> None:
    for old, new in names.items():
        if old in source and new not in source:
            source.values[new] = source.values.pop(old)


def _set_content(source: SourceObject) -> None:
    """Put the first content that there is under ``content``; JSON of another form is its text."""
    for key in _CONTENTS:
        raw = source.values.get(key)
        if raw is not None and len(raw) > 2 and jsontext.first_byte(raw) in (QUOTE, BRACKET, BRACE):
            del source.values[key]
            if other := source.values.pop("content", None):
                source.values["other content"] = other
            if jsontext.first_byte(raw) == BRACE:
                raw = plain(jsontext.one_line(raw))
            source.values["content"] = raw
            return
    if source.first("content") in (QUOTE, BRACKET, NULL):
        source.drop("content")


def key_of(item: Item) -> tuple[Any, ...]:
    """What two messages must share to be the same message."""
    spoken = item.parts.columns()
    media = tuple(part["media_id"] for part in item.parts._parts if part["type"] == "media")
    if isinstance(item, ObservationDraft):
        return "result", item.answers, spoken.get("text", "").strip(), media
    calls = tuple(
        (call.columns.get("name"), call.columns.get("call_id"), _canonical(call.columns))
        for call in item.calls
    )
    return item.columns["source"], spoken.get("text", "").strip(), media, calls


def _canonical(columns: dict[str, Any]) -> str:
    text = columns.get("arguments")
    if text is None:
        return str(columns.get("arguments_raw"))
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except (ValueError, RecursionError):
        return str(text)
