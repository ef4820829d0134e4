"""Ctrl-C at random moments of each writing command, and the same call again: the same output.

Half of the signals go to the process alone, half to all of its group, as a terminal sends them;
every third comes twice. The moments are spread over the time that an undisturbed run takes.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from tests import kill
from tests.reliability import jobs
from tests.waiting import PATIENCE

MOMENTS = 12


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return jobs.make_inputs(tmp_path_factory.mktemp("inputs"), 4)


def start_and_press(words, moment: float, send, *, again: bool) -> tuple[int, str]:
    """Start a command and interrupt it; returns its exit code and what it says on stderr.

    Args:
        words: the command.
        moment: seconds until it is interrupted.
        send: sends a signal to a process, or to its group.
        again: interrupt it once more, at once.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "adp.cli.entry", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(kill.ROOT / "src")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=kill.listen,
    )
    try:
        _, output = process.communicate(timeout=moment)
    except subprocess.TimeoutExpired:
        for _ in range(1 + again):
            with suppress(ProcessLookupError):
                send(process.pid, signal.SIGINT)
        _, output = process.communicate(timeout=PATIENCE)
    return process.returncode, output


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in jobs.JOBS if name != "train"])
def test_stopped_by_ctrl_c_and_called_again(name, inputs, tmp_path):
    job, out = jobs.JOBS[name], jobs.output(name, tmp_path / "stopped")
    whole = jobs.output(name, tmp_path / "whole")
    for folder in (out.parent, whole.parent):
        folder.mkdir()
    began = time.monotonic()
    assert jobs.call(job.words(inputs, whole)).returncode == 0
    seconds, wanted = time.monotonic() - began, jobs.contents(name, whole)
    seed = random.randrange(1 << 32)
    draw = random.Random(seed)
    print(f"seed {seed}: an undisturbed run takes {seconds:.2f} s")  # shown when it fails
    moments = [seconds * (number + draw.random()) / MOMENTS for number in range(MOMENTS)]
    draw.shuffle(moments)
    stopped = 0
    for number, moment in enumerate(moments):
        words = job.words(inputs, out) + list(job.again if out.exists() else ())
        send = (os.kill, os.killpg)[number % 2]
        code, output = start_and_press(words, moment, send, again=number % 3 == 2)
        place = f"moment {moment:.3f} s: {code}\n{output}"
        if code == -signal.SIGINT or "KeyboardInterrupt" in output or "before it began" in output:
            assert "adp/cli/main.py" not in output, place
            continue  # Python itself was not up yet, or had not come to the first line of adp
        finished = code == 0 or jobs.is_finished(out) or "is finished" in output
        assert finished or code == 130, place
        assert "Traceback" not in output, place
        assert "Exception ignored" not in output, place
        assert {path.name for path in out.parent.iterdir()} <= {out.name}, place
        goes_on = "the same call" in output and "goes on" in output
        if code == 130:
            stopped += 1
            assert output.splitlines()[-1].startswith("stopped"), place
            assert "goes on where it stopped" not in output or out.exists(), place
        if finished:
            assert jobs.contents(name, out) == wanted, place
        elif out.exists() and not goes_on:  # what is there is whole
            assert jobs.contents(name, out).items() <= wanted.items(), place
        if finished or not goes_on:
            shutil.rmtree(out.parent)
            out.parent.mkdir()
    assert stopped
    ran = jobs.call(job.words(inputs, out) + list(job.again if out.exists() else ()))
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert jobs.contents(name, out) == wanted
