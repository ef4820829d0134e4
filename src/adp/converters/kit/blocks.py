"""Content blocks of messages, by their ``type``, into the parts, calls and observations of a draft.

One table serves Anthropic, OpenAI chat, OpenAI Responses, Gemini, and the agents that write
blocks like theirs. A block of a type that is not in it is kept whole, and counted as unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import UNSET, Raw

from adp.converters.kit.block_kinds import kind_by_keys
from adp.converters.kit.drafts import ObservationDraft, StepDraft, TrajectoryDraft
from adp.converters.kit.media_blocks import read_gemini_blob, read_gemini_file, read_image
from adp.converters.kit.server_results import read_server_result
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.summaries import read_summaries
from adp.converters.kit.usual_blocks import (
    TYPES,
    UsualBlock,
    UsualText,
    UsualThinking,
    usual_blocks,
    usual_result,
)
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE, argument_columns, begins
from adp_schema import jsontext, media
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Columns
from adp_schema.parts import Parts


@dataclass
class BlockReader:
    """Reads content into drafts.

    Attributes:
        builder: takes media.
        losses: takes keys that occur twice, and counts what is not known.
        run: the trajectory that observations are added to.
        renamed: further types of blocks, or other meanings -> a type of the table.
        requestor: who makes the calls, where it is not the agent.
        usual: keys that nearly all blocks have, with the value that is left out.
    """

    builder: RowBuilder
    losses: Losses
    run: TrajectoryDraft
    renamed: dict[str, str] = field(default_factory=dict)
    requestor: str | None = None
    usual: Mapping[str, Raw] = field(default_factory=dict)

    def content(self, raw: Raw | None, step: StepDraft, path: str) -> None:
        """Read the content of a message into a step: a string, a list of blocks, or a block."""
        if begins(raw, QUOTE):
            step.parts.text(self.builder.text(jsontext.decode_value(raw)))
            return
        usual = self._usual(raw)
        if usual is not None:
            for known in usual:
                self._add_usual(known, step)
            return
        for item, place in self._items(raw, path):
            if jsontext.first_byte(item) == QUOTE:
                step.parts.text(self.builder.text(jsontext.decode_value(item)))
            elif jsontext.first_byte(item) == BRACE:
                self.block(SourceObject(item, place, self.losses), step)
            else:
                step.parts.opaque(jsontext.raw_line(item))

    def user_content(
        self, raw: Raw | None, path: str, add_step: Callable[[], StepDraft]
    ) -> StepDraft | ObservationDraft:
        """Read the content of a user's message, in which results of tools come back.

        Args:
            raw: a string, a list of blocks, or a block.
            path: where it is in the record.
            add_step: makes the step; not called for a message that holds only results.

        Returns:
            The step, or the last result: takes what else the message says.
        """
        others: list[tuple[Raw, str]] = []
        last: ObservationDraft | None = None
        for item, place in self._items(raw, path):
            answer = self.usual_answer(item, place)
            if answer is not None:
                last = answer
                continue
            block = SourceObject(item, place, self.losses)
            kind = self._kind(block)
            if kind in _RESULTS or (kind.endswith("_tool_result") and "tool_use_id" in block):
                last = _result(self, block)
            else:
                others.append((item, place))
        if last is not None and not others:
            return last
        step = add_step()
        for item, place in others:
            self.content(item, step, place)
        return step

    def result(self, raw: Raw | None, observation: ObservationDraft, path: str) -> None:
        """Read the content of a result into an observation."""
        if begins(raw, QUOTE):
            observation.parts.text(self.builder.text(jsontext.decode_value(raw)))
            return
        usual = self._usual(raw) or ()
        texts = [block.text for block in usual if isinstance(block, UsualText)]
        if texts and len(texts) == len(usual):
            for text in texts:
                observation.parts.text(self.builder.text(text))
            return
        for item, place in self._items(raw, path):
            if jsontext.first_byte(item) == QUOTE:
                observation.parts.text(self.builder.text(jsontext.decode_value(item)))
            elif jsontext.first_byte(item) == BRACE:
                block = SourceObject(item, place, self.losses)
                if _PARTS.get(self._kind(block)) is _reasoning or block.first("thought") == TRUE:
                    observation.parts.opaque(block.rest_lines())  # no column of results takes it
                else:
                    self.part(block, observation.parts)
            else:
                observation.parts.opaque(jsontext.raw_line(item))

    def take_text(self, source: SourceObject, parts: Parts, *keys: str) -> str | None:
        """Take the string under the first of some keys as a text."""
        text = source.text(*keys)
        if text is not None:
            parts.text(self.builder.text(text))
        return text

    def take_reasoning(self, source: SourceObject, parts: Parts, *keys: str) -> str | None:
        """Take the string under the first of some keys as reasoning."""
        text = source.text(*keys)
        if text is not None:
            parts.reasoning(self.builder.text(text))
        return text

    def _items(self, raw: Raw | None, path: str) -> list[tuple[Raw, str]]:
        first = NULL if raw is None else jsontext.first_byte(raw)
        if raw is None or first == NULL:
            return []
        if first == BRACKET:
            return [(it, f"{path}[{n}]") for n, it in enumerate(jsontext.decode_array(raw))]
        return [(raw, path)]

    def _usual(self, raw: Raw | None) -> list[UsualBlock] | None:
        """The blocks of a list in the usual forms; None when they are read key by key."""
        if not raw or memoryview(raw)[0] != BRACKET or type(self) is not BlockReader:
            return None  # who derives a reader of their own may read any block differently
        return usual_blocks(raw, self.usual) if TYPES.isdisjoint(self.renamed) else None

    def _add_usual(self, block: UsualBlock, step: StepDraft) -> None:
        if isinstance(block, UsualText):
            step.parts.text(self.builder.text(block.text))
        elif isinstance(block, UsualThinking):
            step.parts.reasoning(self.builder.text(block.thinking), block.extra())
        else:
            columns = call_columns(block.name, block.id, block.arguments)
            if self.requestor is not None:
                columns["requestor"] = self.requestor
            step.call(columns)

    def block(self, block: SourceObject, step: StepDraft) -> None:
        """Read one block: a call or a result, or else a part of the content."""
        kind = self._kind(block)
        if kind in _CALLS:
            _CALLS[kind](self, block, step)
        elif kind == "gemini_result":
            _gemini_result(self, block)
        elif kind in _RESULTS or (kind.endswith("_tool_result") and "tool_use_id" in block):
            _result(self, block)
        else:
            self.part(block, step.parts)

    def answer(self, block: SourceObject) -> ObservationDraft:
        """Read a block that is the result of a call, for readers that know more of it."""
        return _result(self, block)

    def usual_answer(self, raw: Raw, path: str) -> ObservationDraft | None:
        """Read a block that is a result of the usual form; None, and nothing is read, for others.

        Args:
            raw: the block.
            path: where it is.
        """
        if memoryview(raw)[0] != BRACE or type(self) is not BlockReader or self.renamed:
            return None
        result = usual_result(raw)
        if result is None:
            return None
        columns = {} if result.is_error is UNSET else {"is_error": result.is_error}
        draft = self.run.observe(columns, answers=result.tool_use_id, by_order=True)
        self.result(result.content, draft, path)
        return draft

    def part(self, block: SourceObject, parts: Parts) -> None:
        """Read a block that is text, reasoning or media; any other is kept whole."""
        for key, value in self.usual.items():
            if block.values.get(key) == value:
                block.drop(key)
        kind = self._kind(block)
        read = _PARTS.get(kind)
        if read is not None and read(self, block, parts):
            return
        if read is None and kind not in _KEPT:
            self.losses.unknown(f"content block {kind or 'without a type'}")
        parts.opaque(block.rest_lines())

    def _kind(self, block: SourceObject) -> str:
        kind = block.word("type") or kind_by_keys(block)
        return self.renamed.get(kind, kind)

    def blob(self, data: str, mime: str | None, parts: Parts, extra: dict[str, Any]) -> bool:
        """Add base64 as media; False when it is not base64 that can be written again."""
        decoded = media.blob_of_base64(data)
        if decoded is None:
            return False
        return self._add_media(media.media_of_bytes(decoded, mime), parts, extra)

    def reference(self, text: str, parts: Parts, extra: dict[str, Any], mime: str | None) -> bool:
        """Add a data URI, an address or a path as media."""
        if jsontext.has_mark(text):
            return False
        blob = media.media_of_reference(text)
        if blob.mime is None and mime is not None:
            blob = blob.model_copy(update={"mime": mime})
        return self._add_media(blob, parts, extra)

    def _add_media(self, blob: Any, parts: Parts, extra: dict[str, Any]) -> bool:
        media_id = self.builder.media(blob)
        if self.builder.stored_mime(media_id) != blob.mime and blob.mime is not None:
            extra = {**extra, "$mime": blob.mime}
        parts.media(media_id, extra)
        return True


def _text(reader: BlockReader, block: SourceObject, parts: Parts) -> bool:
    thought = block.flag("thought")
    text = block.text("text", "content", "output", "value")
    if text is None:
        return False
    _drop_type(block)
    add = parts.reasoning if thought else parts.text
    add(reader.builder.text(text), block.rest_lines())
    return True


def _reasoning(reader: BlockReader, block: SourceObject, parts: Parts) -> bool:
    text = block.text("thinking", "text", "reasoning", "content", "think", "value")
    if text is None:
        return read_summaries(reader.builder, block, parts)
    _drop_type(block)
    parts.reasoning(reader.builder.text(text), block.rest_lines())
    return True


def _drop_type(block: SourceObject) -> None:
    """Drop the type, which the part shows, unless it is no word."""
    if block.first("type") == QUOTE:
        del block.values["type"]


def call_columns(
    name: str | None, call_id: str | None, raw: Raw | None, kind: str = "function"
) -> Columns:
    """The columns of a call.

    Args:
        name: the tool.
        call_id: its id, as the source wrote it.
        raw: its arguments: an object, a string of JSON, or any other text.
        kind: function, code, message, gui or mcp.
    """
    columns: Columns = {"kind": kind, "name": name, "call_id": call_id}
    if raw is not None:
        columns |= argument_columns(raw)
    return columns


def _call(reader: BlockReader, block: SourceObject, step: StepDraft) -> None:
    """Calls with name, id and arguments beside each other."""
    kind = block.word("type")
    arguments = _first(block, "input", "arguments", "args", "rawInput")
    name = block.text("name", "toolName", "tool_name", "tool")
    first = "call_id" if kind == "function_call" else "id"
    call_id = block.name(first, "call_id", "toolCallId", "tool_call_id", "callID")
    columns = call_columns(name, call_id, arguments, "mcp" if "mcp" in kind else "function")
    if reader.requestor is not None:
        columns["requestor"] = reader.requestor
    if kind in ("tool_use", "toolCall", "tool_call", "tool-call"):
        block.drop("type")
    step.call(columns, block.rest())


def _gemini_call(reader: BlockReader, block: SourceObject, step: StepDraft) -> None:
    inner = block.child("functionCall") or block.child("function_call")
    arguments, name = inner.take("args"), inner.text("name")
    step.call(call_columns(name, inner.name("id"), arguments), block.rest())


def _result(reader: BlockReader, block: SourceObject) -> ObservationDraft:
    """Results that say which call they answer."""
    kind = block.word("type")
    answers = block.name("tool_use_id", "toolCallId", "tool_call_id", "call_id", "id")
    columns: Columns = {}
    error = block.flag("is_error", "isError")
    if error is not None:
        columns["is_error"] = error
    name = block.text("toolName", "tool_name", "name")
    if name is not None:
        columns["name"] = name
    draft = reader.run.observe(columns, answers=answers, by_order=True)
    content = _first(block, "content", "output", "result")
    if kind in _RESULTS or not read_server_result(reader, content, draft, block.path):
        reader.result(content, draft, block.path)
    if kind in ("tool_result", "toolResult"):
        block.drop("type")
    draft.extra.update(block.rest())
    return draft


def _gemini_result(reader: BlockReader, block: SourceObject) -> None:
    inner = block.child("functionResponse") or block.child("function_response")
    name, answers = inner.text("name"), inner.name("id")
    draft = reader.run.observe({"name": name}, answers=answers, by_order=True)
    function_response(reader, inner, draft)
    draft.extra = block.rest()


def function_response(reader: BlockReader, inner: SourceObject, draft: ObservationDraft) -> None:
    """Read what a function of Gemini answered into an observation.

    Args:
        reader: of the session.
        inner: the value of ``functionResponse``.
        draft: takes text, media and errors.
    """
    response = inner.child("response")
    if not response:
        draft.columns["structured"] = inner.json("response")
    elif response.first("error") == QUOTE:
        draft.columns["is_error"] = True
    text = response.text("output", "error", "result", "content")
    if text is not None:
        draft.parts.text(reader.builder.text(text))
    for part in inner.objects("parts"):
        reader.part(part, draft.parts)


def _first(block: SourceObject, *keys: str) -> Raw | None:
    for key in keys:
        if block.first(key) not in (0, NULL):
            return block.take(key)
    return None


TRUE = 0x74
"""First byte of true."""

_PARTS: dict[str, Callable[[BlockReader, SourceObject, Parts], bool]] = {
    **dict.fromkeys(("text", "input_text", "output_text", "Text", "markdown"), _text),
    **dict.fromkeys(
        ("thinking", "reasoning", "reasoning_text", "summary_text", "think"), _reasoning
    ),
    **dict.fromkeys(
        ("image", "document", "audio", "video", "image_url", "input_image", "input_audio",
         "input_file", "file", "media"),
        read_image,
    ),
    "gemini_blob": read_gemini_blob,
    "gemini_file": read_gemini_file,
}  # fmt: skip
_CALLS: dict[str, Callable[[BlockReader, SourceObject, StepDraft], None]] = {
    **dict.fromkeys(
        (
            "tool_use",
            "server_tool_use",
            "mcp_tool_use",
            "toolCall",
            "tool_call",
            "tool-call",
            "function_call",
        ),
        _call,
    ),
    "gemini_call": _gemini_call,
}
_RESULTS = frozenset({"tool_result", "toolResult", "tool-result"})
_KEPT = frozenset(
    {"redacted_thinking", "refusal", "tool_reference", "container_upload", "fallback"}
)
"""Types that are known, and kept as they are."""
