"""Messages and results: a text, or a list of parts with text, images and sounds; in and out."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from adp.converters.content import (
    further_keys,
    ordered,
    read_content,
    take_reserved,
    write_content,
)
from adp.converters.json_objects import members
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp.converters.unwritten_columns import REASON, report_parts
from adp.converters.writing import parts_of, spoken_text
from adp_schema import jsontext, media
from adp_schema.builder import RowBuilder
from adp_schema.extra_column import Extra
from adp_schema.losses import Losses
from adp_schema.model import Columns, Media, Observation, Step
from adp_schema.parts import Part, Parts

_TEXT, _MEDIA = ["type", "text"], ["type", "source"]
_SOURCE = ["media_type", "path"]
_FORM = frozenset(
    {"$keys", "$source", "$more", "$mime", "mime", "bare", "$form", "$format", "$extra"}
)
"""Keys of a part's ``extra`` that say how the source wrote it."""

Blobs = Any


def read_message(
    raw: Raw | None, columns: Columns, form: dict[str, Any], builder: RowBuilder
) -> None:
    """Fill text and content of a step or a result."""
    read_content(raw, columns, form, builder, _read_part)


def _read_part(raw: Raw, parts: Parts, builder: RowBuilder) -> None:
    part = jsontext.decode_object(raw) if jsontext.first_byte(raw) == BRACE else {}
    odd = not part or any(map(_is_reserved, part)) or jsontext.lost_keys(raw, part)
    kind = bytes(part.get("type", b"")).decode("utf-8")
    if not odd and kind == '"text"' and jsontext.first_byte(part.get("text", b"")) == QUOTE:
        names = list(part)
        text = builder.text(jsontext.decode_value(part.pop("text")))
        parts.text(text, further_keys(part, names, _TEXT, later=True))
    elif odd or kind not in ('"image"', '"audio"') or not _read_media(part, kind, parts, builder):
        parts.opaque(jsontext.raw(jsontext.one_line(raw)))


def _is_reserved(key: str) -> bool:
    """Whether a key cannot stand among what a part remembers."""
    return key.startswith("$") or jsontext.has_mark(key)


def _read_media(part: dict[str, Raw], kind: str, parts: Parts, builder: RowBuilder) -> bool:
    """An image or a sound; False when it is not of the form that can be written again."""
    raw = part.get("source", Raw())
    child = jsontext.decode_object(raw) if jsontext.first_byte(raw) == BRACE else {}
    odd = jsontext.first_byte(child.get("path", b"")) != QUOTE or jsontext.lost_keys(raw, child)
    if odd or any(map(_is_reserved, child)):
        return False
    sources = list(child)
    path = jsontext.decode_value(child.pop("path"))
    if jsontext.has_mark(path):
        return False
    written = child.get("media_type", Raw())
    mime = jsontext.decode_value(written) if jsontext.first_byte(written) == QUOTE else None
    if mime is not None and jsontext.has_mark(mime):
        return False
    blob = media.media_of_reference(path)
    if blob.data is None:
        blob = media.media_of_uri(path, mime)
    media_id = builder.media(blob)
    stored = builder.stored_mime(media_id)
    names = list(part)
    del part["source"]
    boxes = _lift_boxes(part)
    extra = {**further_keys(part, names, _MEDIA, later=True), **boxes}
    if kind == '"audio"' and not (stored or "").startswith("audio/"):
        extra["$form"] = "audio"
    elif kind == '"image"' and (stored or "").startswith("audio/"):
        extra["$form"] = "image"
    if blob.data is not None and stored != blob.mime:
        extra["$mime"] = blob.mime
    if mime is not None and mime == stored:
        del child["media_type"]
    if child:
        extra["$more"] = child
    if sources != _SOURCE:
        extra["$source"] = sources
    parts.media(media_id, extra)
    return True


