"""Progress of long work on a terminal."""

from __future__ import annotations

import io

import pytest

from adp.core.progress import ConsoleProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_work_in_several_parts_begins_a_bar_for_each(monkeypatch: pytest.MonkeyPatch):
    """The bar of the part before must not stay on the screen."""
    monkeypatch.setattr("sys.stderr", Terminal())
    bars = []
    with ConsoleProgress("working") as progress:
        for amount in (10, 20):
            progress.total(amount)
            progress.advance(amount)
            (task,) = progress._bar.tasks
            assert (task.total, task.completed) == (amount, amount)
            bars.append(progress._bar)
            assert [bar.live.is_started for bar in bars] == [False] * (len(bars) - 1) + [True]
    assert not bars[-1].live.is_started
