"""Many episodes at once: counts, resuming, budgets, failures."""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest

from adp.rollouts.collecting.collect import alone, collect, collect_now
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.plan import episode_seed
from adp.rollouts.collecting.run_file import RUN_FILE
from adp.rollouts.collecting.settings import CollectSettings, Totals
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.turns import Call, Turn, Usage
from adp_schema import seal_store
from adp_schema.errors import OutputExistsError, RolloutError, SealedError, UsageError
from adp_schema.growing import GrowingStore, seal
from adp_schema.model import Task
from adp_schema.store import Store
from tests.rollouts.collecting.adder import Adder, Waiting, sums, turns_of
from tests.waiting import PATIENCE

TASKS = sums(None, "test", 20, 3)


def gather(out, policy=None, tasks=TASKS, environment=Adder, watch=None, **settings):
    actors = alone(policy or Waiting())
    return collect_now(out, environment, actors, tasks, CollectSettings(**settings), watch=watch)


def held(out):
    """Ids in a store, with how often each is there."""
    column = Store.open(str(out)).query("SELECT trajectory_id AS name FROM trajectories")
    return Counter(column["name"].to_pylist())


def wanted(out, tasks=TASKS, n=1):
    return Counter(f"{out.name}/{task.task_id}/attempt-{k}" for task in tasks for k in range(n))


def adds_up(report):
    parts = report.done_before, report.done_now, report.done_elsewhere, report.failed, report.left
    assert report.asked == sum(parts)
    return parts


