"""Commands that are killed at random moments, and called again: the same output as undisturbed.

Conversion, merge, drop, redaction, curation and publishing have such tests beside their packages;
here are all writing commands alike, killed as soon as they have begun to write.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from tests import kill
from tests.reliability import jobs

KILLS = 4


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return jobs.make_inputs(tmp_path_factory.mktemp("inputs"), 4)


def size_of(out) -> int:
    """Bytes under a folder, or in the files whose names begin as the output's."""
    place = out if out.is_dir() else out.parent
    return sum(path.lstat().st_size for path in place.rglob("*") if not path.is_dir())


def start_and_kill(words, out, growth: int) -> bool:
    """Start a command, and kill it when its output has changed its size so many times."""
    process = subprocess.Popen(
        [sys.executable, "-m", "adp.cli.main", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(kill.ROOT / "src")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    size = size_of(out)
    while process.poll() is None and growth:
        now = size_of(out)
        growth -= now != size
        size = now
        time.sleep(0.002)
    with suppress(ProcessLookupError):  # it has ended, and so have its workers
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("name", jobs.names())
def test_killed_and_called_again(name, inputs, tmp_path):
    job, out = jobs.JOBS[name], jobs.output(name, tmp_path / "killed")
    out.parent.mkdir()
    killed = 0
    for number in range(KILLS):
        words = job.words(inputs, out) + list(job.again if out.exists() else ())
        killed += start_and_kill(words, out, 1 + 2 * number)
        if jobs.is_finished(out) or not job.resumes:
            shutil.rmtree(out.parent)
            out.parent.mkdir()
    assert killed
    ran = jobs.call(job.words(inputs, out) + list(job.again if out.exists() else ()))
    assert ran.returncode == 0, ran.stderr[-2000:]
    whole = jobs.output(name, tmp_path / "whole")
    whole.parent.mkdir()
    assert jobs.call(job.words(inputs, whole)).returncode == 0
    assert jobs.contents(name, out) == jobs.contents(name, whole)
