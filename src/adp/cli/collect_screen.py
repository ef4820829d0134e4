"""What `adp collect` shows while it runs: one line on a terminal, a line now and then in a pipe."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adp.rollouts.collecting.counts import CollectReport

_PAUSE = {True: 0.2, False: 5.0}
"""Seconds between two lines, on a terminal and in a pipe."""


class CollectScreen:
    """Shows how far a run is, on stderr.

    Args:
        out: the store.
        quiet: show nothing.
    """

    def __init__(self, out: str, *, quiet: bool) -> None:
        self._out, self._quiet = out, quiet
        self._terminal = sys.stderr.isatty()
        self._last = time.monotonic()
        self._bar: Any = None
        self._report: CollectReport | None = None

    def __enter__(self) -> CollectScreen:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        report = self._report
        if kind is KeyboardInterrupt and not self._quiet and report is not None:
            done = report.asked - report.left
            text = f"{done:,} of {report.asked:,} episodes are in {self._out}"
            print(text, file=sys.stderr)

    def show(self, report: CollectReport) -> None:
        """Show the counts, but not too often."""
        self._report = report
        now = time.monotonic()
        if self._quiet or now - self._last < _PAUSE[self._terminal]:
            return
        self._last = now
        line = line_of(report)
        if not self._terminal:
            print(f"collecting: {line}", file=sys.stderr)
            return
        if self._bar is None:
            self._bar = _bar(report.asked)
        self._bar.update(0, completed=report.asked - report.left, line=line)


def _bar(total: int) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("collecting"), BarColumn(bar_width=20), TextColumn("{task.fields[line]}"))
    bar = Progress(*columns, console=Console(stderr=True, markup=False), transient=True)
    bar.add_task("collecting", total=total, line="")
    bar.start()
    return bar


def line_of(report: CollectReport) -> str:
    """The counts in one line."""
    done, full = report.asked - report.left, report.whole
    parts = [f"{done:,} of {report.asked:,} episodes"]
    if full.scored:
        parts.append(f"success {full.succeeded / full.scored:.1%}")
    parts.append(f"{report.now.episodes / max(report.seconds, 1e-9):,.1f} episodes/s")
    if report.now.tokens_out:
        parts.append(f"{report.now.tokens_out / max(report.seconds, 1e-9):,.0f} tokens/s")
    if report.failed:
        parts.append(f"{report.failed:,} broken")
    return ", ".join(parts)