class Noting(Waiting):
    """Notes which episodes were begun."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.begun = Counter()

    async def act(self, request):
        if request.turn == 0:
            self.begun[f"{request.task.task_id}/attempt-{request.attempt}"] += 1
        return await super().act(request)


def test_all_attempts_at_all_tasks_are_run_once_and_the_store_is_sealed(tmp_path):
    out = tmp_path / "sums"
    report = gather(out, n=3, concurrency=7)
    assert adds_up(report) == (0, 60, 0, 0, 0)
    assert held(out) == wanted(out, n=3)
    assert (report.now.succeeded, report.now.scored, report.now.terminated) == (30, 60, 60)
    assert (report.now.tokens_in, report.now.tokens_out) == (60 * 60, 60 * 15)
    assert report.sealed
    rows = Store.open(str(out)).query(
        "SELECT avg(success::INT) AS rate, count(DISTINCT task_id) AS tasks FROM trajectories"
    )
    assert rows.to_pylist() == [{"rate": 0.5, "tasks": 20}]
    again = gather(out, Waiting(down=tmp_path), n=3)
    assert adds_up(again) == (60, 0, 0, 0, 0)
    assert again.whole.succeeded == 30


def test_a_thousand_episodes_at_once(tmp_path):
    tasks = sums(None, "many", 1_000, 0)
    present = 0

    class Meeting(Waiting):
        async def act(self, request):
            nonlocal present
            if request.turn == 0:
                present += 1
                while present < 1_000:  # all of them must be here at one time
                    await asyncio.sleep(0.1)
            return await super().act(request)

    out = tmp_path / "many"
    report = gather(out, Meeting(), tasks, concurrency=1_000)
    assert adds_up(report) == (0, 1_000, 0, 0, 0)
    assert held(out) == wanted(out, tasks)


class Stalling(Noting):
    """Begins thirty episodes and no more, until `open` is set: the run cannot outrun its stop."""

    open = False

    async def act(self, request):
        while not self.open and self.begun.total() >= 30:
            await asyncio.sleep(0.1)
        return await super().act(request)


def test_a_run_goes_on_where_it_was_stopped(tmp_path):
    out, policy = tmp_path / "sums", Stalling()

    async def stopped():
        stop = asyncio.Event()
        job = asyncio.create_task(
            collect(
                out, Adder, alone(policy), TASKS, CollectSettings(n=3, concurrency=4),
                watch=lambda report: stop.set() if report.done_now >= 10 else None,
            )
        )  # fmt: skip
        await stop.wait()
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job

    asyncio.run(stopped())
    done = held(out)
    assert 10 <= len(done) < 60
    before, policy.open = policy.begun.copy(), True
    report = gather(out, policy, n=3)
    assert adds_up(report) == (len(done), 60 - len(done), 0, 0, 0)
    assert held(out) == wanted(out, n=3)
    repeated = {name for name in policy.begun if policy.begun[name] > 1}
    assert not {f"{out.name}/{name}" for name in repeated} & set(done)
    assert set(before) >= {name.removeprefix(f"{out.name}/") for name in done}


def test_what_is_collected_does_not_depend_on_the_concurrency(tmp_path):
    class Drawn(Waiting):
        async def act(self, request):
            await asyncio.sleep(request.seed % 5 / 1_000)
            if request.turn:
                return await super().act(request)
            return Turn(calls=(Call("add", json.dumps({"a": request.seed, "b": 0})),))

    results = []
    for concurrency in (1, 5, 64):
        out = tmp_path / str(concurrency) / "store"
        gather(out, Drawn(), n=2, concurrency=concurrency, timed=False)
        results.append(
            sorted(
                trajectory.model_dump_json(exclude={"seq"})
                + "".join(
                    step.model_dump_json() + "".join(call.model_dump_json() for call in step.calls)
                    for step in trajectory.steps
                )
                for trajectory in Store.open(str(out)).trajectories()
            )
        )
    assert results[0] == results[1] == results[2]
    seeds = {episode_seed(seed, "t", k) for seed in range(10) for k in range(10)}
    assert len(seeds) == 100


def test_other_settings_are_refused_by_name(tmp_path):
    out = tmp_path / "sums"
    gather(out, seal=False, facts={"made_with": {"policy": {"model": "one"}}})
    for change, message in [
        ({"seed": 1}, "begun with --seed 0, and this call has --seed 1"),
        (
            {"limits": Limits(max_turns=4)},
            "begun with --max-turns 30, and this call has --max-turns 4",
        ),
        (
            {"facts": {"made_with": {"policy": {"model": "two"}}}},
            "with --policy model=one, and this call has --policy model=two",
        ),
        (
            {"tasks": TASKS[1:]},
            r"with 20 tasks \(--tasks, --split\), and this call has 19.*adp seal .*--since",
        ),
        ({"dataset": "other"}, "--dataset sums, and this call has --dataset other"),
    ]:
        given = {"facts": {"made_with": {"policy": {"model": "one"}}}, **change}
        with pytest.raises(OutputExistsError, match=message):
            gather(out, **given)
    same = {"facts": {"made_with": {"policy": {"model": "one"}}}}
    report = gather(out, n=2, concurrency=3, totals=Totals(tokens=10**9), **same)
    assert adds_up(report) == (20, 20, 0, 0, 0)
    assert report.sealed
    with pytest.raises(
        OutputExistsError, match=r"is sealed, with 20 episodes left and 0 broken.*--since"
    ):
        gather(out, n=3, **same)


def test_other_stores_are_left_alone(tmp_path):
    other = tmp_path / "other"
    with GrowingStore(other) as store:
        store.append(asyncio.run(_collect_one()))
    with pytest.raises(OutputExistsError, match="adp collect did not make"):
        gather(other)
    seal(other)
    with pytest.raises(OutputExistsError, match="holds a store already"):
        gather(other)
    assert not (other / RUN_FILE).exists()


async def _collect_one():
    from adp.rollouts.collecting.episode import run_episode
    from adp.rollouts.collecting.recorder import About

    return await run_episode(About("d", task=TASKS[0]), Adder(), alone(Waiting())(None))


class Failing(Waiting):
    """Fails on some tasks."""

    def __init__(self, tasks, kind="http_500"):
        super().__init__()
        self.tasks, self.kind = set(tasks), kind

    async def act(self, request):
        if request.task.task_id in self.tasks and request.turn == 1:
            raise InfrastructureError(self.kind, "the server failed 4 times")
        return await super().act(request)


def test_broken_episodes_are_kept_and_tried_again_on_demand(tmp_path):
    out = tmp_path / "sums"
    bad = {"test-2", "test-5", "test-7"}
    report = gather(out, Failing(bad))
    assert adds_up(report) == (0, 17, 0, 3, 0)
    assert report.now.errors == {"infrastructure: http_500": 3}
    assert not report.sealed
    assert report.now.scored == 17
    again = gather(out)
    assert adds_up(again) == (17, 0, 0, 3, 0)
    assert again.now.episodes == 0
    second = gather(out, Failing({"test-7"}), retry_failed=True)
    assert adds_up(second) == (17, 2, 0, 1, 0)
    assert held(out)[f"{out.name}/test-7/attempt-0#2"] == 1
    third = gather(out, retry_failed=True)
    assert adds_up(third) == (19, 1, 0, 0, 0)
    assert (third.whole.episodes, third.whole.broken, third.sealed) == (20, 0, True)
    names = held(out)
    assert max(names.values()) == 1
    assert set(names) == set(wanted(out)) | {
        f"{out.name}/{name}" for name in (
            "test-2/attempt-0#2", "test-5/attempt-0#2", "test-7/attempt-0#2", "test-7/attempt-0#3"
        )
    }  # fmt: skip
    rows = Store.open(str(out)).query(
        "SELECT attempt, source_id, success, error_type FROM trajectories "
        "WHERE task_id = 'test-7' ORDER BY seq"
    )
    assert [row["error_type"] for row in rows.to_pylist()] == ["infrastructure"] * 2 + [None]
    assert {row["source_id"] for row in rows.to_pylist()} == {"test-7/attempt-0"}
    assert adds_up(gather(out, retry_failed=True)) == (20, 0, 0, 0, 0)


def test_a_run_stops_when_nothing_works(tmp_path):
    out = tmp_path / "sums"
    everything = Failing({task.task_id for task in TASKS})
    with pytest.raises(
        RolloutError, match=r"5 episodes in a row broke \(infrastructure: http_500: the server"
    ):
        gather(out, everything, n=10, max_failures=5, concurrency=3)
    assert 5 <= len(held(out)) <= 8
    report = gather(out, n=10, retry_failed=True)
    assert adds_up(report) == (0, 200, 0, 0, 0)


def test_failures_here_and_there_stop_nothing(tmp_path):
    report = gather(
        tmp_path / "sums", Failing({f"test-{k}" for k in range(0, 20, 2)}), n=3, max_failures=2,
        concurrency=1,
    )  # fmt: skip
    assert adds_up(report) == (0, 30, 0, 30, 0)


@pytest.mark.parametrize(
    ("totals", "reason"),
    [(Totals(tokens=300), "total_tokens"), (Totals(seconds=0.2), "total_seconds")],
)
def test_budgets_of_the_run_stop_it_and_it_goes_on(tmp_path, totals, reason):
    out = tmp_path / "sums"
    # An episode takes 75 tokens.
    report = gather(out, Waiting(0.02), n=5, concurrency=2, totals=totals)
    assert report.stopped == reason
    assert report.done_now < 100
    if reason == "total_tokens":
        assert 4 <= report.done_now <= 5
        assert gather(out, Waiting(), n=5, totals=totals).now.episodes == 0
    done = report.done_now
    assert adds_up(gather(out, n=5)) == (done, 100 - done, 0, 0, 0)


def test_budgets_of_an_episode_cut_it(tmp_path):
    report = gather(tmp_path / "sums", limits=Limits(max_turns=2))
    assert (report.now.truncated, dict(report.now.reasons)) == (20, {"max_turns": 20})
    assert report.now.succeeded == 0


def test_a_task_that_is_refused_is_broken_and_stops_no_other(tmp_path):
    tasks = [Task(task_id="bad", instruction="refuse"), *TASKS]
    report = gather(tmp_path / "sums", tasks=tasks, concurrency=1)
    assert adds_up(report) == (0, 20, 0, 1, 0)
    assert report.now.errors == {"environment: task": 1}


class Strict(Waiting):
    """Cannot be called with some tasks, as a policy with a wrong key cannot with any."""

    def __init__(self, tasks):
        super().__init__()
        self.tasks = set(tasks)

    async def act(self, request):
        if request.task.task_id in self.tasks:
            raise UsageError("the server says 401; name the variable with the key")
        return await super().act(request)


def test_a_call_that_is_wrong_stops_the_run_at_once(tmp_path):
    out = tmp_path / "sums"
    with pytest.raises(UsageError, match="the server says 401"):
        gather(out, Strict({task.task_id for task in TASKS}))
    assert not held(out)
    report = gather(out, Strict({"test-11"}), concurrency=2)
    assert adds_up(report) == (0, 19, 0, 1, 0)
    assert report.now.errors == {"environment: refused": 1}


def test_an_environment_that_breaks_is_no_end(tmp_path):
    made = closed = 0

    class Fragile(Adder):
        def __init__(self):
            nonlocal made
            made += 1
            self.number = made
            if made % 5 == 0:
                raise OSError("no room")
            super().__init__()

        def score(self, trajectory):
            if self.number % 5 == 1:
                raise ValueError("bug")
            return super().score(trajectory)

        def close(self):
            nonlocal closed
            closed += 1

    report = gather(tmp_path / "sums", environment=Fragile)
    assert adds_up(report) == (0, 12, 0, 8, 0)
    assert (made, closed) == (20, 16)
    rows = Store.open(str(tmp_path / "sums")).query(
        "SELECT error_message AS said, count(*) AS n FROM trajectories GROUP BY ALL ORDER BY ALL"
    )
    assert {row["said"]: row["n"] for row in rows.to_pylist()} == {
        None: 12, "OSError: no room": 4, "scoring: ValueError: bug": 4,
    }  # fmt: skip


def test_environments_are_closed_when_a_run_is_stopped(tmp_path):
    open_ones = set()

    class Counted(Adder):
        def __init__(self):
            super().__init__()
            open_ones.add(self)

        def close(self):
            open_ones.discard(self)

    async def stopped():
        job = asyncio.create_task(
            collect(tmp_path / "sums", Counted, alone(Waiting(30)), TASKS, CollectSettings())
        )
        while len(open_ones) < 20:
            await asyncio.sleep(0.01)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job

    asyncio.run(stopped())
    assert not open_ones


def unmended(monkeypatch):
    """As if something were overlooked that the store cannot hold."""
    monkeypatch.setattr("adp.rollouts.collecting.recorder.mend_step", lambda step: None)


class Odd(Scripted):
    """A model's name that is no text, in the second turn, for some tasks."""

    def __init__(self, tasks):
        super().__init__([])
        self.tasks = set(tasks)

    async def act(self, request):
        turn = turns_of(request)
        odd = request.turn == 1 and request.task.task_id in self.tasks
        return replace(turn, model="a\ud800b") if odd else turn


