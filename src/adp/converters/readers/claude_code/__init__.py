"""Sessions of Claude Code, versions 1.0 to 2.1: files on disk, and documents of ``loglines``.

A file is a session or one of its subagents (`identity`); its records make lines (`tree`), which
`session` reads. Sources: the files themselves; there is no specification.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from adp.converters.kit.session import LogReader, inner, word
from adp.converters.readers.claude_code.names import DISTINCT
from adp.converters.readers.claude_code.session import ClaudeSession
from adp.converters.reading import BRACKET
from adp.converters.session_writers.names import NamedRun, cwd_of, session_uuid
from adp_schema import jsontext
from adp_schema.extra_column import unpack
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.protocols import Match


class ClaudeCodeReader(LogReader):
    """The format ``claude_code``."""

    name = "claude_code"
    title = "Sessions of Claude Code"
    recognised = "a record with a sessionId, a uuid and a type, or a document of loglines"
    versions = (
        "Reads versions 1.0 to 2.1, their subagents too. Writes what 2.1 resumes; it was tried "
        "with 2.1.197."
    )
    log = ClaudeSession

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> list[dict[str, Any]]:
        """Convert a trajectory, with the branches that left it, into the records of a file."""
        from adp.converters.readers.claude_code.write import ClaudeWriter

        return ClaudeWriter(trajectory, losses).lines()

    def embeds(self, branch: Trajectory) -> bool:
        """What left the main line stands in its file."""
        within = branch.branch_kind == "subagent" and branch.source_format == self.name
        return within or branch.branch_kind in ("alternate", "fork", "rewind")

    def session_file(self, run: NamedRun) -> str:
        """``<folder, encoded>/<session>.jsonl``, as in the folder ``projects``."""
        folder = re.sub(r"[^A-Za-z0-9]", "-", cwd_of(run.extra))
        return f"{folder}/{session_uuid(run)}.jsonl"

    def write_side_files(self, trajectory: Trajectory) -> dict[str, bytes]:
        """What a subagent is, in a file beside its own."""
        meta = unpack(trajectory.extra).fields.get("meta")
        names = self.side_files(trajectory.source_file or "")
        return {} if meta is None or not names else {names[0]: bytes(meta)}

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
        chat = kind in ("user", "assistant") and "content" in message
        if chat and "timestamp" not in record and "uuid" not in record:
            chat = word(message, "role") in (kind, "") and record.keys() <= _BARE
        return Match.SHAPE if chat and "session_id" not in record else Match.NO


_CHAT = {"isSidechain", "userType", "attachment"}
"""Keys that one of is in every record of a chat."""

_BARE = {"type", "message", "requestId"}
"""Keys of a record of which programs that pass it on left nothing but the message."""

CONVERTER = ClaudeCodeReader()
