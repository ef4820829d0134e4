"""What `adp collect` shows while it runs: one line on a terminal, a line now and then in a pipe."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from adp.cli.text import progress_bar

if TYPE_CHECKING:
    from adp.rollouts.collecting.counts import CollectReport


class CollectScreen:
    """Shows how far a run is, on stderr.

    Args:
        out: the store.
        quiet: show nothing.
    """

    def __init__(self, out: str, *, quiet: bool) -> None:
        self._out, self._quiet = out, quiet
        self._progress = progress_bar("collecting", "episodes", quiet=quiet)
        self._report: CollectReport | None = None
        self._left = 0

    def __enter__(self) -> CollectScreen:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._progress.stop()
        report = self._report
        if kind is KeyboardInterrupt and not self._quiet and report is not None:
            done = report.asked - report.left
            text = f"{done:,} of {report.asked:,} episodes are in {self._out}"
            print(text, file=sys.stderr)

    def show(self, report: CollectReport) -> None:
        """Show the counts of a run that goes on."""
        if self._report is None:
            self._left = report.asked - report.done_before
            self._progress.total(self._left)
        self._report = report
        self._progress.status(line_of(report))
        self._progress.advance(self._left - report.left)
        self._left = report.left


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