def test_of_an_episode_that_the_store_refuses_the_steps_that_fit_are_kept(tmp_path, monkeypatch):
    unmended(monkeypatch)
    out = tmp_path / "sums"
    report = gather(out, Odd({"test-3"}))
    assert adds_up(report) == (0, 19, 0, 1, 0)
    assert report.now.errors == {"environment: unstorable": 1}
    value = Store.open(str(out)).get("sums/test-3/attempt-0")
    assert [step.step for step in value.steps] == [0, 1, 3]
    assert (value.success, value.error_type) == (None, "environment")


def test_a_run_stops_when_the_store_refuses_everything(tmp_path, monkeypatch):
    unmended(monkeypatch)
    with pytest.raises(RolloutError, match=r"4 episodes in a row broke \(environment: unstorable"):
        gather(
            tmp_path / "sums", Odd({task.task_id for task in TASKS}), n=500, max_failures=4,
            concurrency=2,
        )  # fmt: skip


def test_an_odd_value_is_mended_and_the_episode_is_whole(tmp_path):
    out = tmp_path / "sums"
    report = gather(out, Odd({"test-4"}))
    assert adds_up(report) == (0, 20, 0, 0, 0)
    value = Store.open(str(out)).get("sums/test-4/attempt-0")
    assert (value.success, value.steps[2].model) == (True, "a\ufffdb")


