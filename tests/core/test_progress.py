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


def test_a_status_stands_beside_the_bar(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stderr", Terminal())
    with ConsoleProgress("training", "steps") as progress:
        progress.status("loading the model")
        assert progress._bar.tasks[0].fields["words"] == "loading the model"
        progress.total(4)
        progress.status("step 1 of 4, loss 2.5000")
        progress.advance(1)
        (task,) = progress._bar.tasks
        assert (task.completed, task.fields["words"]) == (1, "step 1 of 4, loss 2.5000")
        progress.stop()
        assert progress._bar is None


def test_in_a_pipe_a_status_is_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(ConsoleProgress, "_PAUSE", 0.0)
    with ConsoleProgress("training", "steps") as progress:
        progress.status("loading the model")
        progress.total(4)
        progress.status("step 1 of 4, loss 2.5000")
        progress.advance(1)
        progress.advance(3)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "training: loading the model"
    assert lines[1] == "training: step 1 of 4, loss 2.5000, 0:00:00 left"
    assert len(lines) == 3
