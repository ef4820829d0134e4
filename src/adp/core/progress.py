"""Progress of long work: a bar on a terminal, plain lines when piped."""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from typing import Any

from adp_schema.protocols import Progress as Progress


class Silent:
    """Reports nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind."""

    def stop(self) -> None:
        """Stop nothing."""

    def note(self, message: str) -> None:
        """Say nothing."""

    def status(self, words: str) -> None:
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
        self._status = ""
        self._began = self._last = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> ConsoleProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Take the bar off the screen; the next report brings it back."""
        if self._bar is not None:
            self._bar.stop()
        self._bar, self._status = None, ""

    def note(self, message: str) -> None:
        """Print a line."""
        print(message, file=sys.stderr)

    def status(self, words: str) -> None:
        """Show words beside the bar; in a pipe they are a line, now or in place of the next one."""
        self._status = words
        if sys.stderr.isatty():
            if self._bar is None:
                self._show(None)
            self._bar.update(self._bar.task_ids[0], words=words)
        elif not self._total:
            print(f"{self._what}: {words}", file=sys.stderr)

    def total(self, amount: int) -> None:
        """Set the whole amount of this part; on a terminal the bar appears anew."""
        self.stop()
        self._total, self._done = amount, 0
        self._began = self._last = time.monotonic()
        if sys.stderr.isatty():
            self._show(amount)

    def _show(self, amount: int | None) -> None:
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (
            TextColumn(self._what),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[words]}"),
        )
        self._bar = Bar(*columns, console=RichConsole(stderr=True), transient=True)
        self._bar.add_task(self._what, total=amount, words="")
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
            words = [self._status or f"{share:.0%}{text}"]
            if 0 < share < 1:
                left = (self._last - self._began) * (1 - share) / share
                words.append(f"{timedelta(seconds=round(left))} left")
            print(f"{self._what}: {', '.join(words)}", file=sys.stderr)
