"""Checkpoints of Gemini CLI: ``/chat save``, and what it keeps before a tool changes files.

The first is a list of contents as the API takes them, or an object with this list as ``history``;
the second has it as ``clientHistory``, beside the call that was about to be made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.drafts import merge_extra
from adp.converters.kit.gemini_contents import GeminiContents
from adp.converters.kit.session import LogReader, SessionLog, first_item, word
from adp.converters.kit.source_object import SourceObject
from adp_schema.protocols import Match

_LISTS = ("clientHistory", "history")


class Checkpoint(SessionLog):
    """One checkpoint."""

    agent: ClassVar[str | None] = "gemini-cli"

    def line(self, source: SourceObject) -> None:
        """An object with a list of contents, or one of them."""
        contents = GeminiContents(self.blocks)
        key = _list_of(source.values)
        if key:
            contents.read(source.objects(key))
            merge_extra(self.run.extra, source.rest())
        elif "parts" in source:
            contents.content(source)
        else:
            self.losses.unknown("record without parts")
            self.other(source)


class CheckpointReader(LogReader):
    """The format ``gemini_checkpoint``."""

    name = "gemini_checkpoint"
    title = "Checkpoints of Gemini CLI"
    recognised = "a list history or clientHistory of contents with parts, or such contents alone"
    versions = "reads checkpoint-<tag>.json of both forms, and the files below checkpoints/"
    log = Checkpoint

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """An object with a list of contents; a content by itself is only of the shape."""
        if _list_of(record):
            return Match.STAMP
        alone = set(record) == {"role", "parts"} and word(record, "role") in ("user", "model")
        return Match.SHAPE if alone and "type" not in first_item(record, "parts") else Match.NO


def _list_of(record: Mapping[str, Raw]) -> str:
    """The key of the list of contents; empty when there is none."""
    for key in _LISTS:
        first = first_item(record, key)
        if word(first, "role") in ("user", "model") and "parts" in first:
            return key
    return ""


CONVERTER = CheckpointReader()
