"""The real command, killed at any moment, stopped by Ctrl-C, and run by several at once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from adp_schema.store import Store
from tests.kill import ROOT, command
from tests.rollouts.collecting.adder import install
from tests.waiting import PATIENCE, until

LONGEST = PATIENCE
"""Seconds after which a process counts as hanging."""


class Runs:
    """Calls of the command on one store.

    Args:
        folder: an empty folder.
        tasks: number of tasks.
        n: attempts at each.
    """

    def __init__(self, folder, tasks=100, n=4):
        self.out, self.begun = folder / "store", folder / "begun.txt"
        self.gate = folder / "gate"
        self.asked = tasks * n
        self.wanted = {
            f"store/test-{number}/attempt-{k}" for number in range(tasks) for k in range(n)
        }
        path = [str(ROOT / "src"), str(ROOT), str(install(folder / "plugin"))]
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        self.words = ["--env", "adder", "--tasks", f"test:{tasks}", "--n", n, "-o", self.out]

    def start(self, seconds, *more, shut=False):
        """Start a call.

        Args:
            seconds: how long the policy waits at each turn.
            more: further words.
            shut: it waits until the gate is there, too.
        """
        policy = f"waiting:seconds={seconds},log={self.begun}"
        policy += f",gate={self.gate}" if shut else ""
        return subprocess.Popen(
            command("collect", *self.words, "--policy", policy, *more),
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def finish(self, *more):
        """Run a call that ends by itself; return its report."""
        process = self.start(0, "--json", *more)
        out, output = process.communicate(timeout=LONGEST)
        assert process.returncode == 0, output
        return json.loads(out)

    def size(self):
        """Bytes that were appended."""
        return sum(path.stat().st_size for path in self.out.glob("growing/journal-*.jsonl"))

    def wait_for_more(self, process):
        """Wait until something is appended."""
        before = self.size()
        until(lambda: self.size() != before, process, pause=0.01)

    def held(self):
        """What the store holds: id -> what came out. Nothing may be there twice."""
        if not (self.out / "growing.json").exists() and not (self.out / "adp.json").exists():
            return {}
        trajectories = list(Store.open(str(self.out)).trajectories())
        held = {
            trajectory.trajectory_id: (
                trajectory.success,
                trajectory.final_answer,
                str(trajectory.started_at),
                len(trajectory.steps),
            )
            for trajectory in trajectories
        }
        assert len(held) == len(trajectories), "something is there twice"
        return held

    def begun_often(self):
        """How often each episode was begun."""
        lines = self.begun.read_text().splitlines() if self.begun.exists() else []
        return Counter(f"store/{line}" for line in lines)

    def check(self, before):
        """All of it is there, and what was there before was left alone."""
        now = self.held()
        assert set(now) == self.wanted
        assert before.items() <= now.items()


def kills(runs, count, seed=None):
    """Kill calls at random moments, then let one end."""
    seed = random.randrange(1 << 32) if seed is None else seed
    draw = random.Random(seed)
    known = []
    for _ in range(count):
        process = runs.start(0.04, "--concurrency", draw.choice([3, 20, 64]))
        # Starting takes a while; before that there is nothing to kill.
        runs.wait_for_more(process)
        time.sleep(draw.random() * 0.5)
        process.kill()
        process.communicate(timeout=LONGEST)
        before, often = runs.held(), runs.begun_often()
        known.append(len(before))
        if len(before) == runs.asked:
            break
    print(f"seed {seed}: in the store at the kills: {known}")
    report = runs.finish()
    assert report["done_before"] == len(before)
    assert report["done_now"] == runs.asked - len(before)
    assert (report["left"], report["failed"], report["done_elsewhere"]) == (0, 0, 0)
    assert report["sealed"]
    runs.check(before)
    after = runs.begun_often()
    assert all(after[name] == often[name] for name in before), "a finished one was begun again"
    assert runs.finish()["done_before"] == runs.asked


def test_a_killed_run_loses_and_repeats_nothing(tmp_path):
    kills(Runs(tmp_path, 150, 4), 1)


@pytest.mark.slow
def test_runs_that_are_killed_at_20_moments_lose_and_repeat_nothing(tmp_path):
    kills(Runs(tmp_path, 1_500, 4), 20)


def test_several_processes_share_the_work(tmp_path):
    runs = Runs(tmp_path, 40, 4)
    both = [runs.start(0.05, "--concurrency", 8, "--json", shut=True) for _ in range(2)]
    # Or the faster one might do all of it.
    until(lambda: sum(runs.begun_often().values()) >= 16, both[0])
    runs.gate.touch()
    reports = []
    for process in both:
        out, output = process.communicate(timeout=LONGEST)
        assert process.returncode == 0, output
        reports.append(json.loads(out))
    assert sum(report["done_now"] for report in reports) == runs.asked
    for report in reports:
        assert report["done_now"] > 0
        parts = [report[name] for name in ("done_before", "done_now", "done_elsewhere")]
        assert sum(parts) == runs.asked
        assert report["whole"]["success"]["scored"] == runs.asked
    runs.check({})
    assert set(runs.begun_often().values()) == {1}


def test_the_work_of_a_killed_process_is_taken_over(tmp_path):
    runs = Runs(tmp_path, 30, 2)
    first = runs.start(30)
    until((runs.out / "growing" / "collect.claims").exists, first)
    time.sleep(0.3)
    second = runs.start(0, "--json")
    time.sleep(1.0)
    first.kill()
    first.communicate()
    out, output = second.communicate(timeout=LONGEST)
    assert second.returncode == 0, output
    assert json.loads(out)["done_now"] == runs.asked
    runs.check({})


def test_ctrl_c_is_no_loss(tmp_path):
    runs = Runs(tmp_path)
    process = runs.start(0.2, "--concurrency", 10)
    runs.wait_for_more(process)
    process.send_signal(signal.SIGINT)
    out, output = process.communicate(timeout=LONGEST)
    assert (process.returncode, out) == (130, "")
    assert output.splitlines()[-1].startswith("stopped; the same call goes on, with the episodes")
    assert "Traceback" not in output
    before = runs.held()
    assert f"{len(before)} of {runs.asked} episodes are in" in output
    assert runs.finish()["done_before"] == len(before)
    runs.check(before)


def test_other_settings_are_refused_and_no_secret_is_kept(tmp_path):
    runs = Runs(tmp_path, 5, 1)
    policy = f"waiting:api_key=sk-very-secret,log={runs.begun}"
    words = command("collect", *runs.words, "--keep-open", "--policy")
    done = subprocess.run([*words, policy], env=runs.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "5 done now" in done.stdout
    for path in Path(runs.out).rglob("*"):
        assert not path.is_file() or b"very-secret" not in path.read_bytes()
    done = subprocess.run(
        [*words, "waiting:style=loud"], env=runs.environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr == (
        f"error: {runs.out} was begun with --policy style=plain, and this call has --policy "
        "style=loud; go on with the same settings, or choose another -o\n"
    )