def test_costs_that_are_no_numbers_are_left_out(tmp_path):
    costs = [math.inf, -math.inf, math.nan, -1.0, 10**400, "1", True, 0.5]

    def script(request):
        number = int(request.task.task_id.removeprefix("test-"))
        return Turn(text="0", usage=Usage(tokens_out=-3, cost_usd=costs[number % 8]))

    out = tmp_path / "sums"
    report = gather(out, Scripted(script), tasks=TASKS[:8])
    assert adds_up(report) == (0, 8, 0, 0, 0)
    assert (report.whole.cost_usd, report.whole.tokens_out) == (0.5, 0)
    json.dumps(report.plain(), allow_nan=False)
    step = Store.open(str(out)).get("sums/test-0/attempt-0").steps[1]
    assert step.cost_usd is None
    assert set(json.loads(step.extra)["dropped"]) == {"cost_usd", "tokens_out"}


@pytest.mark.parametrize("n", [2, 3])
def test_a_store_whose_sealing_was_stopped_is_sealed(tmp_path, n):
    out = tmp_path / "sums"
    gather(out, n=2, seal=False)
    seal_store._stop_writers(out)  # the first thing that sealing does; here it is killed
    if n == 2:
        assert adds_up(report := gather(out, n=n)) == (40, 0, 0, 0, 0)
        assert report.sealed
    else:
        with pytest.raises(OutputExistsError, match="with 20 episodes left"):
            gather(out, n=n)
    assert held(out) == wanted(out, n=2)