def _lift_boxes(part: dict[str, Raw]) -> dict[str, Any]:
    """Labelled boxes of an image stand in its ``extra``; here they are the part's own."""
    raw = part.get("extra", Raw())
    child = jsontext.decode_object(raw) if jsontext.first_byte(raw) == BRACE else {}
    listed = jsontext.first_byte(child.get("annotations", Raw())) == BRACKET
    if not listed or "annotations" in part or any(map(_is_reserved, child)):
        return {}
    if jsontext.lost_keys(raw, child):
        return {}
    out: dict[str, Any] = {"$extra": list(child)}
    out["annotations"] = jsontext.raw(jsontext.one_line(child.pop("annotations")))
    if child:
        part["extra"] = Raw(jsontext.encode(child))
    else:
        del part["extra"]
    return out


def write_message(row: Step | Observation, extra: Extra, blobs: Blobs) -> Any:
    """The content of a row that was read from this format, in its form."""
    return write_content(row, extra, blobs, _write_part)


def write_foreign_content(
    row: Step | Observation, extra: Extra, blobs: Blobs, path: str, losses: Losses
) -> tuple[Any, list[Raw]]:
    """The content of a row of another format: a list with media, further keys or several texts.

    Returns:
        The content, and the parts that ATIF has no type for.
    """
    text = spoken_text(row, extra)
    parts = parts_of(row, text, extra, exact=True)
    report_parts(parts, path, losses, "reasoning")
    written: list[Any] = []
    plain = sum(part.type == "text" for part in parts) < 2
    for index, part in enumerate(parts):
        values = {
            key.removeprefix("$"): value for key, value in part.extra.items() if key not in _FORM
        }
        if part.type in ("text", "media"):
            if part.type == "media" and blobs.get(part.media_id or "") is None:
                losses.add(f"$.media.{part.media_id}", "the store does not hold it")
            plain = plain and part.type == "text" and not values
            mime = part.extra.get("$mime", part.extra.get("mime"))
            part.extra = {}
            if mime is not None:
                part.extra = {"$mime": mime, "$more": Raw(b'{"media_type":%s}' % bytes(mime))}
            item = _write_part(part, blobs)
            written.append({**item, "extra": values} if values else item)
        elif values:
            losses.add(f"{path}.content[{index}].extra", REASON)
    opaque = [part.value for part in parts if part.type == "opaque"]
    for index, part in enumerate(parts):
        if part.type == "opaque":
            reason = "ATIF has no such part; it is kept in extra.opaque, out of order"
            losses.add(f"{path}.content[{index}]", reason)
    if plain:
        return (None if text is None else jsontext.string(media.restore(text, blobs))), opaque
    return written, opaque


def _write_part(part: Part, blobs: Blobs) -> Any:
    if part.type == "opaque":
        return part.value
    extra: dict[str, Any] = dict(part.extra)
    names, lifted = take_reserved(extra, "$keys"), take_reserved(extra, "$extra")
    if lifted is not None:
        child = dict(members(extra.get("extra")) or {})
        if "annotations" in extra:
            child["annotations"] = extra.pop("annotations")
        extra["extra"] = {name: child[name] for name in lifted if name in child}
    if part.type == "text":
        text = jsontext.string(media.restore(part.text, blobs))
        full: dict[str, Any] = {"type": "text", "text": text, **extra}
    else:
        source, kind = _write_source(blobs.get(part.media_id), extra)
        full = {"type": kind, "source": source, **extra}
    return ordered(full, names)


def _write_source(blob: Media | None, extra: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """``source`` of a part, and the part's type."""
    blob = media.media_of_uri("") if blob is None else blob
    more = members(extra.pop("$more", None)) or {}
    mime, names, kind = (take_reserved(extra, name) for name in ("$mime", "$source", "$form"))
    path = jsontext.string(media.reference_of_media(blob, mime))
    full = {"media_type": blob.mime, "path": path, **more}
    if names is not None:
        full = {name: full[name] for name in names}
    elif full["media_type"] is None:
        del full["media_type"]
    if kind is None:
        kind = "audio" if (blob.mime or "").startswith("audio/") else "image"
    return full, kind


def summary_of(results: list[Raw]) -> str | None:
    """The text that stands for the context from here on: that of the results."""
    texts: list[str] = []
    for raw in results:
        if jsontext.first_byte(raw) == BRACE:
            content = jsontext.decode_object(raw).get("content", Raw())
            if jsontext.first_byte(content) == QUOTE:
                texts.append(jsontext.decode_value(content))
    return "\n\n".join(texts) or None
