"""Histories that a compaction of a Codex log repeats: each item of them is stored once."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from msgspec import Raw

from adp.converters.kit.drafts import ObservationDraft, StepDraft, TrajectoryDraft
from adp.converters.kit.source_object import SourceObject
from adp.converters.readers.codex.repeated_items import block_texts

_VARYING = ("id", "metadata", "internal_chat_message_metadata_passthrough")
"""Keys of an item that may differ between the item and its repetition."""


class History:
    """The items that the log has had, and where in the rows they are.

    A place in the rows is ``{"step": 4}``; ``item`` is the number of the item in that step (in
    the ``replacement_history`` of a context edit), and ``observation`` that of the result after it.
    """

    def __init__(self, run: TrajectoryDraft) -> None:
        self.wanted = False
        self._run = run
        self._known: dict[bytes, tuple[dict[str, Any], dict[str, Raw]]] = {}
        self._counts: dict[int, int] = {}

    def key(self, item: SourceObject) -> tuple[bytes, dict[str, Raw]] | None:
        """What an item is known by, before it is taken apart; None where no history repeats it."""
        if not self.wanted:
            return None
        digest = blake2b(digest_size=16)
        for name, raw in sorted(item.values.items()):
            if name not in _VARYING:
                digest.update(name.encode("utf-8", "surrogatepass") + b"\0" + bytes(raw) + b"\0")
        return digest.digest(), {name: item.values[name] for name in _VARYING if name in item}

    def put(
        self,
        key: tuple[bytes, dict[str, Raw]] | None,
        step: StepDraft,
        observation: ObservationDraft | None = None,
    ) -> None:
        """Note where an item has gone."""
        if key is None:
            return
        place: dict[str, Any] = {"step": self._number(step)}
        if observation is not None:
            place["observation"] = len(step.observations) - 1
        elif step.columns["source"] == "agent":
            count = self._counts[place["step"]] = self._counts.get(place["step"], -1) + 1
            place["item"] = count
        self._known.setdefault(key[0], (place, key[1]))

    def _number(self, step: StepDraft) -> int:
        steps = self._run.steps
        return next(n for n in range(len(steps) - 1, -1, -1) if steps[n] is step)

    def replace(self, items: list[SourceObject], step: StepDraft) -> None:
        """Put a history into a context edit: places for what is there already, and what is new."""
        entries: list[Any] = []
        number = self._number(step)
        places = []
        for index, item in enumerate(items):
            found_key = self.key(item)
            if found_key is None:
                entries.append(item.rest())
                continue
            digest, more = found_key
            known = self._known.get(digest)
            if known is None:
                self._known[digest] = {"step": number, "item": index}, more
                entries.append(item.rest())
            else:
                place, before = known
                others = {key: raw for key, raw in more.items()
                          if key not in before or bytes(before[key]) != bytes(raw)}  # fmt: skip
                absent = [key for key in before if key not in more]
                entries.append({**place, **others, **({"absent": absent} if absent else {})})
            places.append(None if known is None else known[0])
        self._summarise(items, places, step)
        if entries:
            step.extra["replacement_history"] = entries
        kept = [place["step"] for place in places if place is not None and len(place) == 1]
        if kept and len(kept) == len(places) and kept == list(range(kept[0], kept[0] + len(kept))):
            step.columns["edit_from"] = self._run.steps[kept[0]]
            step.columns["edit_to"] = self._run.steps[kept[-1] + 1]

    def _summarise(self, items: list[SourceObject], places: list[Any], step: StepDraft) -> None:
        """The last message of the new history, when it is new, is the summary of the rest."""
        if step.columns.get("edit_summary") or not items or places[-1] is not None:
            return
        item = items[-1]
        raw = item.values.get("content")
        if item.word("type") == "message" and raw is not None:
            texts = block_texts(raw)
            if len(texts) == 1:
                step.columns["edit_summary"] = texts[0]
