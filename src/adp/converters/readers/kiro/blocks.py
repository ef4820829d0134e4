"""Calls, results and content of Kiro: values whose only key, or whose ``kind``, is their type."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Raw

from adp.converters.kit.blocks import BlockReader, call_columns
from adp.converters.kit.drafts import ObservationDraft, StepDraft, merge_extra
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.parts import Parts

EDITOR_LINES = frozenset({"user", "assistant", "tool_call", "tool_result"})
"""Types of lines of the editor that are messages, calls and results."""

_STATUS = {"Success": False, "success": False, "Error": True, "error": True}
_EXIT = re.compile(r"(?:exit status: )?(-?\d{1,9})")


def pairs(item: Raw, path: str, losses: Losses, keys: tuple[str, ...]) -> SourceObject:
    """An object, or a list whose items stand for the values of some keys.

    Args:
        item: its JSON text.
        path: where it is.
        losses: takes keys that occur twice.
        keys: the keys; further items of a list are under their number.
    """
    if jsontext.first_byte(item) != BRACKET:
        source = SourceObject(item, path, losses)
        if not source and jsontext.first_byte(item) != BRACE:
            source.values["value"] = item
        return source
    source = SourceObject(None, path, losses)
    for number, value in enumerate(jsontext.decode_array(item)):
        source.values[keys[number] if number < len(keys) else str(number)] = value
    return source


def tool_specifications(source: SourceObject) -> str | None:
    """Take the tools on offer, by where they come from; None when there are none of that form."""
    origins = SourceObject(source.values.get("tools"), f"{source.path}.tools", source.losses)
    tools: list[dict[str, Any]] = []
    for origin in list(origins.values):
        for item in origins.objects(origin):
            about = item.child("ToolSpecification")
            function = {"name": about.text("name"), "description": about.text("description"),
                        "parameters": about.child("input_schema").take("json")}  # fmt: skip
            if None in function.values() or item.rest():
                return None
            tools.append({"type": "function", "function": function, "origin": origin})
        if origin in origins and origins.first(origin) != BRACKET:
            return None
    if not tools:
        return None
    source.drop("tools")
    return jsontext.one_line(jsontext.raw(jsontext.text_of(tools)))


class KiroBlocks:
    """Reads them into drafts.

    Args:
        blocks: of the session.
    """

    def __init__(self, blocks: BlockReader) -> None:
        self.blocks = blocks

    def call(self, call: SourceObject, step: StepDraft) -> None:
        """A call; how the tool was called before its name was changed is kept where it differs."""
        arguments = next((call.take(key) for key in ("args", "input") if key in call), None)
        name = call.text("name")
        call.drop_text("orig_name", name)
        original = call.values.get("orig_args")
        if original is not None and arguments is not None and bytes(original) == bytes(arguments):
            call.drop("orig_args")
        step.call(call_columns(name, call.name("id", "toolUseId"), arguments), call.rest())

    def result(self, result: SourceObject) -> ObservationDraft:
        """The result of a call."""
        answers = result.name("tool_use_id", "toolUseId")
        draft = self.blocks.run.observe({}, answers=answers, by_order=True)
        status = result.word("status")
        if status in _STATUS:
            result.drop("status")
            draft.columns["is_error"] = _STATUS[status]
        if result.first("content") != BRACKET:
            self.blocks.result(result.take("content"), draft, f"{result.path}.content")
        for block in result.objects("content"):
            self._piece(block, draft)
        self.blocks.result(result.take("content"), draft, f"{result.path}.content")
        draft.extra.update(result.rest())
        return draft

    def _piece(self, block: SourceObject, draft: ObservationDraft) -> None:
        """A text; or a value, which the model sees as JSON."""
        text = block.text("Text")
        value = block.take("Json")
        if text is None and value is None and block.word("kind") == "text":
            text = block.text("data")
        if text is None and value is None and block.word("kind") == "json":
            value = block.take("data")
        if text is None and value is None:
            draft.parts.opaque(block.rest())
            return
        block.drop("kind")
        if value is not None:
            draft.columns.update(_exit_code(value, self.blocks.losses))
            text = jsontext.one_line(value)
        draft.parts.text(self.blocks.builder.text(text or ""), block.rest())

    def thinking(self, body: SourceObject, step: StepDraft) -> None:
        """The reasoning beside an answer."""
        thought = body.child("thinking")
        for place in (thought, thought.child("ReasoningText"), thought.child("reasoningText")):
            text = place.text("text", "thinking")
            if text is not None:
                rest = body.take_child("thinking").rest()
                step.parts.reasoning(self.blocks.builder.text(text), rest)
                return

    def block(self, block: SourceObject, step: StepDraft) -> None:
        """A block with a kind: text, reasoning or a call."""
        kind, data = block.word("kind"), block.child("data")
        text = block.text("data") if kind == "text" else None
        if kind == "thinking" and data:
            text = data.text("text")
        if text is not None:
            block.drop("kind")
            add = step.parts.text if kind == "text" else step.parts.reasoning
            if text or block.rest():
                add(self.blocks.builder.text(text), block.rest())
        elif kind == "toolUse" and data:
            block.drop("kind")
            self.call(data, step)
            step.calls[-1].extra.update(block.rest())
        else:
            if kind not in ("image", "thinking", "document"):
                self.blocks.losses.unknown(f"content block {kind or 'without a kind'}")
            _opaque(block, step.parts)

    def editor_line(self, source: SourceObject) -> bool:
        """A line of the editor: a message, a call or its result. False for any other line."""
        run, body = self.blocks.run, source.child("payload")
        kind, path = body.word("type"), f"{body.path}.content"
        if kind not in EDITOR_LINES:
            return False
        body.drop("type")
        draft: StepDraft | ObservationDraft
        if kind == "tool_result":
            draft = run.observe({}, answers=body.name("toolCallId"), by_order=True)
            draft.columns["is_error"] = body.flag("isError")
            self.blocks.result(body.take("content"), draft, path)
        elif kind == "tool_call":
            draft = run.step("agent", "llm_turn")
            name, call_id = body.text("toolName"), body.name("toolCallId")
            draft.call(call_columns(name, call_id, body.take("args")))
        else:
            agent = kind == "assistant"
            draft = run.step("agent" if agent else "user", "llm_turn" if agent else "message")
            self.blocks.content(body.take("content"), draft, path)
            draft.columns["model"] = body.text("reasoningModelId") if agent else None
        take_time(source, draft.columns, "timestamp")
        merge_extra(draft.extra, source.rest())
        return True


def _opaque(block: SourceObject, parts: Parts) -> None:
    parts.opaque({key: _plain(value) for key, value in block.rest().items()})


def _plain(value: Any) -> Any:
    return jsontext.raw(jsontext.one_line(value)) if isinstance(value, Raw) else value


def _exit_code(value: Raw, losses: Losses) -> dict[str, int]:
    """The exit status that the result of a command says."""
    source = SourceObject(value, "$", losses)
    match = _EXIT.fullmatch(source.word("exit_status"))
    return {"exit_code": int(match[1])} if match else {}
