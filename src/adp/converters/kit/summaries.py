"""Reasoning whose text is a list of summaries, as the Responses API writes it, in a block."""

from __future__ import annotations

from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import QUOTE
from adp_schema.builder import RowBuilder
from adp_schema.parts import Parts

_KINDS = ("summary_text", "reasoning_text", "text")


def read_summaries(builder: RowBuilder, block: SourceObject, parts: Parts) -> bool:
    """Read the texts under ``summary`` and ``content`` as reasoning, a part each.

    Args:
        builder: of the rows.
        block: of the type reasoning; what else it says goes with the first part.
        parts: takes the texts.

    Returns:
        Whether there is any text; otherwise the block stays as it is.
    """
    copy = block.copy()
    pieces = [*copy.objects("summary"), *copy.objects("content")]
    if not pieces or any(piece.first("text") != QUOTE for piece in pieces):
        return False
    block.drop("type")
    for key in ("summary", "content"):
        if key not in copy:
            block.drop(key)
    for number, piece in enumerate(pieces):
        text = piece.text("text")
        if piece.word("type") in _KINDS:
            piece.drop("type")
        rest = {**(block.rest_lines() if number == 0 else {}), **piece.rest_lines()}
        parts.reasoning(builder.text(text or ""), rest)
    return True
