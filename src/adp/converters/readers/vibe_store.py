"""Sessions of Mistral Vibe since 2.20: a folder of snapshots, with ``meta.json``.

The newest of ``generations/<number>/manifest.json`` lists files of ``chunks``: the messages that
the model sees, the entries that the user sees (see `vibe_entries`), and the tools. `vibe_journal`
has what the journal adds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import StepDraft, append_extra, merge_extra
from adp.converters.kit.key_tables import take_columns
from adp.converters.kit.session import LogReader, SessionLog
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_end, take_start, take_time
from adp.converters.kit.usage import UsageKeys, set_totals, take_usage
from adp.converters.readers.vibe_entries import answer_id, take_arguments, without, words
from adp.converters.readers.vibe_journal import VibeJournal
from adp_schema import jsontext
from adp_schema.protocols import Match

_KEYS = frozenset({"session_id", "child_sessions", "import_provenance", "origin_directory"})
"""Keys of ``meta.json`` in all versions."""
_OTHER_LAYOUT = frozenset({"stats", "total_messages", "system_prompt"})
"""Keys that it has only where ``messages.jsonl`` is beside it (see `mistral_vibe`)."""
_USAGE = UsageKeys(
    prompt=("input_tokens", "inputTokens"),
    written=("output_tokens", "outputTokens"),
    cached=("cached_input_tokens", "cachedInputTokens"),
)
_EXPORT = {
    "agent_version": "vibe_version",
    "total_cost_usd": "cost_usd",
    "stop_reason": "stop_reason",
    "error_message": "error",
}
"""Of ``export.json``, which ``vibe -p --output-dir`` writes beside a copy of the session."""


class VibeStore(SessionLog):
    """One session."""

    agent: ClassVar[str | None] = "mistral-vibe"

    def sources(self) -> Iterator[tuple[SourceObject, str]]:
        """What lies beside the file, and then the messages."""
        for source, broken in super().sources():
            if broken or "source_id" in self.run.columns:
                yield source, broken
                continue
            self._folder = self.record.source_file.rpartition("/")[0]
            self._used: set[str] = set()
            newest = self._newest()
            manifest = self._object(f"{newest}/manifest.json")
            self._about(source, newest)
            self._journal()
            self._entries = self._chunks(manifest, "projection_state")
            for chunk in self._chunks(manifest, "runtime_state"):
                self._tools(chunk)
            for message in self._chunks(manifest, "checkpoint"):
                yield message, ""
            for entry in self._entries:
                self.other(entry)
            self._unused()

    def _newest(self) -> str:
        """The folder of the newest snapshot."""
        folders = [path.rpartition("/")[0] for path in self.record.side_files
                   if path.endswith("/manifest.json")]  # fmt: skip
        newest = max(folders, key=lambda it: (len(it), it), default="generations/none")
        return newest.removeprefix(f"{self._folder}/" if self._folder else "")

    def _data(self, name: str) -> bytes:
        """The contents of a file of the folder; empty when it is not there."""
        path = f"{self._folder}/{name}" if self._folder else name
        self._used.add(path)
        data = self.record.side_files.get(path, b"")
        return data if jsontext.is_valid(data) else b""

    def _object(self, name: str) -> SourceObject:
        return SourceObject(self._data(name) or None, f"$side.{name}", self.losses)

    def _chunks(self, manifest: SourceObject, part: str) -> list[SourceObject]:
        """The objects of the chunks of a part, in order."""
        objects: list[SourceObject] = []
        for name in manifest.peek(part).words("chunks"):
            path = f"chunks/{name}.json"
            items = self._data(path)
            wrapped = b'{"items":%s}' % (items or b"[]")
            objects += SourceObject(wrapped, f"$side.{path}", self.losses).objects("items")
        return objects

    def _about(self, meta: SourceObject, newest: str) -> None:
        """What is known of the session."""
        columns, current = self.run.columns, self._object("CURRENT")
        columns["source_id"] = columns["session_id"] = meta.name("session_id")
        columns["source_version"] = current.text("store_format")
        take_start(meta, columns, "start_time")
        take_end(meta, columns, "end_time")
        settings = meta.child("config")
        columns["agent_model"] = settings.text("model_name", "active_model")
        if parent := meta.word("parent_session_id"):
            self.run.link("subagent", target_session_id=parent, extra='{"target":"parent"}')
        state = self._object(f"{newest}/projection-state.json")
        session = state.child("snapshot").child("session")
        set_totals(session.peek("tokenUsage"), columns, _USAGE)
        path = f"{self._folder.rpartition('session')[0]}export.json"
        export = SourceObject(self.record.side_files.get(path), f"$side.{path}", self.losses)
        self._used.add(path)
        take_columns(export, columns, _EXPORT)
        if export:
            self.run.extra["export"] = export.rest()
        merge_extra(self.run.extra, meta.rest())
        merge_extra(self.run.extra, {"current": current.rest(), "snapshot": state.rest()})

    def _journal(self) -> None:
        """The system prompt, and what each answer took."""
        journal = VibeJournal(self.record.side_files, self.losses)
        self._used |= journal.paths
        self._answers = journal.answers
        if journal.prompt is not None:
            step = self.run.step("system")
            self.blocks.content(journal.prompt.take("content"), step, journal.prompt.path)

    def _tools(self, chunk: SourceObject) -> None:
        """The tools on offer."""
        tools = [tool for group in chunk.objects("tool_groups") for tool in group.items("tools")]
        if tools:
            self.run.columns |= {
                "tools": jsontext.one_line(jsontext.raw(jsontext.text_of(tools))),
                "tools_origin": "recorded",
            }

    def line(self, source: SourceObject) -> None:
        """A message, by its role."""
        message = source.take_child("message")
        if not message:
            self.other(source)
            return
        role = message.word("role")
        if role == "tool":
            self._result(message, source)
            return
        agent = role == "assistant"
        step = self.run.step("agent" if agent else role, "llm_turn" if agent else "message")
        if role in ("assistant", "user", "system"):
            message.drop("role")
        if agent:
            self._answer(message, step)
        else:
            self.blocks.content(message.take("content"), step, f"{message.path}.content")
            entries = (it for it in self._entries if it.word("role") == role)
            self._timed(step, next(entries, None))
        merge_extra(step.extra, source.rest())
        merge_extra(step.extra, message.rest())

    def _answer(self, message: SourceObject, step: StepDraft) -> None:
        """A turn of the model, with the entries that have its texts."""
        for block in message.objects("content"):
            if block.word("type") == "tool_call" and block.peek("arguments"):
                raw = take_arguments(block.child("arguments"))
                block.drop("type")
                step.call(call_columns(block.text("name"), block.name("id"), raw), block.rest())
            elif block.word("type") == "reasoning" and block.first("content"):
                for part in block.objects("content"):
                    text = part.text("text")
                    part.drop_text("type", "text")
                    step.parts.reasoning(self.builder.text(text or ""), part.rest_lines())
                block.drop("type")
                merge_extra(step.extra, block.rest())
            else:
                self.blocks.block(block, step)
        texts = step.parts.columns()
        for kind, key in (("reasoning", "reasoning"), ("assistant", "text")):
            entry = next((it for it in self._entries if it.word("id").startswith(kind)), None)
            if entry is None or words(entry) != (texts.get(key) or ""):
                continue
            answer = self._answers.pop(answer_id(entry), None)
            if answer is not None:
                take_usage(answer, "usage", step.columns, _USAGE)
                step.columns["stop_reason"] = answer.text("finish_reason")
            self._timed(step, entry)

    def _timed(self, step: StepDraft, entry: SourceObject | None) -> None:
        """Take the entry of a step: it has the time."""
        if entry is None:
            return
        self._entries.remove(entry)
        if "timestamp" not in step.columns:
            step.columns["native_id"] = entry.name("id")
            take_time(entry, step.columns, "createdAt")
        append_extra(step.extra, "entries", without(entry, "content", "text"))

    def _result(self, message: SourceObject, source: SourceObject) -> None:
        message.drop("role")
        draft = self.run.observe(
            {"name": message.text("name")}, answers=message.name("tool_call_id")
        )
        outcome = message.word("outcome")
        draft.columns["is_error"] = None if outcome in ("", "success") else True
        self.blocks.result(message.take("content"), draft, f"{message.path}.content")
        entry = next((it for it in self._entries if it.word("type") == "effect"), None)
        if entry is not None:
            self._entries.remove(entry)
            take_time(entry, draft.columns, "updatedAt")
            draft.extra["entry"] = without(entry)
        merge_extra(draft.extra, source.rest())
        merge_extra(draft.extra, message.rest())

    def _unused(self) -> None:
        """Say which files are not kept: older snapshots, and what the program needs to go on."""
        for path in sorted(set(self.record.side_files) - self._used):
            self.losses.add(f"$side.{path}", "what the program needs to go on is not kept")


class VibeStoreReader(LogReader):
    """The format ``vibe_store``."""

    name = "vibe_store"
    title = "Sessions of Mistral Vibe since 2.20"
    recognised = "a meta.json with a session_id, child_sessions and an import_provenance"
    versions = "reads the newest snapshot of version 1 of the store, with its chunks and journal"
    log = VibeStore

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """The other files of the folder."""
        folder, slash, name = source_file.rpartition("/")
        if name != "meta.json":
            return ()
        names = ("CURRENT", "scheduled-loops.json", "chunks/*", "journal/*", "generations/**")
        export = (
            (f"{folder.removesuffix('session')}export.json",) if folder.endswith("session") else ()
        )
        return (*(f"{folder}{slash}{it}" for it in names), *export)

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """What is known of the session, where the messages are elsewhere."""
        known = set(record) >= _KEYS and _OTHER_LAYOUT.isdisjoint(record)
        return Match.STAMP if known else Match.NO


CONVERTER = VibeStoreReader()
