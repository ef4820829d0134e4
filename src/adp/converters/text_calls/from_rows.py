"""Calls of the store as text: those that were read from one, and those of another format."""

from __future__ import annotations

from typing import Any

from adp.converters.text_calls.edit import CallEdit, json_string, write_call
from adp.converters.text_calls.find import Values, is_json_like
from adp.converters.unwritten_columns import REASON
from adp_schema import media
from adp_schema.extra_column import Extra, original, unpack
from adp_schema.losses import Losses
from adp_schema.model import ToolCall


def call_edit(call: ToolCall) -> CallEdit:
    """A call that was read from a text, as `rewrite` takes it."""
    extra = unpack(call.extra)
    column = "call_id" if call.native_id is None else "native_id"
    names = (column, "name", "arguments", "arguments_raw")
    values = Values(*(original(call, name, extra) for name in names))
    return CallEdit(values, call.arguments_kind, (call.span_start, call.span_end))


def call_text(call: ToolCall, extra: Extra, blobs: Any, path: str, losses: Losses) -> str:
    """The JSON of a call of another format.

    Args:
        call: the call.
        extra: its unpacked column ``extra``.
        blobs: media by id.
        path: where it is.
        losses: takes what it cannot say.
    """
    name = original(call, "name", extra)
    if name is None and call.kind == "code":
        name = call.language
    elif call.language is not None and call.language != name:
        losses.add(f"{path}.language", REASON)
    if call.kind not in (None, "function", "code"):
        losses.add(f"{path}.kind", f"a call of kind {call.kind} becomes one of a function")
    return write_call(name or "", _arguments(call, extra, blobs, path, losses))


def _arguments(call: ToolCall, extra: Extra, blobs: Any, path: str, losses: Losses) -> str:
    """JSON text of the arguments."""
    text = original(call, "arguments", extra)
    raw = original(call, "arguments_raw", extra)
    if text is None and raw is None:
        return "{}"
    written = media.restore(raw if text is None else text, blobs)
    if text is None and call.arguments_kind == "text":
        key = "code" if call.kind == "code" else "input"
        if key == "input":
            losses.add(f"{path}.arguments_raw", "free text is written under the key input")
        return f'{{"{key}": {json_string(written)}}}'
    as_json = call.arguments_kind in ("object", "json_string") and is_json_like(raw or "")
    if text is None and not as_json:
        losses.add(f"{path}.arguments_raw", "it is no JSON and is written as a string")
        return json_string(written)
    if written.strip()[:1] in ('"', "n"):
        column = "arguments" if raw is None else "arguments_raw"
        losses.add(f"{path}.{column}", "only an object is taken as it stands")
    # A lone surrogate can stand in JSON as its escape only.
    return "".join(
        f"\\u{ord(char):04x}" if 0xD800 <= ord(char) < 0xE000 else char for char in written
    )
