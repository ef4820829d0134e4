"""Arguments that are null because Arrow gives each call the arguments of all tools."""

from __future__ import annotations

from adp_schema import jsontext


def without_nulls(text: str | None) -> str | None:
    """An object without its members that are null; any other JSON as it is."""
    if text is None or not text.startswith("{"):
        return text
    fields = jsontext.decode_object(text.encode("utf-8"))
    kept = {key: value for key, value in fields.items() if bytes(value) != b"null"}
    return text if len(kept) == len(fields) else jsontext.text_of(kept)
