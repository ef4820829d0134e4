"""The real command against an endpoint that answers badly half of the time, killed at random."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections import Counter

import pytest

from adp.rollouts.evolving.lineage import lineage_of
from adp_schema.store import Store
from tests.kill import ROOT, command
from tests.rollouts.evolving.models import Badly
from tests.rollouts.evolving.worlds import rolled_out
from tests.rollouts.policies.chat_server import serving
from tests.waiting import PATIENCE, until

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}


class Calls:
    """Calls of the command on one store.

    Args:
        folder: an empty folder.
        url: where the models are.
        count: number of tasks.
    """

    def __init__(self, folder, url, count):
        self.out = folder / "evolved"
        self.source = rolled_out(folder / "sums", count)
        patience = "timeout=0.3,retries=1,first_wait=0.01,longest_wait=0.02"
        policy = f"openai:model=m,base_url={url},{patience}"
        self.words = ["evolve", folder / "sums", "--env", "calculator", "--policy", policy,
                      "--refiner", policy, "--judge", policy, "-o", self.out, "--rounds", 3,
                      "--correct", "math", "--concurrency", 3, "--tries", 8]  # fmt: skip

    def start(self, *more):
        return subprocess.Popen(
            command(*self.words, *more), env=ENVIRONMENT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def finish(self, *more):
        process = self.start("--json", *more)
        out, output = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, output
        return json.loads(out)

    def size(self):
        return sum(path.stat().st_size for path in self.out.glob("growing/journal-*.jsonl"))

    def held(self):
        """What the store holds: id -> all that it says. Nothing may be there twice."""
        if not (self.out / "growing.json").exists() and not (self.out / "adp.json").exists():
            return {}
        runs = list(Store.open(str(self.out)).trajectories())
        held = {run.trajectory_id: (run.model_dump_json(exclude={"seq"}), len(run.steps))
                for run in runs}  # fmt: skip
        assert len(held) == len(runs), "something is there twice"
        return held


def kills(calls, count):
    """Kill calls at random moments; what was there must stay as it is."""
    draw = random.Random()
    held = calls.held()
    for _ in range(count):
        process = calls.start()
        before = calls.size()
        until(lambda b=before, p=process: calls.size() != b or p.poll() is not None, pause=0.01)
        time.sleep(draw.random() * 0.3)
        process.kill()
        process.communicate(timeout=PATIENCE)
        now = calls.held()
        assert held.items() <= now.items(), "something was lost or changed"
        held = now
    return held


def check_whole(calls, report):
    """Every place is filled once, every bad answer has a reason, and all of it has a lineage."""
    runs = list(Store.open(str(calls.out)).trajectories())
    places = Counter((run.task_id, run.attempt) for run in runs if "#" not in run.trajectory_id)
    count = len(calls.source)
    assert set(places.values()) == {1}
    assert len(places) == count * (1 + 3 * 3)
    known = {run.trajectory_id for run in runs}
    for run in runs:
        lineage = lineage_of(run.extra)
        assert lineage["operator"]
        assert lineage["parent"] in known or lineage["operator"] == "initial"
        assert all(bad["reason"] for bad in lineage.get("bad_answers", ()))
        assert run.error_type is None or run.error_message
    assert report["left"] == 0
    for name, counts in report["operators"].items():
        parts = ("made", "unchanged", "given_up", "broken")
        assert counts["tried"] == sum(counts[part] for part in parts), name
    assert sum(counts["tried"] for counts in report["operators"].values()) == 9 * count
    return runs


@pytest.mark.slow
def test_half_of_the_answers_are_bad_and_calls_are_killed(tmp_path):
    server_says = Badly(50, pause=0.005, hang=0.45)
    with serving(server_says) as server:
        calls = Calls(tmp_path, server.url, 3)
        held = kills(calls, 3)
        report = calls.finish()
        if report["failures"]:
            report = calls.finish("--retry-failed", "--seal")
        again = calls.held()
        assert held.items() <= again.items()
        check_whole(calls, report)
        files = calls.finish("--rft", tmp_path / "rft", "--flywheel", tmp_path / "records.json")
    assert files["made_now"] == 0
    assert calls.held() == again
    assert report["sealed"]
    assert server_says.faults.keys() >= {"malformed", "http_500", "empty"}
    assert any(reason.startswith("refiner: ") for reason in report["bad_answers"])
    rows = json.loads((tmp_path / "rft" / "rows" / "train.json").read_text())
    assert len(rows) == files["rft"]["selected"] > 0
    assert len(json.loads((tmp_path / "records.json").read_text())) == len(calls.source)


@pytest.mark.slow
def test_killed_often(tmp_path):
    with serving(Badly(50, pause=0.01, hang=0.6)) as server:
        calls = Calls(tmp_path, server.url, 20)
        kills(calls, 12)
        report = calls.finish("--seal")
        check_whole(calls, report)
