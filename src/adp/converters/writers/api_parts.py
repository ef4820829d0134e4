"""A part of a message or a result that is written, and what is said of rows that hold some."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from msgspec import Raw

from adp.converters.writing import string
from adp_schema.losses import Losses
from adp_schema.model import Media, Observation, Step, ToolCall, Trajectory


@dataclass(slots=True)
class ApiPart:
    """A part of a message or a result.

    Attributes:
        kind: text, reasoning, media, call or opaque.
        path: where it is.
        text: the words of a text or of reasoning.
        blob: the blob of media, with its type where it is used.
        call: the call.
        value: what an opaque part holds.
        extra: keys of the source's part that the format has, too.
    """

    kind: str
    path: str
    text: str = ""
    blob: Media | None = None
    call: ToolCall | None = None
    value: Raw = field(default_factory=Raw)
    extra: dict[str, Raw] = field(default_factory=dict)

    @property
    def words(self) -> str | Raw:
        """The text as the encoder takes it."""
        words: str | Raw = string(self.text)
        return words


def is_turn(row: Step | Observation) -> bool:
    """Whether a row is a turn of the model."""
    return isinstance(row, Step) and row.source == "agent"


def is_model_call(row: Step | Observation) -> bool:
    """Whether a row is a turn of this run; one that was copied into it is a message of another."""
    return isinstance(row, Step) and is_turn(row) and not row.is_copied_context


def name_of(call: ToolCall) -> str:
    """The name under which a call is written: of code without a name, its language."""
    if call.name is not None:
        return call.name
    return call.language or ("" if call.kind in (None, "function") else call.kind)


def reward_numbers(run: Trajectory, losses: Losses) -> dict[str, float]:
    """The named rewards of a run; what is no number is reported."""
    rewards = run.json_value("rewards")
    if rewards is not None and not isinstance(rewards, dict):
        losses.add("$.rewards", "they have no names")
    named = rewards if isinstance(rewards, dict) else {}
    numbers = {
        key: float(value)
        for key, value in named.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
    for key in named.keys() - numbers.keys():
        losses.add(f"$.rewards.{key}", "it is no number")
    return numbers
