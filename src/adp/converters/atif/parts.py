"""Content parts of the strict flavours: what a part may say, and where the rest goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msgspec import Raw

from adp.converters.json_objects import members
from adp.converters.reading import QUOTE
from adp_schema import jsontext
from adp_schema.losses import Losses

IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
SOUNDS = {
    **{name: name for name in ("audio/wav", "audio/mpeg", "audio/mp4", "audio/aac")},
    **{name: name for name in ("audio/ogg", "audio/flac", "audio/webm", "audio/aiff")},
    **{"audio/mp3": "audio/mpeg", "audio/mpga": "audio/mpeg", "audio/x-mpeg": "audio/mpeg"},
    **{"audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/vnd.wave": "audio/wav"},
    **{"audio/x-m4a": "audio/mp4", "audio/m4a": "audio/mp4", "audio/x-aac": "audio/aac"},
    **{"audio/x-flac": "audio/flac", "audio/x-aiff": "audio/aiff"},
}
"""Types of sounds, and their other names."""
_SUFFIXES = {
    **{"jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png", "gif": "image/gif"},
    **{"webp": "image/webp", "wav": "audio/wav", "mp3": "audio/mpeg", "mp4": "audio/mp4"},
    **{"m4a": "audio/mp4", "aac": "audio/aac", "ogg": "audio/ogg", "flac": "audio/flac"},
    **{"webm": "audio/webm", "aiff": "audio/aiff"},
}
_KEYS = {"text": ("type", "text"), "image": ("type", "source"), "audio": ("type", "source")}

Item = dict[str, Any]


@dataclass
class Places:
    """Where parts are.

    Attributes:
        path: path of the step or the result.
        key: ``message`` or ``content``.
        extra: its ``extra``; takes what a part cannot say.
    """

    path: str
    key: str
    extra: Item


def parts_of(
    parts: list[Any], places: Places, losses: Losses, *, strict: bool
) -> tuple[list[Item], bool]:
    """Parts in the form of a flavour; the rest goes into ``extra.<key>_parts`` by number.

    Args:
        parts: the parts, written or built.
        places: where they are.
        losses: takes parts that the flavour cannot hold.
        strict: whether parts may have no ``extra`` and media need a known type.

    Returns:
        The parts, and whether a sound is among them.
    """
    out: list[Item] = []
    extra_keys: Item = {}
    audio = False
    for index, part in enumerate(parts):
        place = f"{places.path}.content[{index}]"
        written, rest = _part(part, place, losses, strict)
        if rest is not None:
            extra_keys[str(index)] = rest
        if written is None:
            # Without the opaque ones, parts have other numbers here than in the store.
            at = f"{places.path}.content" if "opaque" in places.extra else place
            losses.add(at, f"no part of a {places.key} can say it; it is kept in extra")
        else:
            out.append(written)
            audio = audio or written["type"] == "audio"
    if extra_keys:
        places.extra[f"{places.key}_parts"] = extra_keys
    return out, audio


def _part(part: Any, place: str, losses: Losses, strict: bool) -> tuple[Item | None, Any]:
    """A part, and what it cannot say."""
    full = members(part)
    if full is None:
        text = isinstance(part, str) or (
            isinstance(part, Raw) and jsontext.first_byte(part) == QUOTE
        )
        return ({"type": "text", "text": part}, None) if text else (None, part)
    kind = _text(full.get("type")) or ""
    known = _KEYS.get(kind)
    if known is None or (kind == "audio" and not strict):
        return None, part
    out: Item = {"type": kind}
    rest = {key: value for key, value in full.items() if key not in known}
    if kind == "text":
        if _text(full.get("text")) is None:
            return None, part
        out["text"] = full["text"]
    else:
        source, further = _source(full.get("source"), kind, place, losses, strict)
        if source is None:
            return None, part
        out["source"] = source
        if further:
            rest["source"] = further
    if rest and not strict:
        extra = members(rest.pop("extra", None)) or {}
        out["extra"] = {**rest, **extra}
        rest = {}
    return out, rest or None


def _source(
    value: Any, kind: str, place: str, losses: Losses, strict: bool
) -> tuple[Item | None, Item]:
    """``source`` of an image or a sound, and its further keys."""
    source = members(value) or {}
    path, mime = _text(source.get("path")), _text(source.get("media_type"))
    if path is None:
        return None, {}
    known = ("media_type", "path", "duration_sec") if kind == "audio" else ("media_type", "path")
    rest = {key: item for key, item in source.items() if key not in known}
    out = {key: item for key, item in source.items() if key in known}
    if not strict:
        if mime is None and "media_type" in out:
            rest["media_type"] = out.pop("media_type")
        return out, rest
    result = mime or _guess(path)
    allowed = SOUNDS.get(result or "") if kind == "audio" else result if result in IMAGES else None
    if allowed is None and result is not None:
        return None, {}
    if allowed is None:
        allowed = "audio/wav" if kind == "audio" else "image/png"
        losses.add(f"{place}.media_type", f"it is not known; {allowed} is written")
    ordered = {"media_type": allowed, "path": source["path"]}
    if "duration_sec" in out:
        ordered["duration_sec"] = out["duration_sec"]
    return ordered, rest


def _guess(path: str) -> str | None:
    """The media type that a data URI, or the end of a path, names."""
    if path.startswith("data:"):
        return path[5:].partition(",")[0].partition(";")[0] or None
    end = path.partition("?")[0].partition("#")[0].rpartition("/")[2]
    return _SUFFIXES.get(end.rpartition(".")[2].lower()) if "." in end else None


def _text(value: Any) -> str | None:
    if isinstance(value, Raw):
        if jsontext.first_byte(value) != QUOTE:
            return None
        return jsontext.unescape(bytes(value).decode("utf-8")[1:-1])
    return value if isinstance(value, str) else None
