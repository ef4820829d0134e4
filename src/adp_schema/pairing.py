"""Pairing results with calls, when ids are missing, repeated, late or out of order."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
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
        self._waiting: dict[str, list[deque[OpenCall]]] = {}
        self._latest: dict[str, OpenCall] = {}
        self._unique: dict[str, int] = {}
        self._last_step: deque[OpenCall] = deque()

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
            earlier = self._latest.get(native)
            if earlier is not None:
                self._add_waiting(native, earlier, call)
            self._latest[native] = call
        if self._last_step and self._last_step[-1].step != step:
            self._last_step.clear()
        self._last_step.append(call)

    def _add_waiting(self, native: str, earlier: OpenCall, call: OpenCall) -> None:
        """Note a call with an id that another call has, too; most ids stand once."""
        steps = self._waiting.get(native)
        if steps is None:
            steps = self._waiting[native] = [deque([earlier])]
        if not steps or steps[-1][-1].step != call.step:
            steps.append(deque())
        steps[-1].append(call)

    def by_id(self, native: str) -> OpenCall | None:
        """The call that a result with this id answers.

        Of the unanswered ones the first of the latest step; when all are answered, the latest.
        """
        steps = self._waiting.get(native, [])
        while steps:
            _drop_answered(steps[-1])
            if steps[-1]:
                return steps[-1][0]
            steps.pop()
        return self._latest.get(native)

    def next_open(self, name: str | None) -> OpenCall | None:
        """The oldest unanswered call of the last calling step; of this name when one has it."""
        _drop_answered(self._last_step)
        waiting: Iterator[OpenCall] = (call for call in self._last_step if not call.answered)
        if name is not None:
            same = (call for call in self._last_step if not call.answered and call.name == name)
            waiting = itertools.chain(same, waiting)
        return next(waiting, None)


def _drop_answered(calls: deque[OpenCall]) -> None:
    """Forget the answered calls at the beginning: each is passed over once, not every time."""
    while calls and calls[0].answered:
        calls.popleft()
