"""Message content: a text, nothing, a list of parts, or anything else; in and out."""

from __future__ import annotations

import base64
import re
from typing import Any

import msgspec
from msgspec import Raw

from adp.converters.content import (
    OTHER_COLUMNS,
    further_keys,
    ordered,
    read_content,
    take_reserved,
)
from adp.converters.content import write_content as write_parts
from adp.converters.reading import BRACE, QUOTE
from adp.converters.unwritten_columns import REASON, report_parts
from adp.converters.writing import parts_of, spoken_text
from adp_schema import jsontext, media
from adp_schema.builder import RowBuilder
from adp_schema.extra_column import Extra, original
from adp_schema.losses import Losses
from adp_schema.model import Columns, Media, Observation, Step
from adp_schema.parts import Part, Parts


def content_columns(
    raw: Raw | None, columns: Columns, form: dict[str, Any], builder: RowBuilder
) -> None:
    """Fill text and content of a step or an observation from a message's content."""
    read_content(raw, columns, form, builder, read_part)


_MIME_WORD = re.compile(r"[\w.+-]+", re.ASCII)
_TEXT_PART = re.compile(rb'\{"type": ?"text", ?"text": ?(".*")\}', re.DOTALL)


def _read_text_part(raw: Raw, parts: Parts, builder: RowBuilder) -> bool:
    """The quick way for a part that is a text and nothing else; False when it is not."""
    match = _TEXT_PART.fullmatch(raw)
    if match is None:
        return False
    try:
        text = jsontext.decode_value(match.group(1))
    except msgspec.DecodeError:
        # More keys follow the text.
        return False
    if text[:1] == jsontext.NUMBER_MARK:
        return False
    parts.text(builder.text(text))
    return True


def read_part(raw: Raw, parts: Parts, builder: RowBuilder) -> None:
    """Read one part of a list of parts."""
    if _read_text_part(raw, parts, builder):
        return
    first = jsontext.first_byte(raw)
    if first == QUOTE:
        parts.text(builder.text(jsontext.decode_value(raw)), {"$form": "string"})
        return
    part = jsontext.decode_object(raw) if first == BRACE else {}
    kind = part.get("type")
    name = bytes(kind) if kind is not None else b""
    odd = not part or any(key.startswith("$") or jsontext.has_mark(key) for key in part)
    if odd or jsontext.lost_keys(raw, part):
        parts.opaque(Raw(jsontext.one_line(raw).encode()))
    elif name == b'"text"' and jsontext.first_byte(part.get("text", b"")) == QUOTE:
        names = list(part)
        text = builder.text(jsontext.decode_value(part.pop("text")))
        parts.text(text, further_keys(part, names, ["type", "text"]))
    elif not (name == b'"image_url"' and _read_image(part, parts, builder)) and not (
        name == b'"input_audio"' and _read_audio(part, parts, builder)
    ):
        parts.opaque(Raw(jsontext.one_line(raw).encode()))


def _read_image(part: dict[str, Raw], parts: Parts, builder: RowBuilder) -> bool:
    raw = part.get("image_url")
    if raw is None:
        return False
    names = list(part)
    extra: dict[str, Any] = {}
    if jsontext.first_byte(raw) == QUOTE:
        reference = jsontext.decode_value(raw)
        extra["$form"] = "string"
    else:
        child = jsontext.decode_object(raw) if jsontext.first_byte(raw) == BRACE else {}
        if list(child) not in (["url"], ["url", "detail"]) or jsontext.lost_keys(raw, child):
            return False
        if jsontext.first_byte(child["url"]) != QUOTE:
            return False
        reference = jsontext.decode_value(child["url"])
        if "detail" in child:
            extra["$detail"] = Raw(jsontext.one_line(child["detail"]).encode())
    if jsontext.has_mark(reference):
        return False
    blob = media.media_of_reference(reference)
    media_id = builder.media(blob)
    stored = builder.stored_mime(media_id)
    if stored != blob.mime:
        if stored is None or blob.mime is None:
            return False
        extra["$mime"] = blob.mime
    del part["image_url"]
    extra.update(further_keys(part, names, ["type", "image_url"]))
    parts.media(media_id, extra)
    return True


