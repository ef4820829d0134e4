"""Which session a file is, which agent of it, and which of its records come from another file.

How files belong together is known by their paths and by ids, never by the words of a message:

    <sid>.jsonl                                        source_id <sid>
    <sid>/subagents/.../agent-<id>.jsonl               source_id <sid>/agent-<id>
    <sid>/workflows/<run>.json                         source_id <sid>/workflow-<run>

A link from the call that started an agent has its ``source_id`` as ``target_id``, so links without
such a trajectory are those whose file is missing. Copies that only the other file tells of (old
sessions were resumed so) have equal ids: ``steps.native_id`` and ``tool_calls.call_id``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from msgspec import Raw

from adp.converters.kit.drafts import TrajectoryDraft
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.protocols import RawRecord

_CHATS = frozenset({"user", "assistant", "system", "attachment"})
_TRUE = 0x74


class Identity:
    """What a file is.

    Attributes:
        session: id of the session.
        agent_id: id of the subagent; empty for the session itself.
        is_agent: whether the file is that of a subagent.
        owner: session that the record at hand comes from, whose agents it speaks of.
    """

    def __init__(self, sources: Sequence[SourceObject], record: RawRecord) -> None:
        self._path = PurePosixPath(record.source_file)
        self._record = record
        stem = self._path.name.split(".")[0]
        chats = [it for it in sources if it.word("type") in _CHATS] or list(sources)
        agents = list(dict.fromkeys(it.word("agentId") for it in chats))
        self.is_agent = self._is_agent(stem, chats, agents)
        self.agent_id = ""
        if self.is_agent:
            self.agent_id = next((it for it in agents if it), "") or stem.split("agent-")[-1]
        ids = [self._session_of(it) for it in chats]
        ids = [it for it in ids if it] or [name for it in sources if (name := self._session_of(it))]
        by_path = self._folder("subagents") if self.is_agent else stem
        self._by_path = by_path in ids
        self.session = by_path if self._by_path else (ids[-1] if ids else self._folder("subagents"))
        self._originals = self._find_repeats(sources)
        self._origins: dict[str, str] = {}
        self.owner = self.session

    def _is_agent(self, stem: str, chats: Sequence[SourceObject], agents: list[str]) -> bool:
        """Whether all of a file is a subagent's; old sessions hold their agents between."""
        if "subagents" in self._path.parts and stem.startswith("agent-"):
            return True
        flagged = [it for it in chats if "isSidechain" in it]
        if not all(it.first("isSidechain") == _TRUE for it in flagged):
            return False
        return "agent-" in stem or (bool(flagged) and len(agents) == 1 and agents != [""])

    def _session_of(self, source: SourceObject) -> str:
        word = source.word("sessionId") or source.word("session_id")
        return word.split("#agent-")[0]

    def _folder(self, name: str) -> str:
        """The folder that holds the first folder of a name."""
        parts = self._path.parts
        return parts[parts.index(name) - 1] if name in parts[1:] else ""

    def _find_repeats(self, sources: Sequence[SourceObject]) -> set[int]:
        """Messages that stand in the file a second time, as a compaction writes what it keeps."""
        seen: dict[str, list[Raw | None]] = {}
        repeats: set[int] = set()
        for source in sources:
            name = source.word("uuid")
            if name and source.word("type") in ("user", "assistant"):
                message = source.values.get("message")
                known = seen.setdefault(name, [])
                if message in known:
                    repeats.add(id(source))
                known.append(message)
        return repeats

    @property
    def source_id(self) -> str | None:
        """``source_id`` of the file's trajectory."""
        if self.is_agent:
            return f"{self.session}/agent-{self.agent_id}" if self.session else None
        return self.session or None

    def describe(self, run: TrajectoryDraft) -> None:
        """Fill what is known of a trajectory before its records are read."""
        run.columns["source_id"] = self.source_id
        run.columns["session_id"] = self.session or None
        if not self.is_agent:
            return
        folders, depth = self._path.parts[:-1], 1
        for data in self._record.side_files.values():
            meta = jsontext.is_valid(data) and jsontext.first_byte(data) == BRACE
            run.extra["meta"] = Raw(data) if meta else data.decode("utf-8", "backslashreplace")
            if meta:
                depth = SourceObject(data, "meta", Losses()).integer_at("spawnDepth") or 1
        outer = [name for name in folders if name.startswith("agent-")]
        if "workflows" in folders[:-1]:
            run_id = folders[folders.index("workflows") + 1]
            run.extra["parent_source_id"] = f"{self.session}/workflow-{run_id}"
        elif outer:
            run.extra["parent_source_id"] = f"{self.session}/{outer[-1]}"
        elif depth <= 1:  # deeper ones lie in the same folder; only the link to them tells
            run.extra["parent_source_id"] = self.session

    def join(self, source: SourceObject, run: TrajectoryDraft) -> None:
        """Give a branch of a subagent its id: that which the link to it has."""
        if run.kind == "subagent" and "source_id" not in run.columns and self.session:
            name = source.word("agentId")
            if name:
                run.columns["source_id"] = f"{self.session}/agent-{name}"

    def is_repeated(self, source: SourceObject) -> bool:
        """Whether a message stands in the file a second time."""
        return id(source) in self._originals

    def is_copy(self, source: SourceObject) -> bool:
        """Whether a record was copied from another file, or from above in this one."""
        origin = ""
        if "forkedFrom" in source:
            origin = source.child("forkedFrom").word("sessionId") or source.word("forkedFrom")
        other = self._session_of(source)
        self.owner = origin or other or self.session
        if origin:
            self._origins.setdefault(origin, "fork")
            return True
        if self._by_path and other and other != self.session and not self.is_agent:
            self._origins.setdefault(other, "continuation")
            return True
        return id(source) in self._originals

    def target(self, outcome: SourceObject) -> str | None:
        """``source_id`` of the agent or the workflow that a call started."""
        if agent := outcome.word("agentId"):
            return f"{self.owner}/agent-{agent}"
        if (run := outcome.word("runId")) and (
            "transcriptDir" in outcome or "scriptPath" in outcome
        ):
            return f"{self.owner}/workflow-{run}"
        return None

    def link_origins(self, run: TrajectoryDraft) -> None:
        """Link the sessions that records were copied from."""
        for origin, kind in self._origins.items():
            run.link(
                kind,
                target_id=origin,
                target_session_id=origin,
                extra='{"direction": "from"}',
            )
