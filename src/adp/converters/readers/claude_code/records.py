"""Where a record of Claude Code belongs, found without taking anything from it."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from adp.converters.kit.source_object import SourceObject
from adp.converters.readers.claude_code.identity import Identity
from adp.converters.readers.claude_code.tree import Record
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE
from adp_schema import jsontext
from adp_schema.model import Columns

TRUE = 0x74
"""First byte of true."""


def place_of(source: SourceObject, identity: Identity) -> Record:
    """What decides where a record belongs.

    Args:
        source: the record; nothing is taken from it.
        identity: of the file.
    """
    message = source.child("message")
    kind = source.word("type") or message.word("role")
    shapes = _shapes(message.values.get("content"))
    started_by = source.word("parent_tool_use_id")
    side = source.first("isSidechain") == TRUE and not identity.is_agent
    answers = [shape[1] for shape in shapes if shape[0] == "tool_result"]
    return Record(
        uuid=source.word("uuid"),
        parent=source.word("parentUuid") or source.word("logicalParentUuid"),
        node="" if identity.is_repeated(source) else _node(source, message, kind, shapes),
        turn=message.word("id") if kind == "assistant" else "",
        thread=started_by or (source.word("agentId") if side else ""),
        side=side and not started_by,
        calls=tuple(shape[1] for shape in shapes if shape[0].endswith("tool_use")),
        after_call=answers[0] if answers else started_by,
    )


def _node(
    source: SourceObject, message: SourceObject, kind: str, shapes: list[tuple[str, str]]
) -> str:
    """Whether a record is a prompt or a turn of the model, which alone begin branches."""
    if kind == "assistant":
        is_synthetic = message.word("model") == "<synthetic>"
        return "" if is_synthetic or source.first("isApiErrorMessage") == TRUE else "turn"
    if kind != "user" or source.first("isMeta") == TRUE:
        return ""
    if source.first("isCompactSummary") == TRUE:
        return ""
    return "" if shapes and any(shape[0] == "tool_result" for shape in shapes) else "prompt"


class ContentShape(msgspec.Struct):
    """What of a block decides where its record belongs."""

    type: str = ""
    tool_use_id: str = ""
    id: str = ""


_decode_shapes = msgspec.json.Decoder(list[ContentShape]).decode


def _shapes(content: Raw | None) -> list[tuple[str, str]]:
    """Type of each block, with the id of its call."""
    if content is None or jsontext.first_byte(content) != BRACKET:
        return []
    try:
        blocks = _decode_shapes(content)
        ids = [it.tool_use_id if it.type == "tool_result" else it.id for it in blocks]
        return [(it.type, name) for it, name in zip(blocks, ids, strict=True)]
    except msgspec.ValidationError:  # no object among them, or an id that is no text
        pass
    shapes = []
    for item in jsontext.decode_array(content):
        if jsontext.first_byte(item) != BRACE:
            shapes.append(("", ""))
            continue
        block = jsontext.decode_object(item)
        words = [_word(block.get(key)) for key in ("type", "tool_use_id", "id")]
        shapes.append((words[0], words[1] if words[0] == "tool_result" else words[2]))
    return shapes


def _word(raw: Raw | None) -> str:
    if raw is None or jsontext.first_byte(raw) != QUOTE:
        return ""
    text: str = jsontext.decode_value(raw)
    return text


def set_origin(source: SourceObject, columns: Columns) -> None:
    """Who wrote a prompt, where it was not a person; and who sees it."""
    for key in ("isMeta", "isSynthetic"):
        if source.first(key) == TRUE:
            source.drop(key)
            columns["synthetic"] = True
    origin = source.child("origin").word("kind")
    if origin and origin != "human":
        columns["synthetic"], columns["actor"] = True, origin
    if source.first("isVisibleInTranscriptOnly") == TRUE:
        source.drop("isVisibleInTranscriptOnly")
        columns["visibility"] = "user"


def blocks_of(content: Raw | None) -> list[Raw]:
    """The items of a content; a text is one."""
    if content is None or jsontext.first_byte(content) == NULL:
        return []
    if jsontext.first_byte(content) == BRACKET:
        items: list[Raw] = jsontext.decode_array(content)
        return items
    return [content]


def words(raw: Raw | None) -> list[str]:
    """The strings of a list."""
    if raw is None or jsontext.first_byte(raw) != BRACKET:
        return []
    items = jsontext.decode_array(raw)
    return [jsontext.decode_value(item) for item in items if jsontext.first_byte(item) == QUOTE]
