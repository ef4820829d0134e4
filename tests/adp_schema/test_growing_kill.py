"""Writers of a growing store that are killed at random moments, with readers that watch.

What was acknowledged is written down outside of the store. After each kill the writers begin
again with their first trajectory, so all that was there is appended a second time.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from adp_schema.growing import GrowingStore, seal
from adp_schema.store import Store
from tests.growing import hashes, numbered
from tests.growing_worker import acknowledged, check
from tests.waiting import PATIENCE, until

ROOT = Path(__file__).parents[2]
LONGEST = PATIENCE
"""Seconds after which a process counts as hanging."""
ENDLESS = 1_000_000
"""More trajectories than a writer has time for."""


class Family:
    """Processes around one store.

    Args:
        folder: an empty folder.
        count: how many trajectories each writer has.
    """

    def __init__(self, folder, count):
        self.root = folder / "store"
        self.acks = folder / "acks"
        self.acks.mkdir()
        self.report = folder / "report.json"
        self.count = count
        self.writers = {}
        GrowingStore(self.root).close()
        self.reader = self.start("read", self.acks, self.report)

    def start(self, act, *words):
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
            "TMPDIR": str(self.acks),  # a reader that is killed leaves its scratch
        }
        script = str(ROOT / "tests" / "growing_worker.py")
        return subprocess.Popen(
            [sys.executable, script, act, str(self.root), *map(str, words)],
            env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def write(self, names):
        for name in names:
            if name not in self.writers:
                self.writers[name] = self.start("write", self.acks, name, self.count)

    def kill(self, names):
        for name in names:
            self.writers[name].kill()
        return sum(self.end(self.writers.pop(name)) == -signal.SIGKILL for name in names)

    def wait(self):
        for name, writer in list(self.writers.items()):
            assert self.end(writer) == 0
            del self.writers[name]

    @staticmethod
    def end(process):
        """Wait for a process; return its exit code, which must be that of success or of a kill."""
        output = process.communicate(timeout=LONGEST)[1].decode()
        assert process.returncode in (0, -signal.SIGKILL), output
        return process.returncode

    def reads(self):
        return json.loads(self.report.read_text())["reads"] if self.report.exists() else 0

    def wait_for_reads(self, number):
        wanted = self.reads() + number
        until(lambda: self.reads() >= wanted, self.reader)

    def check(self):
        """Check the store, and return how many it holds."""
        promised = acknowledged(self.acks)  # before the store is opened: writers go on
        return check(Store.open(str(self.root)), promised)

    def close(self):
        """End all processes; the reader must have found no fault."""
        fault = self.reader.poll() is not None
        self.reader.kill()
        output = self.reader.communicate(timeout=LONGEST)[1].decode()
        for process in self.writers.values():
            process.kill()
            process.communicate(timeout=LONGEST)
        assert not fault, output


def series(folder, kills, writers=8, seed=None):
    """Kill some or all writers at random moments, then the one that seals; check the end."""
    seed = random.randrange(1 << 32) if seed is None else seed
    draw = random.Random(seed)
    family = Family(folder, ENDLESS)
    names = [f"w{number}" for number in range(writers)]
    killed, known = 0, []
    try:
        for number in range(kills):
            family.write(names)
            # Starting takes up to a second; before that there is nothing to kill.
            before = len(acknowledged(family.acks))
            while len(acknowledged(family.acks)) == before and any(
                writer.poll() is None for writer in family.writers.values()
            ):
                time.sleep(0.01)
            time.sleep(draw.random() * 0.6)
            killed += family.kill(
                draw.sample(names, draw.randint(1, writers)) if number % 3 else names
            )
            known.append(len(acknowledged(family.acks)))
            family.check()
        family.kill(list(family.writers))
        numbers = [int(name.split("-")[1]) for name in acknowledged(family.acks)]
        family.count = max(numbers) + 10
        family.write(names)
        family.wait()
        family.wait_for_reads(2)
        for _ in range(max(2, kills // 4)):
            process = family.start("seal")
            time.sleep(draw.random() * 1.2)
            process.kill()
            family.end(process)
            assert family.check() == writers * family.count
        assert family.end(family.start("seal")) == 0
        family.wait_for_reads(2)
    finally:
        print(f"seed {seed}: {killed} writers killed, acknowledged then {known}")
        family.close()
    store = Store.open(str(family.root))
    assert family.check() == writers * family.count
    _compare(family.root, folder / "calm", [t.source_id for t in store.trajectories()])
    return killed


def _compare(root, calm, names):
    """The store is the one that a single writer makes of the same trajectories, undisturbed."""
    with GrowingStore(calm) as store:
        store.extend(numbered(name, blob=int(name.split("-")[1]) % 5) for name in names)
    seal(calm)
    assert hashes(root) == hashes(calm)


def test_killed_writers_lose_nothing(tmp_path):
    assert series(tmp_path, kills=1, writers=2)


@pytest.mark.slow
def test_killed_writers_lose_nothing_at_20_moments(tmp_path):
    assert series(tmp_path, kills=20) > 60


@pytest.mark.slow
def test_sealing_stops_writers_that_run(tmp_path):
    family = Family(tmp_path, ENDLESS)
    try:
        family.write(["w0", "w1"])
        until(lambda: len(acknowledged(family.acks)) >= 20, family.writers["w0"])
        assert family.end(family.start("seal")) == 0
        for writer in family.writers.values():
            assert writer.communicate(timeout=LONGEST)[0] == b"sealed\n"
        family.wait_for_reads(2)
    finally:
        family.close()
    assert family.check()
    assert {path.name for path in family.root.iterdir()} == {
        "adp.json", *Store.open(str(family.root)).manifest.tables
    }  # fmt: skip
