"""Pairing results with calls, when ids are missing, repeated, late or out of order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class OpenCall:
    """A call of the trajectory that is being built."""

    step: int
    index: int
    call_id: str | None
    native_id: str | None
    name: str | None
    answered: bool = False


class CallIndex:
    """The calls of one trajectory so far."""

    def __init__(self) -> None:
        self._by_native: dict[str, list[OpenCall]] = {}
        self._unique: Counter[str] = Counter()
        self._last_step: list[OpenCall] = []

    def unique_id(self, native: str) -> str:
        """An id that no call of the trajectory has yet: the given one, or with #2, #3."""
        if native not in self._unique:
            self._unique[native] = 1
            return native
        candidate = native
        while candidate in self._unique:
            self._unique[native] += 1
            candidate = f"{native}#{self._unique[native]}"
        self._unique[candidate] = 1
        return candidate

    def add(self, step: int, index: int, columns: dict[str, Any]) -> None:
        """Note a call."""
        call_id = columns.get("call_id")
        native = columns.get("native_id", call_id)
        call = OpenCall(step, index, call_id, native, columns.get("name"))
        if native is not None:
            self._by_native.setdefault(native, []).append(call)
        if not self._last_step or self._last_step[-1].step != step:
            self._last_step = []
        self._last_step.append(call)

    def by_id(self, native: str) -> OpenCall | None:
        """The call that a result with this id answers.

        Of the unanswered ones the first of the latest step; when all are answered, the latest.
        """
        calls = self._by_native.get(native)
        if not calls:
            return None
        if len(calls) == 1:
            return calls[0]
        waiting = [call for call in calls if not call.answered]
        if not waiting:
            return calls[-1]
        return next(call for call in waiting if call.step == waiting[-1].step)

    def next_open(self, name: str | None) -> OpenCall | None:
        """The oldest unanswered call of the last calling step; of this name when one has it."""
        waiting = [call for call in self._last_step if not call.answered]
        same_name = [call for call in waiting if name is not None and call.name == name]
        return next(iter(same_name or waiting), None)
