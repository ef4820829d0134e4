"""Tasks of Cline and Roo Code: ``api_conversation_history.json`` and ``ui_messages.json``.

The first is a list of Anthropic messages, what the model saw; the second is what the user saw,
with the tokens of each request (see `cline_ui`). Calls are blocks, or tags in the text (see
`cline_calls`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from msgspec import Raw

from adp.converters.kit.drafts import StepDraft, merge_extra
from adp.converters.kit.key_tables import take_columns
from adp.converters.kit.media_blocks import take_references
from adp.converters.kit.session import LogReader, SessionLog, first_item, inner, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import UsageKeys, add_totals, take_usage
from adp.converters.readers.cline_calls import add_calls, take_results
from adp.converters.readers.cline_ui import (
    PROMPTS,
    REQUEST,
    TEXTS,
    ClineRequest,
    assign,
    entries_of,
    request_of,
)
from adp.converters.reading import BRACKET, NUMBER
from adp_schema import jsontext
from adp_schema.model import Columns
from adp_schema.protocols import Match

USAGE = UsageKeys(
    prompt=("tokens.prompt",),
    written=("tokens.completion",),
    cached=("tokens.cached",),
    cost=("cost",),
)

UI = "ui_messages.json"
TOTALS = {
    "total_tokens_in": "tokensIn",
    "total_tokens_out": "tokensOut",
    "total_cost_usd": "totalCost",
}
"""Of ``history_item.json``, as Roo Code keeps it beside a conversation."""


class ClineTask(SessionLog):
    """One task.

    Attributes:
        usage: where a message has its tokens.
        model_key: key of the model's name in ``modelInfo``.
    """

    agent: ClassVar[str | None] = "cline"
    handlers: ClassVar[Mapping[str, str]] = {"message": "message"}
    kept: ClassVar[frozenset[str]] = frozenset({"say", "ask", "reasoning", "task_started"})
    time_keys: ClassVar[tuple[str, ...]] = ("ts",)
    usage: ClassVar[UsageKeys] = USAGE
    model_key: ClassVar[str] = "modelId"

    def set_up(self) -> None:
        """Make what joins requests to turns."""
        self._turns: list[tuple[StepDraft, int | None, int]] = []
        self._messages = 0
        self._request: StepDraft | None = None
        self._has_prompt = False

    def finish(self) -> None:
        """What lies beside the conversation: its models, and what the task and its turns took."""
        columns = self.run.columns
        sides = dict(self.record.side_files)
        seen = {path: sides.pop(path) for path in [*sides] if path.rpartition("/")[2] == UI}
        self.record = replace(self.record, side_files=sides)
        for path, source in self.side_objects():
            for used in source.copy().objects("model_usage"):
                columns["agent_model"] = columns.get("agent_model") or used.text("model_id")
            if "tokensIn" in source:
                columns["source_id"] = columns["session_id"] = source.name("id")
                take_columns(source, columns, TOTALS)
            self.run.extra[path.rpartition("/")[2]] = source.rest()
        for path, data in seen.items():
            self._add_seen(data, path)

    def _add_seen(self, data: bytes, path: str) -> None:
        """What the user saw of the conversation, as events; the tokens go to the turns."""
        requests: list[ClineRequest] = []
        count = len(self.run.steps)
        for source in entries_of(data, self.losses):
            if request := request_of(source, self.losses):
                requests.append(request)
            self.other(source)
            self.run.steps[-1].columns["visibility"] = "user"
        if len(self.run.steps) == count:
            self.losses.add(f"$side.{path}", "it holds no entry")
        if assign(requests, self._turns):
            sums: Columns = {}
            for request in requests:
                for column, number in request.columns.items():
                    if column != "usage":
                        sums[column] = sums.get(column, 0) + number
            totals: Columns = {}
            add_totals(sums, totals)
            self.run.columns |= {**totals, **self.run.columns}

    def _entry(self, source: SourceObject) -> bool:
        """Take an entry of what the user saw, without a conversation; False keeps it as it is."""
        kind = source.word("say") if source.word("type") == "say" else ""
        if kind == REQUEST:
            self._request = self.begin_step(source, "agent")
            request = request_of(source, self.losses)
            if request is not None:
                self._request.columns |= request.columns
            self._request.extra.update(source.rest())
            return True
        if source.first("partial") == ord("t") or kind not in TEXTS | PROMPTS:
            return False
        prompt = kind in PROMPTS or (kind == "text" and not self._has_prompt)
        if self._request is None and not prompt:
            return False
        self._has_prompt = self._has_prompt or prompt
        step = self._request
        if prompt or step is None:
            self._request = None
            step = self.begin_step(source, "user")
        add = self.blocks.take_reasoning if kind == "reasoning" else self.blocks.take_text
        add(source, step.parts, "text")
        for image in take_references(source, "images"):
            self.blocks.reference(image, step.parts, {}, None)
        merge_extra(step.extra, source.rest())
        return True

    def kind_of(self, source: SourceObject) -> str:
        """A message for the model, or one for the user."""
        return "message" if source.word("role") and "content" in source else source.word("type")

    def line(self, source: SourceObject) -> None:
        """A message keeps a type that it has beside its role."""
        if self.kind_of(source) == "message":
            self.message(source)
            self._messages += 1
        elif not self._entry(source):
            super().line(source)

    def message(self, source: SourceObject) -> None:
        """A message by its role; results stand in those of the user."""
        role, time = source.word("role"), source.integer_at("ts")
        if role in ("user", "assistant"):
            source.drop("role")
        content = source.take("content")
        if role == "user" and content is not None and self._has_calls(content):
            blocks, result = take_results(self, source, jsontext.decode_array(content))
            if result is not None and not blocks:
                source.drop(*self.time_keys)
                merge_extra(result.extra, source.rest())
                return
            content = jsontext.raw(jsontext.text_of(blocks))
        draft = self.add_message(source, role, content, f"{source.path}.content")
        if isinstance(draft, StepDraft) and role == "assistant":
            self.set_model(draft, source.child("modelInfo").text(self.model_key))
            take_usage(source, "metrics", draft.columns, self.usage)
            add_calls(draft)
            self._turns.append((draft, time, self._messages))
        is_summary = source.first("isSummary") == ord("t")
        merge_extra(draft.extra, source.rest())
        if is_summary and isinstance(draft, StepDraft):
            self.run.summarised(draft)

    def _has_calls(self, content: Raw) -> bool:
        """Whether a list of blocks follows calls that are in the text."""
        turns = (step for step in reversed(self.run.steps) if step.columns["kind"] == "llm_turn")
        calls = next((step.calls for step in turns), [])
        is_open = any(call.columns.get("origin") == "parsed_from_text" for call in calls)
        return is_open and jsontext.first_byte(content) == BRACKET


class ClineReader(LogReader):
    """The format ``cline``."""

    name = "cline"
    title = "Tasks of Cline and Roo Code"
    recognised = "messages with a ts, a modelInfo or a <task>, or what was said and asked"
    versions = (
        "reads api_conversation_history.json, also with calls as tags, what lies beside it, and "
        "ui_messages.json"
    )
    log = ClineTask

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """What is kept beside a conversation."""
        folder, slash, name = source_file.rpartition("/")
        if name != "api_conversation_history.json":
            return ()
        names = ("task_metadata.json", "history_item.json", UI)
        return tuple(f"{folder}{slash}{it}" for it in names)

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A message for the model, with the keys of Cline; or one for the user."""
        is_timed = "ts" in record and jsontext.first_byte(record["ts"]) in NUMBER
        kind = word(record, "type")
        if is_timed and kind in ("say", "ask") and kind in record:
            return Match.STAMP
        if word(record, "role") in ("user", "assistant") and "content" in record:
            if "modelId" in inner(record, "modelInfo"):
                return Match.STAMP
            begins = word(first_item(record, "content"), "text").startswith(_BEGINS)
            return Match.STAMP if begins else _shape(is_timed)
        return Match.NO


_BEGINS = ("<task>\n", "<environment_details>\n", "<user_message>\n")
"""Begins of texts in messages of the user; the first message has one."""


def _shape(holds: object) -> Match:
    return Match.SHAPE if holds else Match.NO


CONVERTER = ClineReader()