def test_a_tool_that_never_returns_keeps_nobody(tmp_path):
    """A process of its own: threads that are waited for would show at its end only."""
    program = (
        "import time\n"
        "from adp.rollouts.collecting.limits import Limits\n"
        "from tests.rollouts.collecting.test_collect import Adder, TASKS, gather\n"
        "class Hanging(Adder):\n"
        "    blocking = True\n"
        "    def step(self, turn):\n"
        "        time.sleep(1000)\n"
        f"report = gather({str(tmp_path / 'sums')!r}, environment=Hanging, tasks=TASKS[:3],\n"
        "    limits=Limits(max_seconds=8))\n"
        "print(report.hanging, dict(report.now.errors), flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == "3 {'environment: timeout': 3}\n"


def test_a_store_that_is_sealed_meanwhile_ends_the_run(tmp_path):
    out = tmp_path / "sums"

    def shut(report):
        if not (out / "adp.json").exists():
            seal(out)

    with pytest.raises(SealedError):
        gather(out, Waiting(0.01), n=20, concurrency=2, watch=shut)
    assert held(out)


def test_tasks_need_ids_of_their_own(tmp_path):
    for tasks, message in [
        ([], "no tasks"),
        ([Task(instruction="x")], "no task_id"),
        ([TASKS[0], TASKS[0]], "two tasks have the id 'test-0'"),
    ]:
        with pytest.raises(UsageError, match=message):
            gather(tmp_path / "sums", tasks=tasks)
    assert not (tmp_path / "sums").exists()


def test_a_call_for_less_does_not_end_a_store(tmp_path):
    out = tmp_path / "sums"
    gather(out, n=4, seal=False)
    less = gather(out, n=2)
    assert adds_up(less) == (40, 0, 0, 0, 0)
    assert (less.sealed, less.beyond, less.most_asked) == (False, 40, 4)
    assert adds_up(gather(out, n=6)) == (80, 40, 0, 0, 0)
    assert adds_up(gather(out, n=1)) == (20, 0, 0, 0, 0)  # a sealed one says what it holds
    assert held(out) == wanted(out, n=6)


def test_a_call_for_less_does_not_end_a_run_that_was_stopped(tmp_path):
    """Also when nothing of the rest was begun, and when the run file says no number."""
    out = tmp_path / "sums"
    gather(out, Waiting(0.02), n=4, concurrency=1, totals=Totals(tokens=20 * 75))
    less = gather(out, n=1)
    assert adds_up(less) == (20, 0, 0, 0, 0)
    assert (less.sealed, less.beyond, less.most_asked) == (False, 0, 4)
    assert gather(out, n=1, seal=True).sealed
    old = tmp_path / "old"
    gather(old, n=2, seal=False)
    content = json.loads((old / RUN_FILE).read_text())
    del content["n"]
    (old / RUN_FILE).write_text(json.dumps(content))
    less = gather(old, n=1)
    assert (less.sealed, less.beyond, less.most_asked) == (False, 20, 1)
    assert gather(old, n=2).sealed


def test_a_process_that_asks_for_less_does_not_end_what_another_is_at(tmp_path):
    out = tmp_path / "sums"

    async def both():
        many = asyncio.create_task(
            collect(out, Adder, alone(Waiting(0.02)), TASKS, CollectSettings(n=6, concurrency=5))
        )
        while not (out / RUN_FILE).exists() or not held(out):
            await asyncio.sleep(0.01)
        few = await collect(out, Adder, alone(Waiting()), TASKS, CollectSettings(n=1))
        return few, await many

    few, many = asyncio.run(both())
    assert (few.sealed, many.sealed) == (False, True)
    assert held(out) == wanted(out, n=6)


def test_open_and_sealed_by_choice(tmp_path):
    assert not gather(tmp_path / "open", seal=False).sealed
    report = gather(tmp_path / "shut", Failing({"test-1"}), seal=True)
    assert (report.failed, report.sealed) == (1, True)
    with pytest.raises(OutputExistsError, match=r"0 episodes left and 1 broken.*--since"):
        gather(tmp_path / "shut", retry_failed=True)


def test_a_call_that_failed_at_once_leaves_the_place_free(tmp_path):
    out = tmp_path / "sums"

    def refused():
        raise UsageError("no such thing")

    with pytest.raises(UsageError, match="no such thing"):
        gather(out, environment=refused)
    assert (out / RUN_FILE).exists()
    assert adds_up(gather(out, seed=5, tasks=TASKS[1:], seal=False)) == (0, 19, 0, 0, 0)
    assert json.loads((out / RUN_FILE).read_text())["settings"]["seed"] == 5
    with pytest.raises(OutputExistsError, match="begun with"):
        gather(out)


def test_a_place_where_another_process_works_is_not_free(tmp_path):
    out = tmp_path / "sums"
    with pytest.raises(UsageError):
        gather(out, environment=lambda: (_ for _ in ()).throw(UsageError("no")))
    code = (
        "import sys, time; from pathlib import Path\n"
        "from adp.rollouts.collecting.episode_locks import EpisodeLocks\n"
        f"locks = EpisodeLocks(Path({str(out)!r}))\n"
        "print(locks.join(), flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", code]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"True\n"
        with pytest.raises(OutputExistsError, match="begun with"):
            gather(out, seed=5)
        other.stdin.close()
    assert adds_up(gather(out, seed=5)) == (0, 20, 0, 0, 0)


def test_the_name_of_the_policy_is_kept(tmp_path):
    gather(tmp_path / "sums", Scripted([Turn(text="7")], "seven"), tasks=TASKS[:1])
    (run,) = Store.open(str(tmp_path / "sums")).trajectories()
    assert run.agent_name == "seven"


def test_what_broke_is_told_once_for_each_kind(tmp_path):
    class Down(Waiting):
        async def act(self, request):
            last = request.task.task_id == TASKS[-1].task_id
            raise InfrastructureError(
                "http_500", "another" if last else "the server\nis " + "x" * 500
            )

    report = gather(tmp_path / "sums", Down(), max_failures=30)
    error_messages = report.plain()["whole"]["error_messages"]
    assert list(error_messages) == ["infrastructure: http_500"]
    assert error_messages["infrastructure: http_500"].startswith("the server is xxx")
    assert len(error_messages["infrastructure: http_500"]) == 400
    with pytest.raises(RolloutError, match="not one episode is whole, 20 broke"):
        report.check()
    gather(tmp_path / "other").check()
