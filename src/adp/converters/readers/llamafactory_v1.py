"""Rows of LLaMA-Factory 1: messages of typed values, also as preference pairs.

A value is text, reasoning, a call as a string of JSON, or the address of an image. What both
messages of a pair begin with stands once; the rejected rest is a branch. Sources: its data since
version 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.chat import chat_message, free_text
from adp.converters.kit.drafts import ObservationDraft, TrajectoryDraft, emit
from adp.converters.kit.key_tables import take_tools
from adp.converters.kit.session import LogReader, SessionLog, first_item
from adp.converters.kit.source_object import SourceObject, embedded
from adp.converters.reading import BRACKET, QUOTE
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.protocols import Match

_SIDES = ("chosen_messages", "rejected_messages")
_KINDS = frozenset(
    {"text", "reasoning", "tool_call", "image_url", "video_url", "audio_url", "image", "video"}
)
_KEYS = frozenset({"role", "content", "loss_weight"})


class LlamaFactoryRow(SessionLog):
    """One row: a conversation, or two that differ at the end."""

    def read(self) -> None:
        """Read the row, and write its trajectories and the pair.

        Raises:
            RecordError: there are no messages.
        """
        for source, broken in self.sources():
            if broken:
                self.entry(source, broken)
                continue
            self.run = self.blocks.run = TrajectoryDraft()
            self.run.columns["source_id"] = source.name("id")
            take_tools(source, self.run.columns)
            if "messages" in source:
                self._messages(source.objects("messages"))
                self.run.extra.update(source.rest())
                emit(self.run, self.builder)
            else:
                self._pair(source)

    def _pair(self, source: SourceObject) -> None:
        chosen, rejected = (source.objects(key) for key in _SIDES)
        if not chosen:
            raise RecordError("there are no messages")
        common = _common(chosen, rejected)
        self._messages(chosen[:common])
        first = len(self.run.steps)
        self._messages(chosen[common:])
        last, main = len(self.run.steps), self.run
        main.extra.update(source.rest())
        main_id = emit(main, self.builder)
        if not rejected[common:]:
            return
        self.run = self.blocks.run = TrajectoryDraft()
        self._messages(rejected[common:])
        origin = {"parent_id": main_id, "parent_step": first, "branch_kind": "alternate"}
        branch_id, end = emit(self.run, self.builder, origin), first + len(self.run.steps)
        if first < last:
            self.builder.pair(
                {"pair_id": main_id, "context_id": main_id, "context_up_to": first,
                 "chosen_id": main_id, "chosen_from": first, "chosen_to": last,
                 "rejected_id": branch_id, "rejected_from": first, "rejected_to": end,
                 "level": "step" if last == end == first + 1 else "turn"}
            )  # fmt: skip

    def _messages(self, messages: Sequence[SourceObject]) -> None:
        for message in messages:
            self._message(message)

    def _message(self, message: SourceObject) -> None:
        weight = message.values.get("loss_weight")
        number = message.number("loss_weight")
        raw, blocks = message.values.get("content"), message.objects("content")
        if not blocks and raw is not None:
            message.values["content"] = raw
        draft = chat_message(message, self.blocks)
        if number is not None and not isinstance(draft, ObservationDraft):
            draft.columns["loss_weight"] = number
        elif weight is not None:
            draft.extra["loss_weight"] = weight
        for block in blocks:
            kind, value = block.word("type"), block.values.get("value")
            is_text = value is not None and jsontext.first_byte(value) == QUOTE
            if kind == "tool_call" and is_text and not isinstance(draft, ObservationDraft):
                draft.call(*self._call(block))
                continue
            if kind.endswith("_url") and is_text:
                block.values["url"] = block.values.pop("value")
                block.values["type"] = jsontext.raw(jsontext.text_of(kind.removesuffix("_url")))
            if isinstance(draft, ObservationDraft):
                self.blocks.part(block, draft.parts)
            else:
                self.blocks.block(block, draft)

    def _call(self, block: SourceObject) -> tuple[dict[str, object], dict[str, object]]:
        """A call whose value is a string of JSON; a text that is none is kept as its arguments."""
        text = block.text("value") or ""
        block.drop("type")
        call = embedded(text, block.path, self.losses)
        if not call or jsontext.has_mark(text):
            return free_text(call_columns(None, None, None), text), block.rest()
        columns = call_columns(call.text("name"), call.name("id"), call.take("arguments"))
        return columns, {**block.rest(), **call.rest()}


def _common(chosen: Sequence[SourceObject], rejected: Sequence[SourceObject]) -> int:
    """How many messages both begin with."""
    count = 0
    for pair in zip(chosen, rejected, strict=False):
        texts = [jsontext.one_line(jsontext.encode(message.values)) for message in pair]
        if texts[0] != texts[1]:
            break
        count += 1
    return count


class LlamaFactoryReader(LogReader):
    """The format ``llamafactory_v1``."""

    name = "llamafactory_v1"
    title = "Rows of LLaMA-Factory 1"
    container = "jsonl"
    recognised = "messages, or chosen_messages, whose content is a list of objects type and value"
    versions = "reads conversations and preference pairs"
    log = LlamaFactoryRow

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A message with nothing but role, typed values and a weight."""
        for key in ("messages", *_SIDES):
            message = first_item(record, key)
            raw = message.get("content")
            if raw is None or jsontext.first_byte(raw) != BRACKET or set(message) - _KEYS:
                continue
            block = first_item(message, "content")
            kind = block.get("type", Raw(b"null"))
            known = jsontext.first_byte(kind) == QUOTE and jsontext.decode_value(kind) in _KINDS
            if known and set(block) == {"type", "value"}:
                return Match.STAMP
        return Match.NO


CONVERTER = LlamaFactoryReader()
