"""Worker processes: Ctrl-C does not reach them, and none works on when its run has ended."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from adp.stores.workers import Processes
from tests.waiting import until


def work(job):
    folder, fails = job
    if fails:
        until((folder / "pid").exists)
        raise ValueError("this one fails")
    blocked = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    staged = folder / "pid.tmp"
    staged.write_text(f"{os.getpid()} {blocked}")
    staged.replace(folder / "pid")
    time.sleep(60)


def test_a_run_that_fails_leaves_no_worker_at_work(tmp_path):
    with pytest.raises(ValueError, match="this one fails"):
        list(Processes().run(work, [(tmp_path, False), (tmp_path, True)], 2))
    pid, blocked = (tmp_path / "pid").read_text().split()
    assert blocked == "True"
    assert not Path("/proc", pid).exists()
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
