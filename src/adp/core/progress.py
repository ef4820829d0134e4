"""Progress of long work: a bar on a terminal, plain lines when piped."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Protocol


class Progress(Protocol):
    """What long-running library functions report to."""

    def note(self, message: str) -> None:
        """Say something once."""
        ...

    def total(self, amount: int) -> None:
        """Say how much there is to do, in bytes or items."""
        ...

    def advance(self, amount: int) -> None:
        """Say that a part is done."""
        ...


class Silent:
    """Reports nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave nothing behind."""

    def note(self, message: str) -> None:
        """Say nothing."""

    def total(self, amount: int) -> None:
        """Note nothing."""

    def advance(self, amount: int) -> None:
        """Note nothing."""


class ConsoleProgress:
    """Reports on stderr: a bar on a terminal, else a line every few seconds.

    Args:
        what: what is being done, such as ``"converting"``.
        unit: ``"bytes"`` or the name of the items; empty when it is not always the same.
    """

    _PAUSE = 5.0

    def __init__(self, what: str, unit: str = "bytes") -> None:
        self._what = what
        self._unit = unit
        self._done = 0
        self._total = 0
        self._last = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> ConsoleProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def note(self, message: str) -> None:
        """Print a line."""
        print(message, file=sys.stderr)

    def total(self, amount: int) -> None:
        """Set the whole amount of this part; on a terminal the bar appears anew."""
        self._total, self._done = amount, 0
        if self._bar is not None:
            self._bar.stop()
        if sys.stderr.isatty():
            from rich.console import Console as RichConsole
            from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (
                TextColumn(self._what),
                BarColumn(),
                TaskProgressColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Bar(*columns, console=RichConsole(stderr=True), transient=True)
            self._bar.add_task(self._what, total=amount)
            self._bar.start()

    def advance(self, amount: int) -> None:
        """Move on."""
        self._done += amount
        if self._bar is not None:
            self._bar.advance(self._bar.task_ids[0], amount)
        elif time.monotonic() - self._last >= self._PAUSE:
            self._last = time.monotonic()
            share = self._done / self._total if self._total else 0.0
            text = f" of {self._total:,} {self._unit}" if self._unit else ""
            print(f"{self._what}: {share:.0%}{text}", file=sys.stderr)
