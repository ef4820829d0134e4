"""The header of a Codex session: who ran where, what it continues, and what of it is copied."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from adp.converters.kit.drafts import TrajectoryDraft, merge_extra
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_start, time_of
from adp.converters.readers.codex.turns import rest_of
from adp_schema import extra_column
from adp_schema.builder import RowBuilder

_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
"""An id that begins with its time, so that ids sort by it."""
_COPY_TIME = timedelta(seconds=1)
"""Lines of the parent are copied within this time."""


def take_meta(
    run: TrajectoryDraft, line: SourceObject, meta: SourceObject, builder: RowBuilder
) -> None:
    """Fill the trajectory from the first header.

    Args:
        run: the trajectory.
        line: the line.
        meta: its payload; the line itself in early files.
        builder: takes media in texts.
    """
    columns = run.columns
    if name := meta.word("id"):
        columns["source_id"] = meta.text("id")
        columns["session_id"] = meta.text("session_id") or name
    take_start(meta, columns, "timestamp")
    columns["agent_version"] = meta.text("cli_version")
    if "trae" in meta.word("originator").lower():
        columns["agent_name"] = "trae"
    for key in ("base_instructions", "instructions"):
        inner = meta.child(key)
        text = inner.text("text") if inner else meta.text(key)
        if text:
            step = run.step("system", text=builder.text(text))
            step.extra["type"] = key
            if inner:
                step.extra.update(inner.rest())
                inner.drop(*list(inner.values))
    if meta.first("dynamic_tools") in (0x5B, 0x7B) and len(meta.values["dynamic_tools"]) > 2:
        columns["tools"], columns["tools_origin"] = meta.json("dynamic_tools"), "recorded"
    _link(run, meta)
    merge_extra(run.extra, rest_of(line))


def _link(run: TrajectoryDraft, meta: SourceObject) -> None:
    """Refer to the threads that this one comes from; the ids stay in the header, too."""
    fork = meta.word("forked_from_id") or meta.word("forked_from")
    if fork:
        run.link("fork", target_id=fork)
    spawn = meta.child("source").child("subagent").child("thread_spawn")
    parent = meta.word("parent_thread_id") or spawn.word("parent_thread_id")
    if parent:
        more: dict[str, Any] = {"target": "parent"}
        run.link("subagent", target_id=parent, extra=extra_column.pack(more))
    base = meta.child("history_base")
    if thread := base.word("thread_id"):
        kept = {key: raw for key, raw in base.values.items() if key != "thread_id"}
        run.link("continuation", target_id=thread, extra=extra_column.pack(kept))


class CopiedContext:
    """Which lines of a fork, or of a subagent's file, are copies of lines of its parent.

    Attributes:
        known: whether the header was there.
        last: what `holds` more about the line before.
    """

    def __init__(self) -> None:
        self.known = False
        self.last = False
        self._thread = ""
        self._parents: set[str] = set()
        self._start: int | None = None
        self._copying = False
        self._since: datetime | None = None

    def meta(self, line: SourceObject, meta: SourceObject) -> None:
        """Take a header; the copies begin at the second one when that is the parent's."""
        if not self.known:
            self.known = True
            self._thread = meta.word("id")
            self._start = meta.integer_at("subagent_history_start_ordinal")
            spawn = meta.child("source").child("subagent").child("thread_spawn")
            self._parents = {meta.word("forked_from_id"), meta.word("parent_thread_id"),
                             spawn.word("parent_thread_id")} - {""}  # fmt: skip
        elif meta.word("id") in self._parents and self._start is None:
            self._copying, self._since = True, time_of(line.values.get("timestamp"))[0]

    def holds(self, line: SourceObject, kind: str) -> bool:
        """Whether a line of a kind is a copy."""
        if kind == "session_meta":
            return self.known and line.child("payload").word("id") in self._parents
        if self._start is not None:
            ordinal = line.integer_at("ordinal")
            return ordinal is not None and ordinal < self._start
        if self._copying and self._is_own(kind, line):
            self._copying = False
        return self._copying

    def _is_own(self, kind: str, line: SourceObject) -> bool:
        """Whether a line begins what the thread itself has done."""
        payload = line.child("payload")
        if kind == "turn_context" or payload.word("type") in ("task_started", "turn_started"):
            turn = payload.word("turn_id")
            if _UUID7.fullmatch(turn) and _UUID7.fullmatch(self._thread):
                return turn[:13] >= self._thread[:13]
        time = time_of(line.values.get("timestamp"))[0]
        return time is not None and self._since is not None and time - self._since > _COPY_TIME
