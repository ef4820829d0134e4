"""Ticks of a voice simulation of tau2-bench: what both sides say and call in a fifth of a second.

The speech of one side is one step until the other side speaks or a tool is called.
"""

from __future__ import annotations

from typing import Any

from adp.converters.kit.blocks import BlockReader
from adp.converters.kit.chat import take_calls
from adp.converters.kit.drafts import StepDraft
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time, time_of
from adp.converters.reading import QUOTE
from adp_schema import jsontext

SIDES = ("agent", "user")


class TickReader:
    """Reads ticks into the trajectory of a block reader.

    Args:
        blocks: reads calls, and has the trajectory.
    """

    def __init__(self, blocks: BlockReader) -> None:
        self.blocks = blocks
        self._side = ""
        self._step: StepDraft | None = None
        self._pieces: list[str] = []
        self._utterances: set[str] = set()

    def speech(self, chunk: SourceObject, side: str) -> None:
        """Add what a side says in a tick; sound that stands in the place of words stays.

        Args:
            chunk: the message of the tick.
            side: agent or user.
        """
        if not chunk.word("content") or bytes(chunk.values.get("is_audio", b"")) == b"true":
            return
        text = chunk.text("content") or ""
        items = SourceObject(None, chunk.path, chunk.losses)
        items.values.update(chunk.values)
        ids = {jsontext.decode_value(it) for it in items.items("utterance_ids")
               if jsontext.first_byte(it) == QUOTE}  # fmt: skip
        if self._side != side:
            self.end()
            self._side, self._step = side, self._begin(side)
            take_time(chunk, self._step.columns, "timestamp")
        elif ids and self._utterances and ids.isdisjoint(self._utterances):
            text = f" {text}"
        self._utterances = ids
        self._pieces.append(text)

    def calls(self, tick: SourceObject, side: str) -> None:
        """Add what a side calls in a tick, as a step of its own.

        Args:
            tick: the tick; its time stays.
            side: agent or user.
        """
        items = tick.items(f"{side}_tool_calls")
        if not items:
            return
        self.end()
        step = self._begin(side)
        time, _, is_zoned = time_of(tick.values.get("timestamp"))
        if time is not None:
            step.columns |= {"timestamp": time, "timestamp_zone_known": is_zoned}
        message = SourceObject(None, tick.path, tick.losses)
        message.values["tool_calls"] = jsontext.raw(jsontext.text_of(items))
        take_calls(message, step, self.blocks)
        step.extra.update(message.rest())

    def end(self) -> None:
        """The speech at hand is over."""
        if self._step is not None:
            self._step.parts.text(self.blocks.builder.text("".join(self._pieces)))
        self._side, self._step, self._pieces, self._utterances = "", None, [], set()

    def _begin(self, side: str) -> StepDraft:
        return self.blocks.run.step(side, "llm_turn" if side == "agent" else "message")


def rest_of(ticks: list[SourceObject]) -> list[dict[str, Any]]:
    """The keys of the ticks that no column took, in order; an empty list when there is none."""
    rests = [tick.rest() for tick in ticks]
    return rests if any(rests) else []
