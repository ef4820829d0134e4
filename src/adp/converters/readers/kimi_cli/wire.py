"""What Kimi CLI recorded beside its messages: ``wire.jsonl`` has the times and the tokens.

Its events tell the same session again, as the program showed it. A step of it is found by its text
and its calls, a prompt by its text, both in their order.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any

from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time, time_of
from adp.converters.kit.usage import UsageKeys, take_usage
from adp.converters.reading import BRACKET
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.model import Columns

USAGE = UsageKeys(
    prompt=("input_other",),
    written=("output",),
    cached=("input_cache_read",),
    cache_write=("input_cache_creation",),
    apart=True,
)
_ALREADY_SAID = frozenset({"TurnBegin", "SteerInput", "StepBegin", "ContentPart", "ToolCall",
                   "ToolCallPart", "TurnEnd", "SubagentEvent"})  # fmt: skip
"""Events that say what the messages, or those of a subagent, say."""


@dataclass
class WireStep:
    """A step or a prompt of the recording.

    Attributes:
        text: its text.
        calls: ids of its calls.
        columns: what its step gets.
        extra: what no column holds.
        results: what came back, by the id of the call.
    """

    text: str = ""
    calls: list[str] = field(default_factory=list)
    columns: Columns = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    results: dict[str, SourceObject] = field(default_factory=dict)


class _InOrder:
    """Items that are found in their order, some of them never."""

    def __init__(self) -> None:
        self.items: list[WireStep] = []
        self.used = 0
        self._start = 0
        self._places: dict[tuple[str, ...], list[int]] | None = None

    def find(self, text: str, calls: list[str]) -> WireStep | None:
        """The first item of a text and calls after the one that was found before."""
        if self._places is None:
            self._places = {}
            for number, item in enumerate(self.items):
                self._places.setdefault((item.text, *item.calls), []).append(number)
        places = self._places.get((text, *calls), [])
        index = bisect_left(places, self._start)
        if index == len(places):
            return None
        self._start, self.used = places[index] + 1, self.used + 1
        return self.items[places[index]]


class Wire:
    """The recording of a session.

    Args:
        data: the file.
        path: its name.
        losses: takes what cannot be read.

    Attributes:
        trajectory: columns of the trajectory: when it began.
        others: events that say more than the messages.
    """

    def __init__(self, data: bytes, path: str, losses: Losses) -> None:
        self.trajectory: Columns = {}
        self.others: list[dict[str, Any]] = []
        self._prompts, self._steps = _InOrder(), _InOrder()
        for number, line in enumerate(data.splitlines()):
            if not line.strip():
                continue
            valid = jsontext.is_valid(line) and jsontext.depth(line) <= jsontext.MAX_DEPTH
            source = SourceObject(line if valid else None, f"$side.{path}[{number}]", losses)
            if source:
                self._event(source)
            else:
                losses.add(source.path, "the line is no JSON object")

    def _event(self, source: SourceObject) -> None:
        message = source.child("message")
        kind, payload = message.word("type"), message.child("payload")
        if kind and not self.trajectory:
            time, _, zoned = time_of(source.values.get("timestamp"))
            self.trajectory = {"started_at": time, "time_zone_known": zoned} if time else {}
        step = self._steps.items[-1] if self._steps.items else None
        if kind in ("TurnBegin", "SteerInput"):
            prompt = WireStep(text_of(payload, "user_input"))
            take_time(source, prompt.columns, "timestamp")
            self._prompts.items.append(prompt)
        elif kind == "StepBegin":
            step = WireStep()
            take_time(source, step.columns, "timestamp")
            self._steps.items.append(step)
        elif step is not None and kind == "ContentPart":
            step.text += payload.word("text") if payload.word("type") == "text" else ""
        elif step is not None and kind == "ToolCall":
            step.calls.append(payload.word("id"))
        elif step is not None and kind == "StatusUpdate" and payload.first("token_usage"):
            self._status(payload, step)
        elif step is not None and kind == "ToolResult" and payload.word("tool_call_id"):
            step.results[payload.word("tool_call_id")] = source
        elif kind not in _ALREADY_SAID:
            self.others.append(source.rest())

    def _status(self, payload: SourceObject, step: WireStep) -> None:
        """Tokens of a step; a later one of the same step has the final numbers."""
        take_usage(payload, "token_usage", step.columns, USAGE)
        step.columns["response_id"] = payload.text("message_id")
        step.extra = payload.rest()

    def prompt(self, text: str) -> WireStep | None:
        """The next prompt of a text."""
        return self._prompts.find(text, [])

    def step(self, text: str, calls: list[str]) -> WireStep | None:
        """The next step of a text and calls."""
        return self._steps.find(text, calls) if text or calls else None

    @property
    def unused(self) -> int:
        """How many steps no message was found for."""
        return len(self._steps.items) - self._steps.used


def text_of(source: SourceObject, key: str) -> str:
    """The text of a content, which is a text or a list of parts."""
    if source.first(key) != BRACKET:
        return source.word(key)
    parts = [
        SourceObject(it, key, source.losses) for it in jsontext.decode_array(source.values[key])
    ]
    return "".join(part.word("text") for part in parts if part.word("type") == "text")
