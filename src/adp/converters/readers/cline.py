"""Tasks of Cline and Roo Code: ``api_conversation_history.json`` and ``ui_messages.json``.

The first is a list of Anthropic messages, what the model saw; the second is what the user saw,
which becomes events.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.session import LogReader, SessionLog, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import UsageKeys, take_usage
from adp.converters.reading import NUMBER
from adp_schema import jsontext
from adp_schema.protocols import Match

USAGE = UsageKeys(
    prompt=("tokens.prompt",),
    written=("tokens.completion",),
    cached=("tokens.cached",),
    cost=("cost",),
)


class ClineTask(SessionLog):
    """One task."""

    agent: ClassVar[str | None] = "cline"
    handlers: ClassVar[Mapping[str, str]] = {"message": "message"}
    kept: ClassVar[frozenset[str]] = frozenset({"say", "ask"})
    time_keys: ClassVar[tuple[str, ...]] = ("ts",)

    def kind_of(self, source: SourceObject) -> str:
        """A message for the model, or one for the user."""
        return "message" if source.word("role") and "content" in source else source.word("type")

    def line(self, source: SourceObject) -> None:
        """A message keeps a type that it has beside its role."""
        if self.kind_of(source) == "message":
            self.message(source)
        else:
            super().line(source)

    def message(self, source: SourceObject) -> None:
        """A message by its role; results stand in those of the user."""
        role = source.word("role")
        if role in ("user", "assistant"):
            source.drop("role")
        content = source.take("content")
        draft = self.add_message(source, role, content, f"{source.path}.content")
        if isinstance(draft, StepDraft) and role == "assistant":
            self.set_model(draft, source.child("modelInfo").text("modelId"))
            take_usage(source, "metrics", draft.columns, USAGE)
        is_summary = source.first("isSummary") == ord("t")
        merge_extra(draft.extra, source.rest())
        if is_summary and isinstance(draft, StepDraft):
            self.run.summarised(draft)


class ClineReader(LogReader):
    """The format ``cline``."""

    name = "cline"
    title = "Tasks of Cline and Roo Code"
    recognised = "a list of messages with a ts or a modelInfo, or of what was said and asked"
    versions = "reads api_conversation_history.json and ui_messages.json"
    log = ClineTask

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A message for the model, with the keys of Cline; or one for the user."""
        is_timed = "ts" in record and jsontext.first_byte(record["ts"]) in NUMBER
        kind = word(record, "type")
        if is_timed and kind in ("say", "ask") and kind in record:
            return Match.STAMP
        if word(record, "role") in ("user", "assistant") and "content" in record:
            if "modelId" in inner(record, "modelInfo"):
                return Match.STAMP
            return Match.SHAPE if is_timed else Match.NO
        return Match.NO


CONVERTER = ClineReader()
