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

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import ObservationDraft, StepDraft, TrajectoryDraft
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.span_blocks import (
    AGENT,
    SYSTEM,
    TOOL,
    USER,
    SpanBlocks,
    items_of,
    opened,
    plain,
    unwrapped,
    word_of,
)
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses

Item = StepDraft | ObservationDraft
Group = tuple[Raw, ...]

_ITEM_CALLS = frozenset({"function_call", "custom_tool_call", "mcp_call"})
_ITEM_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})


def groups(messages: Iterable[Raw]) -> list[Group]:
    """Cut messages into groups: items of Responses that one turn of a model wrote stay together."""
    out: list[list[Raw]] = []
    joins = False
    for raw in messages:
        item = _is_agent_item(raw)
        if item and joins:
            out[-1].append(raw)
        else:
            out.append([raw])
        joins = item
    return [tuple(group) for group in out]


def _is_agent_item(raw: Raw) -> bool:
    if jsontext.first_byte(raw) != BRACE:
        return False
    values = jsontext.decode_object(raw)
    kind = word_of(values.get("type"))
    if kind == "message":
        return word_of(values.get("role")) in AGENT
    return kind in _ITEM_CALLS or (kind == "reasoning" and "role" not in values)


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
        step = StepDraft({})
        group = tuple(map(_calls_apart, group))
        for number, raw in enumerate(group):
            if jsontext.first_byte(raw) != BRACE:
                raw = plain({"content": raw})
            source = opened(SourceObject(raw, path, self.losses))
            extra = self._message(source, step, blocks, role)
            mark = f"#{number + 1}" if number else ""
            step.extra.update({f"{key}{mark}": value for key, value in extra.items()})
        early: list[Item] = list(scratch.early)
        spoken = step.parts.columns() or step.calls
        if "source" not in step.columns or (early and not spoken):
            if early:
                early[-1].extra.update(step.extra)
            return early
        return [*early, step]

    def result(self, raw: Raw, observation: ObservationDraft, path: str) -> None:
        """Read the result that a span of a tool holds."""
        blocks = SpanBlocks(self.builder, self.losses, TrajectoryDraft())
        blocks.result(raw, observation, path)

    def _message(
        self, source: SourceObject, step: StepDraft, blocks: SpanBlocks, role: str
    ) -> dict[str, Any]:
        kind = source.word("type")
        if kind in _ITEM_CALLS:
            return self._item_call(source, step)
        if kind in _ITEM_RESULTS:
            return self._item_result(source, blocks)
        spoken = source.word("role") or (kind if kind in (*SYSTEM, *USER, *AGENT, *TOOL) else "")
        spoken = spoken or ("system" if kind == "SystemMessage" else "") or role
        if kind == "reasoning" and "role" not in source:
            return self._item_reasoning(source, step)
        if self._is_tool(spoken, source):
            return self._tool(source, blocks, step)
        if spoken in SYSTEM:
            step.columns |= {"source": "system", "kind": "message"}
        elif spoken in AGENT:
            step.columns |= {"source": "agent", "kind": "message"}
        else:
            step.columns |= {"source": "user", "kind": "message"}
            if spoken not in USER and spoken:
                self.losses.unknown(f"role {spoken}")
                step.columns["actor"] = spoken
        if kind in ("message", "SystemMessage", *SYSTEM, *USER, *AGENT):
            source.drop("type")
        if source.word("role") in (*USER, *AGENT, "system"):
            source.drop("role")
        self._contents(source, step, blocks)
        return source.rest()

    def _contents(self, source: SourceObject, step: StepDraft, blocks: SpanBlocks) -> None:
        for key in ("reasoning_content", "reasoning"):
            if source.word(key):
                step.parts.reasoning(source.text(key) or "")
        for key in ("parts", "contents", "content", "text"):
            raw = source.values.get(key)
            if raw is None or len(raw) <= 2 or jsontext.first_byte(raw) == NULL:
                continue
            if key == "text" and step.parts.columns():
                continue
            if jsontext.first_byte(raw) in (QUOTE, BRACKET):
                blocks.content(source.take(key), step, f"{source.path}.{key}")
        if source.first("content") == BRACE:
            inner = source.take("content")
            step.parts.text(self.builder.text(jsontext.one_line(inner or Raw(b"null"))))
        self._calls(source, step)
        self.called.update(str(call.columns.get("name")) for call in step.calls)

    def _calls(self, source: SourceObject, step: StepDraft) -> None:
        for key in ("tool_calls", "toolCalls"):
            for item in source.objects(key):
                self._call(item, step)
        if source.first("function_call") == BRACE:
            self._call(source.child("function_call"), step)
        if not step.calls and source.first("additional_kwargs") == BRACE:
            for item in source.child("additional_kwargs").objects("tool_calls"):
                self._call(item, step)

    def _call(self, item: SourceObject, step: StepDraft) -> None:
        outer, item = item, item.child("tool_call") or item
        function = item.child("function") or item
        key = next((key for key in ("arguments", "args", "input") if key in function), "")
        raw = function.take(key)
        call_id = item.name("id", "toolCallId", "call_id") or None
        columns = call_columns(function.text("name", "toolName"), call_id, raw)
        if item.word("type") in ("function", "tool_call"):
            item.drop("type")
        if call_id is not None and call_id in [it.columns.get("call_id") for it in step.calls]:
            step.extra.setdefault("repeated calls", []).append(
                {**columns, **outer.rest()}  # a provider's blocks beside the framework's calls
            )
            return
        step.call(columns, outer.rest())

    def _item_call(self, source: SourceObject, step: StepDraft) -> dict[str, Any]:
        step.columns |= {"source": "agent", "kind": "message"}
        columns = call_columns(
            source.text("name"), source.name("call_id"), source.take("arguments")
            or source.take("input"), "mcp" if source.word("type") == "mcp_call" else "function",
        )  # fmt: skip
        columns["status"] = source.text("status")
        self.called.add(str(columns["name"]))
        source.drop("type")
        step.call(columns, source.rest())
        return {}

    def _item_result(self, source: SourceObject, blocks: SpanBlocks) -> dict[str, Any]:
        draft = blocks.run.observe({}, answers=source.name("call_id"), by_order=True)
        source.drop("type")
        blocks.result(source.take("output"), draft, source.path)
        draft.extra |= source.rest()
        return {}

    def _item_reasoning(self, source: SourceObject, step: StepDraft) -> dict[str, Any]:
        step.columns |= {"source": "agent", "kind": "message"}
        for key in ("summary", "content"):
            for block in source.objects(key):
                text = block.text("text")
                step.parts.reasoning(text or "", block.rest())
        source.drop("type")
        return source.rest()

    def _is_tool(self, role: str, source: SourceObject) -> bool:
        known = (*SYSTEM, *USER, *AGENT)
        return role in TOOL or (role not in known and (role in self.called or bool(
            source.word("tool_call_id"))))  # fmt: skip

    def _tool(self, source: SourceObject, blocks: SpanBlocks, step: StepDraft) -> dict[str, Any]:
        """A result; LangChain's callbacks write definitions of tools in the role of a tool, too."""
        content = unwrapped(source.values.get("content"))
        if (
            content is not None
            and "tool_call_id" not in source
            and all(word in bytes(content) for word in (b'"function"', b'"parameters"'))
        ):
            self.tools.extend(items_of(content))
            source.drop("content")
            return source.rest()
        role = source.word("role")
        if source.first("parts") == BRACKET or (
            source.first("content") == BRACKET and b'"tool' in bytes(source.values["content"])
        ):
            blocks.content(source.take("parts") or source.take("content"), step, source.path)
        else:
            answers = source.name("tool_call_id", "toolCallId", "id") or None
            name = source.text("name", "tool_name") or (role if role in self.called else None)
            draft = blocks.run.observe({"name": name}, answers=answers, by_order=True)
            if source.word("status") == "error":
                draft.columns["is_error"] = True
            blocks.result(source.take("content"), draft, source.path)
        if role:
            source.drop("role")
        if source.word("type") in TOOL:
            source.drop("type")
        return source.rest()


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
