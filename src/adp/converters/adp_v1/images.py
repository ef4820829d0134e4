"""Images of ADP v1 JSON: a path, a URL, a data URI, or bare base64, as OpenHands writes it."""

from __future__ import annotations

from typing import Any

from adp_schema import jsontext, media
from adp_schema.builder import RowBuilder
from adp_schema.model import Media

_SIGNS = {
    "iVBORw0KGgo": ("image/png", b"\x89PNG\r\n\x1a\n"),
    "/9j/": ("image/jpeg", b"\xff\xd8\xff"),
    "R0lGOD": ("image/gif", b"GIF8"),
    "UklGR": ("image/webp", b"RIFF"),
}
"""How base64 of an image begins -> its media type and its first bytes."""

REMEMBERED = frozenset({"mime", "bare"})
"""Keys of a part's ``extra`` that `lift` writes and `reference` reads."""


def bare_base64(text: str) -> Media | None:
    """The image that a text is the base64 of, or None."""
    for start, (mime, magic) in _SIGNS.items():
        if text.startswith(start):
            data = media.blob_of_base64(text)
            if data is not None and data.startswith(magic):
                return media.media_of_bytes(data, mime)
    return None


def lift(text: str, builder: RowBuilder) -> tuple[str, dict[str, Any]]:
    """Move an image into media.

    Returns:
        Its id, and what the part has to remember: the media type as written (the same bytes
        may occur with another one), and whether the base64 stood there without a data URI.
    """
    blob = bare_base64(text)
    if blob is not None:
        return builder.media(blob), {"mime": blob.mime, "bare": True}
    # What cannot be stored in a column is not an address either; the source's own text is
    # kept apart (see `read.image_part`).
    blob = media.media_of_reference(jsontext.mend_text(text)[0])
    return builder.media(blob), {"mime": blob.mime} if blob.data is not None else {}


def reference(blob: Media, extra: dict[str, Any]) -> str:
    """The inverse of `lift`."""
    if blob.data is None:
        return media.reference_of_media(blob)
    written = media.reference_of_media(
        blob.model_copy(update={"mime": extra["mime"]}) if "mime" in extra else blob
    )
    return written.partition(",")[2] if extra.get("bare") else written
