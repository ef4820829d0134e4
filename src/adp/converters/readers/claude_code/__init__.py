"""Sessions of Claude Code, versions 1.0 to 2.1: files on disk, and documents of ``loglines``.

A file is a session or one of its subagents (`identity`); its records make lines (`tree`), which
`session` reads. Sources: the files themselves; there is no specification.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from adp.converters.kit.session import LogReader, inner, word
from adp.converters.readers.claude_code.names import DISTINCT
from adp.converters.readers.claude_code.session import ClaudeSession
from adp.converters.reading import BRACKET
from adp_schema import jsontext
from adp_schema.protocols import Match


class ClaudeCodeReader(LogReader):
    """The format ``claude_code``."""

    name = "claude_code"
    title = "Sessions of Claude Code"
    recognised = "a record with a sessionId, a uuid and a type, or a document of loglines"
    versions = "reads versions 1.0 to 2.1, their subagents too"
    log = ClaudeSession

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """What a subagent is, beside its records."""
        folder, _, name = source_file.rpartition("/")
        if not name.startswith("agent-") or not name.endswith(".jsonl"):
            return ()
        return (f"{folder}{'/' if folder else ''}{name.removesuffix('.jsonl')}.meta.json",)

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A record of a session; without a session id only by its shape."""
        kind = word(record, "type")
        message = inner(record, "message")
        if "parts" in message or "systemPayload" in record:  # Qwen Code's, which are like these
            return Match.NO
        if session := word(record, "sessionId"):
            if kind in DISTINCT or (_CHAT & record.keys() and word(record, "uuid")):
                # iFlow writes the same records, with such ids.
                return Match.SHAPE if session.startswith("session-") else Match.STAMP
            return Match.SHAPE if message and {"uuid", "requestId"} & record.keys() else Match.NO
        if kind == "summary":
            return Match.STAMP if "leafUuid" in record else Match.NO
        if kind in ("file-history-snapshot", "file-history-delta"):
            return Match.STAMP if "messageId" in record else Match.NO
        if "loglines" in record:
            listed = jsontext.first_byte(record["loglines"]) == BRACKET
            return Match.STAMP if listed else Match.NO
        chat = kind in ("user", "assistant") and "content" in message and "timestamp" in record
        return Match.SHAPE if chat and "session_id" not in record else Match.NO


_CHAT = {"isSidechain", "userType", "attachment"}
"""Keys that one of is in every record of a chat."""

CONVERTER = ClaudeCodeReader()
