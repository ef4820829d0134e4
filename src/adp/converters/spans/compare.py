"""Which messages of a prompt a run holds already, and what their repetition adds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import (
    CallDraft,
    ObservationDraft,
    StepDraft,
    TrajectoryDraft,
    merge_extra,
)
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE
from adp.converters.spans.messages import Group, Item
from adp_schema.losses import Losses

Key = tuple[Any, ...]
NOT_CAPTURED = "not captured"
"""The value of ``content`` in the extra of a step or a result that was not recorded."""


@dataclass(slots=True)
class Entry:
    """A message of a run, for comparison.

    Attributes:
        key: see `key_of`; None for an answer that was not recorded, which any answer may fill.
        item: the draft that holds it.
        run: the trajectory that the draft is in.
        place: number of steps up to it.
        seen: the forms in which it was written.
        edit: the edit of the context that holds it, instead of a step of its own.
    """

    key: Key | None
    item: Item
    run: TrajectoryDraft
    place: int
    seen: set[bytes] = field(default_factory=set)
    edit: StepDraft | None = None


@dataclass
class Track:
    """A run with all the messages that its last call of a model got and gave."""

    run: TrajectoryDraft
    entries: list[Entry] = field(default_factory=list)
    agent: str | None = None

    def place(self) -> int:
        """The number that the next step gets."""
        return (self.run.keeps or 0) + len(self.run.steps)


@dataclass(slots=True)
class PromptMessage:
    """A message of a prompt.

    Attributes:
        key: see `key_of`.
        group: what it was read from.
        known: what it stands for; None when it was not read, as most are known by their characters.
        read: reads the group.
        number: its place in the group.
    """

    key: Key
    group: Group
    known: Item | None
    read: Callable[[], list[Item]] = list
    number: int = 0

    @property
    def item(self) -> Item:
        """What it stands for."""
        if self.known is None:
            self.known = self.read()[self.number]
        return self.known


def common(entries: list[Entry], prompt: list[PromptMessage]) -> tuple[int, int]:
    """How many messages of a prompt a run begins with, and how many of its entries that are."""
    at = used = 0
    while at < len(entries):
        entry = entries[at]
        if used < len(prompt) and fits(entry, prompt[used]):
            used += 1
        elif used < len(prompt) and _is_late(entry, prompt[used]):
            used += 1
            continue
        elif entry.key is not None:
            break
        at += 1
    return used, at


def fits(entry: Entry, message: PromptMessage) -> bool:
    """Whether a message stands in the place of an entry."""
    if entry.key is None:
        return bool(message.key[0] == "agent")
    return message.key == entry.key


def _is_late(entry: Entry, message: PromptMessage) -> bool:
    """Whether a result stands between calls that call turn made at the same time."""
    return bool(
        message.key[0] == "result" and entry.key is not None and entry.key[0] == "agent"
        and entry.key[-1]
    )  # fmt: skip


def holder(entry: Entry) -> StepDraft | None:
    """The step that holds a message; that of a result is the one that it arrived after."""
    if isinstance(entry.item, StepDraft):
        return entry.item
    return next((it for it in entry.run.steps if entry.item in it.observations), None)


def form(group: Group) -> bytes:
    """The characters of a message, to know it again at no cost."""
    return b"\n".join(map(bytes, group))


def see(entry: Entry, message: PromptMessage) -> None:
    """Take what another form of a message says."""
    if form(message.group) in entry.seen:
        return
    entry.seen.add(form(message.group))
    if entry.edit is not None:
        entry.edit.extra.setdefault("repeated messages", []).extend(message.group)
    else:
        absorb(entry.item, message.item)


def absorb(kept: Item, again: Item) -> None:
    """Keep what the repetition of a message says beyond its first form."""
    merge_extra(kept.extra, again.extra)
    if again.parts.columns() and kept.extra.get("content") == NOT_CAPTURED:
        del kept.extra["content"]
    ours = {**kept.columns, **kept.parts.columns()}
    for name, value in {**again.columns, **again.parts.columns()}.items():
        if value is None or ours.get(name) == value or name in ("source", "kind"):
            continue
        if ours.get(name) is None and name != "content":
            kept.columns.setdefault(name, value)
        elif name == "text" and isinstance(kept, ObservationDraft):
            kept.columns["visible_text"] = value
        else:
            merge_extra(kept.extra, {f"repeated {name}": value})
    answers = again.answers if isinstance(again, ObservationDraft) else None
    if isinstance(kept, ObservationDraft) and answers not in (None, kept.answers):
        merge_extra(kept.extra, {"repeated call id": answers})
    if isinstance(kept, StepDraft) and isinstance(again, StepDraft):
        for call, again_call in zip(kept.calls, again.calls, strict=False):
            merge_extra(call.extra, again_call.extra)
            absorb_call(call, again_call)


def same_call(calls: list[CallDraft], other: CallDraft) -> CallDraft | None:
    """The call that another one repeats: by its id, or by its name where one has no id."""
    name, call_id = other.columns.get("name"), other.columns.get("call_id")
    for call in calls:
        known = call.columns.get("call_id")
        if known == call_id if known and call_id else call.columns.get("name") == name:
            return call
    return None


def absorb_call(call: CallDraft, repeated: CallDraft) -> None:
    """Keep what the repetition of a call says beyond its first form."""
    for name, value in repeated.columns.items():
        if value is None or call.columns.get(name) == value or name == "arguments_kind":
            continue
        text = repeated.columns.get("arguments_kind") == "json_string"
        if name != "arguments" or text or spelling(call.columns.get(name)) != spelling(value):
            merge_extra(call.extra, {f"repeated {name}": value})


def arguments_text(raw: Raw | None) -> str:
    """Arguments for comparison; some write them under a key ``input``."""
    source = SourceObject(raw, "$", Losses())
    if set(source.values) == {"input"} and source.first("input") == BRACE:
        raw = source.take("input")
    return spelling(call_columns(None, None, raw).get("arguments"))


def spelling(text: Any) -> str:
    """A text without its white space."""
    return "".join(str(text).split())
