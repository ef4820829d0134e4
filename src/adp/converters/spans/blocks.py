"""Contents of messages as spans hold them: wrapped, renamed, and JSON in strings of JSON."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from adp.converters.kit.blocks import BlockReader
from adp.converters.kit.drafts import ObservationDraft, StepDraft
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE
from adp_schema import jsontext

SYSTEM = frozenset({"system", "developer"})
USER = frozenset({"user", "human", "HumanMessage", "HumanMessageChunk"})
AGENT = frozenset({"assistant", "model", "ai", "agent", "AIMessage", "AIMessageChunk"})
TOOL = frozenset({"tool", "function", "ToolMessage", "ipython"})
_ENCODINGS = 3
"""How often JSON may stand in a string of JSON."""


def unwrapped(raw: Raw | None) -> Raw | None:
    """The object or list that a string holds as JSON, or else the value as it is."""
    value = raw
    for _ in range(_ENCODINGS):
        if value is None or jsontext.first_byte(value) != QUOTE:
            break
        text = jsontext.decode_value(value).strip()
        if text[:1] not in ("{", "[", '"') or not jsontext.is_valid(text):
            break
        value = jsontext.raw(text)
    if value is not None and jsontext.first_byte(value) in (BRACE, BRACKET):
        return value
    return raw


def items_of(raw: Raw | None) -> list[Raw]:
    """The items of a list; of any other value, the value itself; none of null."""
    if raw is None or jsontext.first_byte(raw) == NULL:
        return []
    return jsontext.decode_array(raw) if jsontext.first_byte(raw) == BRACKET else [raw]


def plain(value: Any) -> Raw:
    """A value as JSON text."""
    return Raw(jsontext.encode(value))


def undotted(raw: Raw) -> Raw:
    """An object whose keys spell paths, as data frames have it, with objects in their place."""
    if jsontext.first_byte(raw) == BRACKET:
        return plain([undotted(item) for item in items_of(raw)])
    if jsontext.first_byte(raw) != BRACE or b"." not in bytes(raw):
        return raw
    out: dict[str, Any] = {}
    for key, value in jsontext.decode_object(raw).items():
        *outer, last = key.split(".")
        at = out
        for name in outer:
            at = at.setdefault(name, {})
            if not isinstance(at, dict):
                return raw
        if last in at:
            return raw
        if jsontext.first_byte(value) != NULL:
            at[last] = undotted(value)
    return plain(out)


def word_of(raw: Raw | None) -> str:
    """A string; empty for any other value."""
    return (
        jsontext.decode_value(raw) if raw is not None and jsontext.first_byte(raw) == QUOTE else ""
    )


class SpanBlocks(BlockReader):
    """Content blocks, with the parts of the GenAI conventions and results of any JSON."""

    def block(self, block: SourceObject, step: StepDraft) -> None:
        """Read a block of any convention."""
        _rename(block)
        super().block(block, step)

    def part(self, block: SourceObject, parts: Any) -> None:
        """Read a part of any convention."""
        _rename(block)
        super().part(block, parts)

    def result(self, raw: Raw | None, observation: ObservationDraft, path: str) -> None:
        """Read a result: blocks, a wrapped result, or any other JSON as its text."""
        value = raw
        for _ in range(_ENCODINGS):
            text = word_of(value)
            quoted = text[:1] == '"' and jsontext.is_valid(text) and not jsontext.has_mark(text)
            inner = jsontext.raw(text) if quoted else self._inside(value, observation, path)
            if inner is None:
                break
            value = inner
        if value is None or jsontext.first_byte(value) == NULL:
            return
        blocks = jsontext.first_byte(value) == BRACKET and all(map(_is_block, items_of(value)))
        if jsontext.first_byte(value) == QUOTE or (blocks and len(value) > 2):
            super().result(value, observation, path)
        else:
            observation.parts.text(self.builder.text(jsontext.one_line(value)))

    def _inside(self, raw: Raw | None, observation: ObservationDraft, path: str) -> Raw | None:
        """The value inside an object that only says what kind of result it is."""
        if raw is not None and any(
            key in bytes(raw) for key in (b"tool_call_id", b"content", b"function_result")
        ):
            raw = unwrapped(raw)
        if raw is None or jsontext.first_byte(raw) != BRACE:
            return None
        source = opened(SourceObject(raw, path, self.losses))
        kind = source.word("type")
        if kind in ("text", "json", "error-text", "error-json", "content") and "value" in source:
            if kind.startswith("error"):
                observation.columns["is_error"] = True
            observation.extra.setdefault("output type", kind)
            source.drop("type")
            value = source.take("value")
        elif kind == "function_result" and "result" in source:
            value = source.take("result")
            observation.answers = observation.answers or source.word("call_id") or None
            source.drop("type")
        elif kind in TOOL or set(source.values) == {"content"}:
            value = source.take("content")
            if source.word("status") == "error":
                observation.columns["is_error"] = True
            if observation.answers is None and source.word("tool_call_id"):
                observation.answers, observation.by_order = source.name("tool_call_id"), False
            source.drop("type")
        else:
            return None
        observation.extra.update(source.rest())
        return value


def _rename(block: SourceObject) -> None:
    """Give a part of the GenAI conventions or of OpenInference the keys of the blocks."""
    inner = block.child("message_content")
    if inner:
        block.values = {**inner.values, **block.values}
        inner.values = {}
    kind = block.word("type")
    for key in ("functionResponse", "function_response"):
        if block.first(key) == BRACE and not kind:
            _rename_response(block, key)
            return
    if kind == "tool_use" and block.first("tool_call") == BRACE:
        _rename_call(block)
    elif kind == "tool_call_response":
        for key in ("response", "result"):
            if key in block and "content" not in block:
                block.values["content"] = block.values.pop(key)
        block.values["type"] = Raw(b'"tool_result"')
    elif kind in ("server_tool_call", "server_tool_call_response") and kind in block:
        result = kind.endswith("response")
        block.values["content" if result else "input"] = block.values.pop(kind)
        block.values["type"] = Raw(b'"tool_result"' if result else b'"server_tool_use"')
    elif kind == "blob" and "content" in block:
        block.values["data"] = block.values.pop("content")
        block.values["type"] = Raw(b'"media"')
    elif kind == "uri":
        block.values["type"] = Raw(b'"media"')
    elif kind == "image" and block.first("image") == BRACE:
        picture = block.child("image").child("image") or block.child("image")
        block.values["url"] = picture.values.pop("url", Raw(b'""'))


def _rename_call(block: SourceObject) -> None:
    """A call of OpenInference among the blocks, with its name and its arguments further in."""
    inner = block.child("tool_call")
    function = inner.child("function")
    for values, old, new in (
        (inner.values, "id", "id"),
        (function.values, "name", "name"),
        (function.values, "arguments", "input"),
    ):
        if old in values and new not in block:
            block.values[new] = values.pop(old)


def _rename_response(block: SourceObject, key: str) -> None:
    """A result as Gemini writes it: what the function gave, or an object with that alone."""
    inner = block.child(key)
    for name in ("id", "name"):
        if name in inner and name not in block:
            block.values[name] = inner.values.pop(name)
    response = inner.child("response")
    text = response.text("result", "output") if len(response.values) == 1 else None
    raw = plain(text) if text is not None else plain(response.values) if response else (
        inner.take("response"))  # fmt: skip
    response.values = {}
    if raw is not None:
        block.values["content"] = raw
    block.values["type"] = Raw(b'"tool_result"')


def _is_block(raw: Raw) -> bool:
    if jsontext.first_byte(raw) != BRACE:
        return False
    values = jsontext.decode_object(raw)
    return word_of(values.get("type")) != "" and bool(
        {"text", "content", "source", "image_url", "data", "url", "uri"} & set(values)
    )


def opened(message: SourceObject) -> SourceObject:
    """What LangChain and OpenInference wrap a message in is taken off, and kept beside it."""
    for key in ("message", "kwargs", "data"):
        inner = message.child(key)
        if not inner:
            continue
        if key == "kwargs":
            name = (items_of(message.values.get("id")) or [Raw(b'""')])[-1]
            if message.integer_at("lc") == 1 and message.word("type") == "constructor":
                message.drop("lc", "type")
            inner.values.setdefault("type", name)
        for outer, value in message.values.items():
            inner.values.setdefault(outer if outer not in inner else f"outer {outer}", value)
        return inner
    return message
