"""Blobs: base64 leaves the text, is stored once by its hash, and returns on the way out.

Base64 inside text breaks deduplication, token counts and search. A data URI is lifted only
when encoding its bytes again gives exactly the same characters; anything else stays where it is.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping

from adp_schema.ids import digest
from adp_schema.model import Media

_DATA_URI = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,([A-Za-z0-9+/]{32,}={0,2})")
_REFERENCE = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,([A-Za-z0-9+/]*={0,2})")
_PLACE = re.compile(r"adp-media:([\w.+-]+/[\w.+-]+);([0-9a-f]{32})")


def blob_of_base64(text: str) -> bytes | None:
    """Decode base64 when encoding the bytes again gives the same characters, else None."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data).decode("ascii") == text else None


def media_of_bytes(data: bytes, mime: str | None) -> Media:
    """A stored blob, named by the hash of its bytes."""
    return Media(media_id=digest(data), mime=mime, data=data, size=len(data))


def media_of_uri(uri: str, mime: str | None = None) -> Media:
    """A blob that is stored elsewhere, named by the hash of its address."""
    return Media(media_id=digest(uri.encode("utf-8", "surrogatepass")), mime=mime, uri=uri)


def media_of_reference(text: str) -> Media:
    """Media for what a source writes where an image belongs: a data URI, a URL or a path."""
    match = _REFERENCE.fullmatch(text)
    if match and (data := blob_of_base64(match.group(2))) is not None:
        return media_of_bytes(data, match.group(1))
    return media_of_uri(text)


def reference_of_media(media: Media, mime: str | None = None) -> str:
    """The inverse of `media_of_reference`.

    Args:
        media: the blob.
        mime: its type where it was used; the same bytes may go by two types.
    """
    if media.data is None:
        return media.uri or ""
    encoded = base64.b64encode(media.data).decode("ascii")
    return f"data:{mime or media.mime};base64,{encoded}"


def lift(text: str) -> tuple[str, list[Media]]:
    """Replace data URIs inside a text by ``adp-media:<mime>;<id>``.

    Returns:
        The text and the blobs, in order of appearance.
    """
    medias: list[Media] = []

    def replace(match: re.Match[str]) -> str:
        data = blob_of_base64(match.group(2))
        if data is None:
            return match.group()
        media = media_of_bytes(data, match.group(1))
        medias.append(media)
        return f"adp-media:{media.mime};{media.media_id}"

    return _DATA_URI.sub(replace, text), medias


def restore(text: str, media: Mapping[str, Media]) -> str:
    """Put the data URIs that `lift` took out back into a text."""
    if "adp-media:" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        blob = media.get(match.group(2))
        if blob is None or blob.data is None:
            return match.group()
        return reference_of_media(blob, match.group(1))

    return _PLACE.sub(replace, text)
