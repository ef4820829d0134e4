"""Records of Claude Code that are no messages of a person or the model: system and attachments."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.drafts import ObservationDraft, StepDraft, merge_extra
from adp.converters.kit.key_tables import take_columns
from adp.converters.kit.session import TreeLog
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.readers.claude_code.names import ATTACHMENTS, EDITS, SUBTYPES
from adp.converters.readers.claude_code.records import set_origin, words
from adp_schema.model import Columns


class ClaudeNotes(TreeLog):
    """What the harness writes into a session.

    Attributes:
        steps: uuid of a record -> its step.
        copied: whether the record at hand was copied from another place.
        prompts: system prompts that were read.
        retracted: uuids of records that later ones retract.
    """

    agent: ClassVar[str | None] = "claude-code"
    id_key: ClassVar[str] = "uuid"

    def set_up(self) -> None:
        """Make what joins the records."""
        self.steps: dict[str, StepDraft] = {}
        self.copied = False
        self.prompts: set[bytes] = set()
        self.retracted: set[str] = set()

    def begin_step(self, source: SourceObject, speaker: str, kind: str = "") -> StepDraft:
        """Add a step, which says when its record was copied."""
        step = super().begin_step(source, speaker, kind)
        if self.copied:
            step.columns["is_copied_context"] = True
        return step

    def system(self, source: SourceObject) -> None:
        """An edit of the context, or a note of the harness."""
        subtype = source.word("subtype")
        if subtype not in EDITS:
            if subtype not in SUBTYPES:
                self.losses.unknown(f"system subtype {subtype}")
            self._note(source)
            return
        step = self.context_edit(source, EDITS[subtype])
        for key in ("compactMetadata", "compact_metadata"):
            self._kept_range(source.child(key), step)
        step.extra.update(source.rest())

    def _note(self, source: SourceObject) -> None:
        self.retract(source, "retractedMessageUuids")
        columns: Columns = {"text": source.text("content")}
        take_time(source, columns, "timestamp")
        columns["duration_ms"] = source.number("durationMs")
        self.run.event(source, {**columns, "native_id": source.name("uuid")})

    def _kept_range(self, metadata: SourceObject, step: StepDraft) -> None:
        """The records that a compaction keeps as they are."""
        segment = metadata.child("preservedSegment")
        ends = (segment.word("headUuid"), segment.word("tailUuid"))
        if not ends[0]:
            names = words(metadata.child("preservedMessages").values.get("uuids"))
            ends = (names[0], names[-1]) if names else ends
        steps = self.run.steps
        head, tail = self.steps.get(ends[0]), self.steps.get(ends[1])
        places = {id(it): number for number, it in enumerate(steps)}
        if head is not None and tail is not None and {id(head), id(tail)} <= set(places):
            step.columns["edit_from"] = head
            step.columns["edit_to"] = steps[places[id(tail)] + 1]

    def add_summary(self, source: SourceObject, content: Raw | None) -> None:
        """The text that stands for what a compaction took away."""
        last = next((it for it in reversed(self.run.steps)
                     if it.columns["kind"] != "event"), None)  # fmt: skip
        if (
            last is None
            or last.columns["kind"] != "context_edit"
            or (last.columns.get("edit_summary") is not None)
        ):
            last = self.context_edit(source, "replace")
        draft = ObservationDraft()
        self.blocks.result(content, draft, f"{source.path}.message.content")
        columns = draft.parts.columns()
        last.columns["edit_summary"] = columns.pop("text", "")
        merge_extra(last.extra, {"summary": source.rest(), **columns})

    def attachment(self, source: SourceObject) -> None:
        """What the harness adds to a request; ``rendered`` is what the model saw of it."""
        inner = source.child("attachment")
        kind = inner.word("type")
        if kind not in ATTACHMENTS:
            self.losses.unknown(f"attachment type {kind or 'without a type'}")
        if kind == "prompt_snapshot":
            self._snapshot(source, inner)
            return
        rendered = source.objects("rendered")
        prompt = inner.take("prompt") if kind == "queued_command" and not rendered else None
        if not rendered and prompt is None:
            self.other(source)
            return
        role = source.word("renderedRole")
        step = self.begin_step(source, "system" if role == "system" else "user")
        if prompt is not None:
            self.blocks.content(prompt, step, f"{inner.path}.prompt")
            set_origin(inner, step.columns)
        else:
            step.columns["synthetic"] = True
        for item in rendered:
            self.blocks.content(item.take("content"), step, f"{item.path}.content")
        if any(rests := [item.rest() for item in rendered]):
            step.extra["rendered"] = rests
        step.extra.update(source.rest())

    def _snapshot(self, source: SourceObject, inner: SourceObject) -> None:
        """The system prompt and the tools of the requests that follow; it is often repeated."""
        tools = inner.json_list("tools")
        if tools is not None:
            known = self.run.columns.setdefault("tools", tools)
            self.run.columns["tools_origin"] = "recorded"
            if known != tools:
                inner.values["tools"] = Raw(tools.encode("utf-8"))
        prompt = inner.take("systemPrompt")
        if prompt is None or bytes(prompt) in self.prompts:
            self.other(source)
            return
        self.prompts.add(bytes(prompt))
        first = all(step.columns["kind"] == "event" for step in self.run.steps)
        step = self.begin_step(source, "system")
        if first:
            self.run.steps.insert(0, self.run.steps.pop())
        self.blocks.content(prompt, step, f"{inner.path}.systemPrompt")
        step.extra.update(source.rest())

    def continued(self, source: SourceObject) -> None:
        """The session goes on in another file."""
        target = source.word("continuedInSessionId")
        step = self.keep(source)
        if target:
            self.run.link("continuation", step, target_session_id=target, target_id=target)

    def cost(self, source: SourceObject) -> None:
        """What the session cost so far; the event keeps it, too."""
        take_columns(source.copy(), self.run.columns, {"total_cost_usd": "totalCostUSD"})
        self.keep(source)

    def retract(self, source: SourceObject, key: str) -> None:
        """Note the uuids of retracted or superseded records; the list stays in ``extra``."""
        self.retracted.update(words(source.values.get(key)))
