"""Attempts that branch, many tasks at once: resumed, killed, counted, scored, replayed."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import time
from collections import Counter

import pytest

from adp.eval.scoring import choose, score_store
from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.branching.settings import BranchingSettings
from adp.rollouts.collecting.collect import alone, collect_now
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.output_store import episodes_of
from adp.rollouts.collecting.plan import EpisodePlan
from adp.rollouts.collecting.recorder import About
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.policies.replay import ReplayPolicy, ReplaySettings
from adp.rollouts.policy import InfrastructureError
from adp.stores.checks.run import run_checks
from adp.workflows.report_eval.episodes import read_episodes
from adp_schema.errors import OutputExistsError, UsageError
from adp_schema.store import Store
from tests.kill import ROOT, command
from tests.rollouts.collecting.branching.worlds import Notebook, Unsure, install, tasks, turn_of
from tests.waiting import PATIENCE, until

N = 8
BRANCHING = BranchingSettings(initial=3, probability=0.3)


def gather(out, policy=None, count=6, world=Notebook, actors=None, **settings):
    given = {"n": N, "branching": BRANCHING, "timed": False, "environment": "notebook"} | settings
    actors = actors or alone(policy or Unsure())
    return collect_now(out, world, actors, tasks(count), CollectSettings(**given))


def held(out):
    """What a store holds, by id; branches with all their steps."""
    store = Store.open(str(out))
    return {item.trajectory_id: store.resolve(item) for item in store.trajectories()}


def plain(trajectories):
    return {name: item.model_dump(exclude={"seq", "task"}) for name, item in trajectories.items()}


def test_all_attempts_are_there_and_each_is_scored_with_its_whole_way(tmp_path):
    report = gather(tmp_path / "notes")
    assert (report.asked, report.done_now, report.left, report.failed) == (48, 48, 0, 0)
    assert report.sealed
    counts = report.branching
    assert counts["groups"] == 6
    assert counts["initial"] == 18
    assert counts["initial"] + counts["branches"] + counts["refills"] == 48
    assert counts["branches"] > 0 < counts["refills"]
    assert report.plain()["branching"] == counts
    store = Store.open(str(tmp_path / "notes"))
    kinds = Counter(json.loads(item.extra)["branching"]["kind"] for item in store.trajectories())
    assert kinds == {
        "initial": counts["initial"], "branch": counts["branches"], "refill": counts["refills"]
    }  # fmt: skip
    for item in held(tmp_path / "notes").values():
        assert item.success is (True if item.stop_reason == "answer" else None)
    results, left_out = run_checks(store)
    assert left_out == []
    assert [
        item.check.id for item in results if item.findings and item.check.severity == "error"
    ] == []


def test_the_store_is_the_same_however_many_run_at_once(tmp_path):
    wanted = None
    for number, (policy, concurrency) in enumerate(
        [(Unsure(), 1), (Unsure(seconds=0.002), 16), (Unsure(seconds=0.002), 64)]
    ):
        gather(tmp_path / f"s{number}", policy, concurrency=concurrency, dataset="notes")
        result = plain(held(tmp_path / f"s{number}"))
        wanted = wanted or result
        assert result == wanted


def test_a_finished_run_is_not_done_again_and_another_shape_is_refused(tmp_path):
    out = tmp_path / "notes"
    first = gather(out)
    again = gather(out, Unsure(lambda request: pytest.fail("nothing is left to do")))
    assert (again.done_before, again.done_now) == (48, 0)
    assert again.branching == first.branching
    for settings, difference in (
        ({"n": N + 1}, "with --n 8, and this call has --n 9"),
        ({"branching": BranchingSettings(initial=2)}, "with --branching initial=3, and this call"),
        ({"branching": None}, "this call is without --branching"),
    ):
        with pytest.raises(OutputExistsError, match=difference):
            gather(out, **settings)


def test_more_tasks_go_into_a_store_beside_it(tmp_path):
    gather(tmp_path / "notes", count=2)
    more = gather(tmp_path / "more", count=4, since=(str(tmp_path / "notes"),))
    assert (more.done_before, more.done_now) == (2 * N, 2 * N)
    gather(tmp_path / "all", count=4, dataset="notes")
    both = held(tmp_path / "notes") | held(tmp_path / "more")
    assert plain(both) == plain(held(tmp_path / "all"))


def test_branches_are_attempts_for_scores_and_reports(tmp_path):
    out = tmp_path / "notes"
    gather(out)
    store = Store.open(str(out))
    report = score_store(store, choose(["outcome"]))
    assert report.trajectories == 48
    figures = {figure.name: figure for figure in report.scorers[0].figures}
    known = [item for item in held(out).values() if item.success is not None]
    assert figures["success"].count == len(known)
    assert figures["pass@1"].tasks == 6
    (episodes,) = read_episodes(store)
    assert len(episodes.rows) == 48


def test_a_store_can_be_replayed_attempt_by_attempt(tmp_path):
    gather(tmp_path / "notes", count=2)
    policy = ReplayPolicy(ReplaySettings(store=str(tmp_path / "notes")))
    for name, item in held(tmp_path / "notes").items():
        task = tasks(2)[int(item.task_id[1:])]
        about = About("again", item.attempt, task, timed=False)
        again = asyncio.run(run_episode(about, Notebook(), Alone(policy)))
        turns = [(step.text, [call.arguments for call in step.calls]) for step in again.steps]
        if item.stop_reason == "answer":
            assert turns == [
                (step.text, [call.arguments for call in step.calls]) for step in item.steps
            ], name


def test_attempts_that_broke_are_tried_again_from_the_beginning(tmp_path):
    def failing(request):
        if request.attempt % 3 == 1 and request.turn == 1:
            raise InfrastructureError("http_500", "down")
        return turn_of(request)

    out = tmp_path / "notes"
    first = gather(out, Unsure(failing))
    assert first.failed > 0 < first.done_now
    assert not first.sealed
    second = gather(out, retry_failed=True)
    assert (second.failed, second.left, second.done_now) == (0, 0, first.failed)
    assert second.sealed
    again = [item for name, item in held(out).items() if name.endswith("#2")]
    assert len(again) == first.failed
    assert all(item.parent_id is None for item in again)
    # A branch of an attempt that broke is none the worse for that, and counts.
    store = Store.open(str(out))
    report = score_store(store, choose(["outcome"]))
    assert (report.trajectories, report.superseded) == (48, first.failed)


def test_all_attempts_of_a_task_are_run_together_and_those_that_are_missing_alone(tmp_path):
    def groups(there):
        plan = EpisodePlan("notes", tasks(2), CollectSettings(n=4, branching=BRANCHING))
        return [[member.name for member in job.members] for job in plan.jobs(there)]

    names = [[f"notes/t{task}/attempt-{k}" for k in range(4)] for task in range(2)]
    assert groups(()) == names
    gather(tmp_path / "notes", count=2, n=4)
    there = list(episodes_of(tmp_path / "notes", "notes"))
    assert sorted(item.trajectory_id for item in there) == [*names[0], *names[1]]
    assert groups(there) == []
    # A group that is larger than what the store writes at once may be cut by a kill.
    part = [item for item in there if item.trajectory_id not in ("notes/t0/attempt-3",)]
    assert groups(part) == [["notes/t0/attempt-3"]]


def test_an_expert_or_a_policy_without_log_probabilities_is_refused_and_nothing_is_written(
    tmp_path,
):
    from adp.rollouts.experts.spec import cast_of
    from adp.rollouts.policies.expert import ExpertPolicy
    from adp.rollouts.policies.scripted import Scripted

    with pytest.raises(UsageError, match="a model acts alone"):
        gather(tmp_path / "a", actors=cast_of(ExpertPolicy()).actors)
    with pytest.raises(UsageError, match="gives no log probabilities"):
        gather(tmp_path / "b", Scripted(turn_of))
    assert not list(tmp_path.iterdir())


class Runs:
    """Calls of the command on one store."""

    def __init__(self, folder, count, n=N):
        self.out, self.count, self.n = folder / "store", count, n
        path = [str(ROOT / "src"), str(ROOT), str(install(folder / "plugin"))]
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        self.words = [
            "--env", "notebook", "--tasks", f"test:{count}", "--n", n, "--no-times",
            "--branching", "initial=3,beam=3,probability=0.6", "--dataset", "notes",
        ]  # fmt: skip

    def start(self, seconds, out=None, *more):
        """Start a call whose policy waits at each turn."""
        policy = f"unsure:seconds={seconds}"
        return subprocess.Popen(
            command("collect", *self.words, "--policy", policy, "-o", out or self.out, *more),
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def finish(self, out=None):
        process = self.start(0, out, "--json")
        text, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        return json.loads(text)

    def size(self):
        return sum(path.stat().st_size for path in self.out.glob("growing/journal-*.jsonl"))

    def wait_for_more(self, process):
        """Wait until something is appended."""
        before = self.size()
        until(lambda: self.size() != before, process, pause=0.01)

    def groups(self):
        """Attempts of each task that the store holds."""
        if not (self.out / "growing.json").exists():
            return {}, {}
        there = held(self.out)
        return there, Counter(item.task_id for item in there.values())


def kills(runs, count, seed):
    draw = random.Random(seed)
    for _ in range(count):
        process = runs.start(0.05, None, "--concurrency", draw.choice([8, 24, 64]))
        runs.wait_for_more(process)
        time.sleep(draw.random() * 0.4)
        process.kill()
        process.communicate(timeout=PATIENCE)
        before, counts = runs.groups()
        assert set(counts.values()) <= {runs.n}, "a part of a group is there"
        if len(counts) == runs.count:
            break
    report = runs.finish()
    assert report["done_before"] == len(before)
    assert report["done_now"] == runs.count * runs.n - len(before)
    assert report["sealed"]
    runs.finish(runs.out.parent / "whole")
    now = plain(held(runs.out))
    assert now == plain(held(runs.out.parent / "whole"))
    assert plain(before).items() <= now.items()


def test_a_killed_run_loses_and_repeats_nothing(tmp_path):
    kills(Runs(tmp_path, 20), 1, 1)


@pytest.mark.slow
def test_runs_that_are_killed_at_ten_moments_lose_and_repeat_nothing(tmp_path):
    kills(Runs(tmp_path, 300), 10, 2)


@pytest.mark.slow
def test_two_processes_share_the_tasks(tmp_path):
    runs = Runs(tmp_path, 30)
    both = [runs.start(0.05, None, "--concurrency", 16, "--json") for _ in range(2)]
    reports = []
    for process in both:
        text, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        reports.append(json.loads(text))
    assert sum(report["done_now"] for report in reports) == 240
    runs.finish(tmp_path / "whole")
    assert plain(held(runs.out)) == plain(held(tmp_path / "whole"))
