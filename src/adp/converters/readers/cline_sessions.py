"""Sessions of the Cline CLI since version 3: ``ID.messages.json``, with ``ID.json`` beside it.

A document with the system prompt and the messages, which are those of older tasks (see `cline`)
with other names of the model and of the tokens. A subagent has a document of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.drafts import merge_extra
from adp.converters.kit.key_tables import take_columns
from adp.converters.kit.session import LogReader, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import UsageKeys, set_totals
from adp.converters.readers.cline import ClineTask
from adp.converters.reading import BRACKET
from adp_schema import jsontext
from adp_schema.protocols import Match

USAGE = UsageKeys(
    prompt=("inputTokens",),
    written=("outputTokens",),
    cached=("cacheReadTokens",),
    cache_write=("cacheWriteTokens",),
    cost=("cost", "totalCost"),
)
_BLOCK_KEYS = {"type", "text"}
_SESSION = {
    "started_at": "started_at",
    "ended_at": "ended_at",
    "agent_model": "model",
    "stop_reason": "status",
}


class ClineSession(ClineTask):
    """One session."""

    usage: ClassVar[UsageKeys] = USAGE
    model_key: ClassVar[str] = "id"

    def sources(self) -> Iterator[tuple[SourceObject, str]]:
        """The messages; the first line of a file joined of several documents is not the last."""
        for source, broken in super().sources():
            if broken or source.first("messages") != BRACKET:
                yield source, broken
                continue
            messages = source.objects("messages")
            self._about(source)
            for message in messages:
                yield message, ""

    def _about(self, source: SourceObject) -> None:
        """What a document says about its session."""
        columns, origin = self.run.columns, source.child("origin")
        columns["source_version"] = source.name("version")
        columns["source_id"] = columns["session_id"] = source.name("sessionId")
        columns["agent_version"] = origin.text("version")
        if origin.word("sessionId") == columns["source_id"]:
            origin.drop("sessionId")
        if (prompt := source.text("system_prompt")) is not None:
            self.run.step("system").parts.text(self.builder.text(prompt))
        self.run.extra.update(source.rest())

    def message(self, source: SourceObject) -> None:
        """A message, which has an id here."""
        native_id = source.name("id")
        before = len(self.run.steps)
        content = source.values.get("content")
        if content is not None and source.word("role") == "user":
            source.values["content"] = with_results(content)
        super().message(source)
        if len(self.run.steps) == before:
            if native_id is not None:
                merge_extra(self.run.observations[-1].extra, {"id": native_id})
            return
        self.run.steps[before].columns["native_id"] = native_id

    def finish(self) -> None:
        """What lies beside the messages."""
        columns = self.run.columns
        for _, source in self.side_objects():
            self.run.constant(source, "version")
            if source.word("session_id") == columns.get("session_id"):
                source.drop("session_id")
            take_columns(source, columns, _SESSION)
            metadata = source.child("metadata")
            set_totals(metadata.peek("usage"), columns, USAGE)
            self.run.extra["session"] = source.rest()


def with_results(content: Raw) -> Raw:
    """The content of a message, where each result of a tool is a block of text.

    The CLI writes ``query``, ``result``, ``error`` and ``success`` for each command or file.
    """
    if b'"success"' not in bytes(content) or jsontext.first_byte(content) != BRACKET:
        return content
    blocks = jsontext.decode_value(content)
    for block in blocks:
        items = block.get("content") if isinstance(block, dict) else None
        if not isinstance(items, list):
            continue
        for number, item in enumerate(items):
            if not isinstance(item, dict) or "success" not in item or _BLOCK_KEYS & item.keys():
                continue
            key = "error" if item.get("error") and not item.get("result") else "result"
            if isinstance(item.get(key), str):
                rest = {name: value for name, value in item.items() if name != key}
                items[number] = {"type": "text", "text": item[key], **rest}
            if item["success"] is False:
                block.setdefault("is_error", True)
    return jsontext.raw(jsontext.text_of(blocks))


class ClineSessionReader(LogReader):
    """The format ``cline_sessions``."""

    name = "cline_sessions"
    title = "Sessions of the Cline CLI"
    recognised = "messages beside a sessionId, a version and an agent"
    versions = "reads ID.messages.json of version 3, with ID.json beside it"
    log = ClineSession

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """What is known of the session."""
        stem = source_file.removesuffix(".messages.json")
        return (f"{stem}.json",) if stem != source_file else ()

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A document of messages with the words of the CLI."""
        known = {"messages", "sessionId", "version", "agent"} <= set(record)
        if not known or not word(record, "agent"):
            return Match.NO
        has_origin = "system_prompt" in record or "source" in inner(record, "origin")
        is_list = jsontext.first_byte(record["messages"]) == BRACKET
        return Match.STAMP if has_origin and is_list else Match.NO


CONVERTER = ClineSessionReader()
