"""Outputs of calls in a Codex log: their content, and the exit status and time that it says."""

from __future__ import annotations

import re

from msgspec import Raw

from adp.converters.kit.blocks import BlockReader
from adp.converters.kit.drafts import ObservationDraft
from adp.converters.kit.source_object import SourceObject, embedded
from adp.converters.reading import BRACE
from adp_schema import jsontext
from adp_schema.losses import Losses

_EXIT = re.compile(r"(?m)^(?:Process exited with code|Exit code:?) (-?\d{1,9})$")
_WALL = re.compile(r"(?m)^Wall time: (\d{1,9}(?:\.\d{1,9})?) seconds$")
_HEAD = 400
"""Characters of an output in which Codex says how the command ended."""


def read_output(
    blocks: BlockReader, raw: Raw | None, draft: ObservationDraft, item: SourceObject
) -> None:
    """Read the output of an item: text, blocks, or an object with ``content``, ``success``.

    Args:
        blocks: of the session.
        raw: the output.
        draft: the result.
        item: takes what no column holds of an object.
    """
    if raw is not None and jsontext.first_byte(raw) == BRACE:
        inner = SourceObject(raw, f"{item.path}.output", item.losses)
        if "content" in inner and "type" not in inner:
            success = inner.flag("success")
            if success is not None:
                draft.columns["is_error"] = not success
            raw = inner.take("content")
            item.values.update({f"output.{k}": v for k, v in inner.values.items()})
    blocks.result(raw, draft, f"{item.path}.output")
    _set_ending(draft, item.path)


def _set_ending(draft: ObservationDraft, path: str) -> None:
    """How the command ended, as Codex says it in JSON or at the beginning of the text."""
    text = draft.parts.words("text")
    output = embedded(text, path, Losses()) if text[:1] == "{" else None
    if output:
        metadata = output.child("metadata")
        code, seconds = (
            metadata.integer_at("exit_code", 32),
            metadata.number("duration_seconds"),
        )
    else:
        head, ends, _ = text[:_HEAD].partition("\nOutput:")
        match, wall = (_EXIT.search(head), _WALL.search(head)) if ends else (None, None)
        code = int(match[1]) if match else None
        seconds = float(wall[1]) if wall else None
    if code is not None:
        draft.columns["exit_code"] = code
    if seconds is not None:
        draft.columns["duration_ms"] = seconds * 1e3
