"""The content of a row as blocks in order, with their words and bytes, for writers of sessions."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import Raw

from adp.converters.unwritten_columns import REASON
from adp.converters.writing import parts_of, spoken_text
from adp_schema import jsontext, media
from adp_schema.extra_column import original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Media, Observation, Step, ToolCall
from adp_schema.parts import Part

_SPELLING = frozenset({"mime", "bare", "type"})
"""Keys of parts that only say how the source wrote them."""


@dataclass
class Block:
    """One part of a step or of a result.

    Attributes:
        kind: text, reasoning, media, call or opaque.
        path: where it is in the row.
        text: the words of a text or of reasoning.
        blob: an image or another blob, with its type.
        call: a call.
        value: what no other kind can hold, as the source wrote it.
        extra: keys of the source's own block.
    """

    kind: str
    path: str
    text: str = ""
    blob: Media = field(default_factory=Media)
    call: ToolCall = field(default_factory=ToolCall)
    value: Raw = field(default_factory=Raw)
    extra: dict[str, Raw] = field(default_factory=dict)

    def base64(self) -> str:
        """The bytes of the blob, in characters."""
        return base64.b64encode(self.blob.data or b"").decode("ascii")

    def is_image(self) -> bool:
        """Whether the blob may be shown as an image."""
        return self.blob.mime is None or self.blob.mime.startswith("image/")


def blocks_of(
    row: Step | Observation,
    blobs: Mapping[str, Media],
    path: str,
    losses: Losses,
    *,
    native: bool,
) -> list[Block]:
    """The blocks of a row. Empty texts are left out, and calls that no part names come last.

    Args:
        row: a step or an observation.
        blobs: of its trajectory.
        path: where the row is.
        losses: takes what another format says of a part.
        native: whether parts may keep what they say in the form of their source.
    """
    extra = unpack(row.extra)
    text = spoken_text(row, extra)
    calls = {call.call: call for call in row.calls} if isinstance(row, Step) else {}
    if isinstance(row, Observation) and text is None and row.content is None:
        text = original(row, "axtree", extra)
    parts = parts_of(row, text, extra, exact=native)
    named = {part.type for part in parts}
    further = [part for part in _plain(row, text) if part.type not in named]
    blocks = []
    for index, part in enumerate([*further, *parts], -len(further)):
        block = Block(part.type, f"{path}.content[{index}]", media.restore(part.text, blobs))
        block.extra = dict(part.extra)
        if part.type == "media":
            _set_blob(block, part, blobs, losses)
        elif part.type == "opaque":
            block.value = part.value
        elif part.type == "tool_call":
            known = calls.pop(part.call, None)
            if known is None:
                continue
            block.kind, block.call = "call", known
        elif not part.text:
            continue
        if not native:
            _leave_form(block, losses)
            if part.type == "opaque":
                continue
        blocks.append(block)
    return [*blocks, *(Block("call", f"{path}.calls", call=call) for call in calls.values())]


def _plain(row: Step | Observation, text: str | None) -> list[Part]:
    """Reasoning and text as parts: some formats keep them beside the parts."""
    reasoning = original(row, "reasoning", unpack(row.extra)) if isinstance(row, Step) else None
    pairs = (("reasoning", reasoning), ("text", text))
    return [Part(type=kind, text=words) for kind, words in pairs if words]


def _set_blob(block: Block, part: Part, blobs: Mapping[str, Media], losses: Losses) -> None:
    known = blobs.get(part.media_id or "")
    if known is None:
        losses.add(block.path, "the bytes of the image are not in the store")
        known = Media(uri=part.media_id)
    raw = block.extra.pop("$mime", None)
    mime = known.mime if raw is None else jsontext.decode_value(raw)
    block.blob = known.model_copy(update={"mime": mime})


def _leave_form(block: Block, losses: Losses) -> None:
    """Drop what another format says of a part, and report it."""
    for key in sorted(block.extra):
        if key not in _SPELLING and not key.startswith("$"):
            losses.add(f"{block.path}.extra.{key}", REASON)
    block.extra = {}
    if block.kind == "opaque":
        losses.add(block.path, REASON)
