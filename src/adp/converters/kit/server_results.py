"""Results of tools that Anthropic's servers run, into an observation.

A result of a search is a text with its address in ``extra``, that of code has an exit code, and
an error has its type.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Raw

from adp.converters.kit.drafts import ObservationDraft
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.parts import Parts


class PartReader(Protocol):
    """What reads the parts of such a result: the reader of content blocks."""

    builder: RowBuilder
    losses: Losses

    def part(self, block: SourceObject, parts: Parts) -> None:
        """Read a block that is text, reasoning or media; any other is kept whole."""


_TEXTS = ("stdout", "content", "text", "title", "body")
"""Where the text of such a result is."""


def read_server_result(
    reader: PartReader, raw: Raw | None, observation: ObservationDraft, path: str
) -> bool:
    """Read the content of a result of a server tool.

    Args:
        reader: reads the blocks in it.
        raw: the content: an object, or a list of objects, each with a type of its own.
        observation: takes it.
        path: where it is.

    Returns:
        False when it is of another form; then nothing was read.
    """
    if raw is None or jsontext.first_byte(raw) not in (BRACE, BRACKET):
        return False
    items = [raw] if jsontext.first_byte(raw) == BRACE else jsontext.decode_array(raw)
    if any(jsontext.first_byte(item) != BRACE for item in items):
        return False
    for number, item in enumerate(items):
        place = path if len(items) == 1 else f"{path}[{number}]"
        _item(reader, SourceObject(item, place, reader.losses), observation)
    return True


def _item(reader: PartReader, source: SourceObject, observation: ObservationDraft) -> None:
    kind = source.word("type")
    if not kind.endswith(("_result", "_error")):
        reader.part(source, observation.parts)
        return
    if "error_code" in source:
        observation.columns["is_error"] = True
        observation.columns["error_type"] = source.text("error_code")
    status = source.integer_at("return_code", bits=32)
    if status is not None:
        observation.columns["exit_code"] = source.integer("return_code", bits=32)
        observation.columns.setdefault("is_error", status != 0)
    error = source.text("stderr") if source.word("stderr") else None
    document = source.child("content")
    if document and document.word("type"):
        reader.part(document, observation.parts)
    text = next((source.text(key) for key in _TEXTS if source.word(key)), None)
    rest = {key: value for key, value in source.rest().items() if key != "type"}
    rest = {"type": kind, **rest} if rest or text is None else {}
    if text is not None:
        observation.parts.text(reader.builder.text(text), rest)
    elif len(rest) > 1 and error is None:
        observation.parts.opaque(rest)
    elif rest:
        observation.extra["result"] = rest
    if error is not None:
        observation.parts.text(reader.builder.text(error), {"name": "stderr"})
