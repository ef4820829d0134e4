"""What a local Hub does wrong on purpose."""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from dataclasses import dataclass

KINDS = ("429", "500", "503", "cut_request", "cut_response", "no_response", "reset")
"""Kinds of faults: a status; the connection ends while the request is read, while the answer is
sent, after the work was done and before the answer; or it is reset in the middle of the answer."""

RETRY_AFTER = 2
"""Seconds that a 429 asks to wait."""


@dataclass
class Fault:
    """A fault at the calls that a pattern finds.

    Attributes:
        pattern: found in ``METHOD /path``.
        kind: one of `KINDS`, another status, or ``slow``.
        times: how often it happens.
        skip: how many calls are answered well before.
        seconds: how long a slow answer takes.
        message: what is said with a status.
    """

    pattern: str
    kind: str
    times: int = 1
    skip: int = 0
    seconds: float = 0.2
    message: str = "injected"


class Plan:
    """Which call meets which fault."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.happened: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._seed: int | None = None
        self._share = 0.0
        self._most = 0
        self._row: Counter[str] = Counter()
        self._came: Counter[str] = Counter()

    def add(self, pattern: str, kind: str, **how: object) -> Fault:
        """Add a fault."""
        fault = Fault(pattern, kind, **how)  # type: ignore[arg-type]
        self.faults.append(fault)
        return fault

    def at_random(self, seed: int, share: float, most: int = 3) -> None:
        """Let a share of all calls fail, in kinds drawn from a seed.

        Args:
            seed: what the kinds and calls are drawn from.
            share: part of the calls that fail.
            most: how often in a row the same call fails.
        """
        self._seed, self._share, self._most = seed, share, most
        self._row.clear()
        self._came.clear()

    def clear(self) -> None:
        """Everything is well from now on."""
        self.faults.clear()
        self._seed = None

    def next(self, method: str, path: str) -> Fault | None:
        """The fault that a call meets, if any."""
        call = f"{method} {path}"
        with self._lock:
            result = self._planned(call) or self._drawn(call)
            if result is not None:
                self.happened[result.kind] += 1
            return result

    def _planned(self, call: str) -> Fault | None:
        for fault in self.faults:
            if fault.times and re.search(fault.pattern, call):
                if fault.skip:
                    fault.skip -= 1
                    continue
                fault.times -= 1
                return fault
        return None

    def _drawn(self, call: str) -> Fault | None:
        """The fault of a call: it follows from the seed, the path and how often that came.

        So it is the same whatever the threads of a client do. After `most` faults in a row the same
        call is answered well.
        """
        if self._seed is None:
            return None
        self._came[call] += 1
        draw = random.Random(f"{self._seed} {self._came[call]} {call}")
        if self._row[call] >= self._most or draw.random() >= self._share:
            self._row[call] = 0
            return None
        self._row[call] += 1
        return Fault(call, draw.choice(KINDS))
