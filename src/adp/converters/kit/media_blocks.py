"""Content blocks that are images, other blobs and files, as media."""

from __future__ import annotations

from typing import Any, Protocol

from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.parts import Parts


class MediaReader(Protocol):
    """What adds media to parts: the reader of content blocks."""

    builder: RowBuilder

    def blob(self, data: str, mime: str | None, parts: Parts, extra: dict[str, Any]) -> bool:
        """Add base64 as media; False when it is not base64 that can be written again."""

    def reference(self, text: str, parts: Parts, extra: dict[str, Any], mime: str | None) -> bool:
        """Add a data URI, an address or a path as media."""


def take_references(source: SourceObject, key: str) -> list[str]:
    """Take a list of data URIs, addresses or paths; any other list stays, and gives none."""
    urls = source.items(key)
    words = [jsontext.decode_value(it) for it in urls if jsontext.first_byte(it) == QUOTE]
    if len(words) < len(urls) or any(map(jsontext.has_mark, words)):
        source.values[key] = jsontext.raw(jsontext.text_of(urls))
        return []
    return words


def read_image(reader: MediaReader, block: SourceObject, parts: Parts) -> bool:
    """Blobs in the forms of Anthropic, of OpenAI, and of agents: base64, an address, or an id."""
    outer = block
    if block.first("image_urls") == BRACKET:
        return _images(reader, block, parts)
    for key in ("source", "image_url", "file", "input_audio", "media"):
        if block.first(key) == BRACE:
            block = outer.child(key)
            break
    if block is not outer and block.word("type") == "text" and block.word("data"):
        parts.text(reader.builder.text(block.text("data") or ""), outer.rest_lines())
        return True
    mime = block.word("media_type") or block.word("mimeType") or block.word("mime_type") or None
    for key in ("data", "base64", "file_data"):
        text = block.word(key)
        if not text:
            continue
        kept = block.values.pop(key)
        if text.startswith("data:"):
            return reader.reference(text, parts, outer.rest_lines(), None)
        if reader.blob(text, mime, parts, outer.rest_lines()):
            return True
        block.values[key] = kept
    for key in ("url", "image_url", "uri", "path", "image", "audio", "video", "document"):
        text = block.word(key)
        if text and not jsontext.has_mark(text):
            del block.values[key]
            return reader.reference(text, parts, outer.rest_lines(), mime)
    return False


def _images(reader: MediaReader, block: SourceObject, parts: Parts) -> bool:
    """Several addresses in one block; what else it says goes with the first."""
    words = take_references(block, "image_urls")
    if not words:
        return False
    block.drop("type")
    for number, word in enumerate(words):
        reader.reference(word, parts, {} if number else block.rest_lines(), None)
    return True


def read_gemini_blob(reader: MediaReader, block: SourceObject, parts: Parts) -> bool:
    """Base64, as Gemini writes it."""
    inner = block.child("inlineData") or block.child("inline_data")
    text = inner.word("data")
    mime = inner.word("mimeType") or inner.word("mime_type") or None
    kept = inner.take("data")
    if text and reader.blob(text, mime, parts, block.rest_lines()):
        return True
    if kept is not None:
        inner.values["data"] = kept
    return False


def read_gemini_file(reader: MediaReader, block: SourceObject, parts: Parts) -> bool:
    """The address of a file, as Gemini writes it."""
    inner = block.child("fileData") or block.child("file_data")
    text = inner.text("fileUri", "file_uri")
    return text is not None and reader.reference(text, parts, block.rest_lines(), None)