def _read_audio(part: dict[str, Raw], parts: Parts, builder: RowBuilder) -> bool:
    raw = part.get("input_audio")
    child = jsontext.decode_object(raw) if raw is not None and bytes(raw)[:1] == b"{" else {}
    if list(child) != ["data", "format"] or list(part) != ["type", "input_audio"]:
        return False
    if any(jsontext.first_byte(value) != QUOTE for value in child.values()):
        return False
    if raw is None or jsontext.lost_keys(raw, child):
        return False
    data = media.blob_of_base64(jsontext.decode_value(child["data"]))
    name = jsontext.decode_value(child["format"])
    if not data or not _MIME_WORD.fullmatch(name):
        return False
    media_id = builder.media(media.media_of_bytes(data, f"audio/{name}"))
    if builder.stored_mime(media_id) is None:
        return False
    parts.media(media_id, {"$form": "audio", "$format": name})
    return True


def write_content(row: Step | Observation, extra: Extra, blobs: Any) -> Any:
    """The content of a message that was read from this format."""
    return write_parts(row, extra, blobs, _write_part)


def write_foreign_content(
    row: Step | Observation, extra: Extra, blobs: Any, path: str, losses: Losses
) -> Any:
    """The content of a message from a row of another format: a list with media or several texts.

    A page has no place of its own here: its accessibility tree goes first, as text. What other
    formats say about a part is reported, but for its media type.
    """
    text = spoken_text(row, extra)
    parts = parts_of(row, text, extra)
    report_parts(parts, path, losses, "reasoning")
    written: list[Any] = []
    for index, part in enumerate(parts):
        for key in sorted(part.extra.keys() - _KNOWN):
            losses.add(f"{path}.content[{index}].extra.{key}", REASON)
        if part.type == "opaque":
            losses.add(f"{path}.content[{index}]", REASON)
        elif part.type not in OTHER_COLUMNS:
            mime = part.extra.get("$mime") or part.extra.get("mime")
            part.extra = {} if mime is None else {"$mime": mime}
            _report_media(part, blobs, f"{path}.content[{index}]", losses)
            written.append(_write_part(part, blobs))
    if isinstance(row, Observation) and row.axtree is not None and text is None:
        text = original(row, "axtree", extra)
        tree = jsontext.string(media.restore(text, blobs))
        written.insert(0, {"type": "text", "text": tree})
    texts = sum(part.type == "text" for part in parts)
    if texts > 1 or any(part.type == "media" for part in parts):
        return written
    return None if text is None else jsontext.string(media.restore(text, blobs))


def _report_media(part: Part, blobs: Any, path: str, losses: Losses) -> None:
    """Sounds have a form of their own; what an address cannot say is reported."""
    blob = blobs.get(part.media_id) if part.type == "media" else None
    if blob is None or blob.mime is None:
        return
    kind, _, name = blob.mime.partition("/")
    if kind == "audio" and blob.data is not None:
        part.extra = {"$form": Raw(b'"audio"'), "$format": Raw(jsontext.encode(name))}
    elif blob.data is None:
        losses.add(f"$.media.{part.media_id}.mime", REASON)
        if kind == "audio":
            losses.add(path, "a sound that is not stored here is written as an image")


_KNOWN = frozenset({"mime", "$mime", "bare"})
"""Keys of media parts that say how the source wrote an image."""


def _write_part(part: Part, blobs: Any) -> Any:
    if part.type == "opaque":
        return part.value
    extra = dict(part.extra)
    form = take_reserved(extra, "$form")
    if part.type == "text":
        text = jsontext.string(media.restore(part.text, blobs))
        return text if form == "string" else _part({"type": "text", "text": text}, extra)
    blob = blobs.get(part.media_id)
    if form == "audio":
        data = base64.b64encode(blob.data).decode("ascii")
        audio = {"data": data, "format": take_reserved(extra, "$format")}
        return {"type": "input_audio", "input_audio": audio}
    return _write_image(blob, form, extra)


def _write_image(blob: Media | None, form: Any, extra: dict[str, Any]) -> Any:
    mime = take_reserved(extra, "$mime")
    if blob is not None and mime is not None:
        blob = blob.model_copy(update={"mime": mime})
    reference = media.reference_of_media(blob) if blob is not None else ""
    detail = extra.pop("$detail", None)
    url: Any = jsontext.string(reference)
    if form != "string":
        url = {"url": url} if detail is None else {"url": url, "detail": detail}
    return _part({"type": "image_url", "image_url": url}, extra)


def _part(known: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """A part with its further keys, in the order of the source."""
    names = take_reserved(extra, "$keys")
    return ordered({**known, **extra}, names)
