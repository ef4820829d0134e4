"""Rounds over a store: buffers, places, going on, and what must not change."""

from __future__ import annotations

import asyncio
import json

import pytest

from adp.rollouts.environments.calculator import Calculator
from adp.rollouts.evolving.evolve import evolve
from adp.rollouts.evolving.lineage import lineage_of
from adp.rollouts.evolving.selection import Standing, select_best
from adp.rollouts.evolving.sources import read_jobs
from adp.rollouts.policy import InfrastructureError
from adp_schema.errors import OutputExistsError, RolloutError, UsageError
from adp_schema.seal_store import END
from adp_schema.store import Store
from tests.rollouts.evolving.models import good_answer, role_of
from tests.rollouts.evolving.worlds import Model, evolved, evolver_of, rolled_out


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return rolled_out(tmp_path_factory.mktemp("first") / "sums")


def dumped(root):
    """All that a store holds, by id."""
    return {
        run.trajectory_id: (
            run.model_dump(exclude={"seq"}),
            [step.model_dump() for step in run.steps],
            [call.model_dump() for step in run.steps for call in step.calls],
            [seen.model_dump(exclude={"seq"}) for step in run.steps for seen in step.observations],
            [link.model_dump() for link in run.links],
        )
        for run in Store.open(str(root)).trajectories()
    }


def buffers(root):
    """The trajectories of each task in the order of their places."""
    tasks = {}
    for run in Store.open(str(root)).trajectories():
        tasks.setdefault(run.task_id, []).append(run)
    return {name: sorted(runs, key=lambda run: run.attempt) for name, runs in tasks.items()}


def test_all_rounds_are_made_and_counted(store, tmp_path):
    report = evolved(tmp_path / "out", store)
    assert report.sealed
    assert not report.left
    assert not report.failed
    assert report.initial == report.asked == 6
    tried = sum(counts.tried for counts in report.operators.values())
    assert tried == 6 * 3 * 3
    for counts in report.operators.values():
        assert counts.tried == counts.made + counts.unchanged + counts.given_up + counts.broken
    assert len(report.solved) == 4
    assert report.solved == sorted(report.solved)
    assert report.solved[-1] == 6
    again = evolved(tmp_path / "out", store)
    assert again.made_now == 0
    assert again.operators == report.operators


def test_parents_are_those_that_selection_gives(store, tmp_path):
    evolved(tmp_path / "out", store)
    for runs in buffers(tmp_path / "out").values():
        used = []
        for number in (1, 2, 3):
            made_before = [run for run in runs if lineage_of(run.extra)["round"] < number]
            members = [run for run in made_before if run.error_type is None]
            standings = [
                Standing(float(run.success is True), sum(len(step.calls) for step in run.steps))
                for run in members
            ]
            used.append(select_best(standings, used))
            parent = members[used[-1]]
            made = [lineage_of(run.extra) for run in runs
                    if lineage_of(run.extra)["round"] == number]  # fmt: skip
            assert {item["parent"] for item in made} == {parent.trajectory_id}
            wanted = (
                {"re_rollout", "redundant_step", "global_refinement"}
                if parent.success
                else {"step_refine", "step_hint", "trajectory_hint"}
            )
            assert {item["operator"] for item in made} == wanted


def test_it_is_the_same_whatever_runs_at_once(store, tmp_path):
    for name, concurrency, pause in (("a", 1, 0.0), ("b", 6, 0.02), ("c", 3, 0.01)):
        evolver = evolver_of(Model(pause=pause), dataset="d", concurrency=concurrency)
        evolved(tmp_path / name, store, evolver)
    assert dumped(tmp_path / "a") == dumped(tmp_path / "b") == dumped(tmp_path / "c")


def test_a_run_that_was_cancelled_anywhere_leads_to_the_same(store, tmp_path):
    evolved(tmp_path / "whole", store, evolver_of(dataset="d"))
    wanted = dumped(tmp_path / "whole")

    async def cut(after):
        evolver = evolver_of(Model(pause=0.01), dataset="d", concurrency=2)
        run = asyncio.create_task(evolve(tmp_path / "cut", read_jobs(store), evolver))
        await asyncio.wait([run], timeout=after)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)

    held = {}
    for after in (0.02, 0.05, 0.08, 0.13):
        asyncio.run(cut(after))
        now = dumped(tmp_path / "cut")
        assert held.items() <= now.items(), "what was there was changed"
        assert all(wanted[name] == value for name, value in now.items())
        held = now
    report = evolved(tmp_path / "cut", store, evolver_of(dataset="d"))
    assert report.made_now == len(wanted) - len(held)
    assert dumped(tmp_path / "cut") == wanted


def test_more_rounds_go_on_in_an_open_store(store, tmp_path):
    evolved(tmp_path / "out", store, evolver_of(rounds=1, seal=False, dataset="d"))
    before = dumped(tmp_path / "out")
    evolved(tmp_path / "out", store, evolver_of(rounds=3, dataset="d"))
    evolved(tmp_path / "whole", store, evolver_of(rounds=3, dataset="d"))
    after = dumped(tmp_path / "out")
    assert before.items() <= after.items()
    assert after == dumped(tmp_path / "whole")


def test_other_settings_are_refused(store, tmp_path):
    evolved(tmp_path / "out", store)
    for settings in ({"seed": 1}, {"correct": "qa"}, {"operators": ("step_hint",)}, {"tries": 1}):
        with pytest.raises(OutputExistsError, match="was begun with"):
            evolved(tmp_path / "out", store, evolver_of(**settings))
    with pytest.raises(OutputExistsError, match="adp evolve did not make"):
        evolved(tmp_path / "sums", rolled_out(tmp_path / "sums", count=1))


@pytest.mark.parametrize("name", ["step_hint", "re_rollout", "global_refinement"])
def test_an_operator_alone(store, tmp_path, name):
    report = evolved(tmp_path / "out", store, evolver_of(operators=(name,)))
    assert set(report.operators) <= {name}
    for runs in buffers(tmp_path / "out").values():
        right = runs[0].success is True
        fits = right != (name == "step_hint")
        assert len(runs) > 1 if fits else len(runs) == 1


def test_operators_and_models_that_are_not_there(store, tmp_path):
    with pytest.raises(UsageError, match="step_hnt"):
        evolved(tmp_path / "out", store, evolver_of(operators=("step_hnt",)))
    evolver = evolver_of()
    evolver.models.clear()
    with pytest.raises(UsageError, match="the operator redundant_step asks a refiner"):
        evolved(tmp_path / "out", store, evolver)


def test_several_attempts_begin_the_buffer_and_the_switch_of_et_agent(tmp_path):
    store = rolled_out(tmp_path / "sums", count=3, n=3)
    for name, switch in (("ours", False), ("theirs", True)):
        evolver = evolver_of(first_is_used=switch, rounds=1)
        evolved(tmp_path / name, store, evolver)
        for runs in buffers(tmp_path / name).values():
            standings = [
                Standing(float(run.success is True), sum(len(step.calls) for step in run.steps))
                for run in runs[:3]
            ]
            assert [lineage_of(run.extra)["from"] for run in runs[:3]] == [
                f"sums/{run.task_id}/attempt-{n}" for n, run in enumerate(runs[:3])
            ]
            parent = lineage_of(runs[3].extra)["parent"]
            assert parent.endswith(f"attempt-{select_best(standings, first_is_used=switch)}")


class Broken(Model):
    """A model whose server fails at times; else it answers as before."""

    def __init__(self, fails, answer=good_answer):
        super().__init__(answer)
        self.fails = fails

    async def act(self, request):
        if self.fails(request):
            raise InfrastructureError("http_500", "down")
        return await super().act(request)


def test_what_broke_is_made_again_when_asked(store, tmp_path):
    def fails(request):
        return bool(request.tools) and request.turn == 1

    report = evolved(tmp_path / "out", store, evolver_of(Broken(fails), max_failures=500))
    assert report.failed
    assert not report.sealed
    assert report.bad_answers["policy: no answer: http_500"] >= 4 * report.failed
    broken = {run.trajectory_id: run for run in Store.open(str(tmp_path / "out")).trajectories()
              if run.error_type not in (None, "not_made")}  # fmt: skip
    assert {run.error_type for run in broken.values()} == {"infrastructure"}
    left_alone = evolved(tmp_path / "out", store)
    assert left_alone.failed == report.failed
    assert left_alone.made_now == 0
    again = evolved(tmp_path / "out", store, evolver_of(retry_failed=True))
    assert not again.failed
    assert again.sealed
    assert again.made_now == len(broken)
    names = {run.trajectory_id for run in Store.open(str(tmp_path / "out")).trajectories()}
    assert {f"{name}#2" for name in broken} <= names


def test_a_dead_server_stops_the_run_and_it_goes_on(store, tmp_path):
    evolver = evolver_of(Broken(lambda request: True), max_failures=4, concurrency=1)
    with pytest.raises(RolloutError, match="in a row broke"):
        evolved(tmp_path / "out", store, evolver)
    report = evolved(tmp_path / "out", store, evolver_of(retry_failed=True))
    assert not report.failed
    assert not report.left


def is_judged(request):
    return role_of({"messages": request.messages}) == "judge"


def test_a_dead_judge_stops_the_run_and_it_goes_on(store, tmp_path):
    evolver = evolver_of(Broken(is_judged), correct="math", max_failures=4, concurrency=1)
    with pytest.raises(RolloutError, match="the judge gave no answer"):
        evolved(tmp_path / "out", store, evolver)
    kept = list(Store.open(str(tmp_path / "out")).trajectories())
    assert {run.error_type for run in kept} == {"infrastructure"}
    assert {run.success for run in kept} == {None}
    report = evolved(tmp_path / "out", store, evolver_of(correct="math", retry_failed=True))
    assert not report.failed
    assert not report.left
    assert report.sealed
    whole = evolved(tmp_path / "whole", store, evolver_of(correct="math"))
    assert report.solved == whole.solved


def test_what_a_judge_that_was_away_did_not_judge_is_made_again(store, tmp_path):
    def away(request):
        return is_judged(request) and request.seed % 3 == 0

    evolver = evolver_of(Broken(away), correct="math", max_failures=500, tries=1)
    report = evolved(tmp_path / "out", store, evolver)
    assert report.failed
    assert not report.sealed
    for name, counts in report.operators.items():
        tried = counts.made + counts.unchanged + counts.given_up + counts.broken
        assert counts.tried == tried, name
    again = evolved(tmp_path / "out", store, evolver_of(correct="math", tries=1, retry_failed=True))
    assert not again.failed
    assert again.sealed


def test_what_is_wrong_with_a_call_stops_it(store, tmp_path):
    def refuses(request):
        raise UsageError("the key is wrong")

    with pytest.raises(UsageError, match="the key is wrong"):
        evolved(tmp_path / "out", store, evolver_of(Broken(refuses)))


class Refusing(Calculator):
    """An environment that cannot do a task."""

    def reset(self, task=None, *, seed=None):
        if task.task_id.endswith("-1"):
            raise UsageError("not this one")
        return super().reset(task, seed=seed)


def test_an_environment_that_refuses_a_task_breaks_that_one_alone(store, tmp_path):
    report = evolved(tmp_path / "out", store, evolver_of(environments=Refusing))
    assert report.failed
    assert all("not this one" in reason for reason in report.failures)
    kept = {run.task_id for run in Store.open(str(tmp_path / "out")).trajectories()
            if run.error_type is None and run.attempt}  # fmt: skip
    assert len(kept) == 5


def test_trajectories_without_a_verdict_are_carried_out_again(store, tmp_path):
    growing = Store.grow(str(tmp_path / "bare"))
    for run in store.trajectories():
        run.success = run.reward = None
        growing.append(run)
    growing.close()
    evolved(tmp_path / "out", Store.open(str(tmp_path / "bare")), evolver_of(rounds=1))
    first = [runs[0] for runs in buffers(tmp_path / "out").values()]
    assert all(run.success is not None for run in first)
    assert all(lineage_of(run.extra)["replayed"] for run in first)
    known = {run.task_id: run.success for run in store.trajectories()}
    assert {run.task_id: run.success for run in first} == known


def test_the_lineage_in_sql(store, tmp_path):
    evolved(tmp_path / "out", store)
    rows = Store.open(str(tmp_path / "out")).query(
        "SELECT t.trajectory_id, t.extra->>'$.evolving.parent' AS parent, l.target_id, l.kind "
        "FROM trajectories t LEFT JOIN links l USING (seq) "
        "WHERE t.extra->>'$.evolving.operator' <> 'initial'"
    ).to_pylist()  # fmt: skip
    assert len(rows) == 54
    assert all(row["parent"] == row["target_id"] and row["kind"] == "fork" for row in rows)


def test_secrets_and_folders_are_not_noted(store, tmp_path):
    evolved(tmp_path / "out", store)
    facts = json.loads((tmp_path / "out" / "evolve.json").read_text())["settings"]
    assert str(tmp_path) not in json.dumps(facts)


def test_a_run_that_was_killed_while_it_sealed_ends_it(store, tmp_path):
    evolved(tmp_path / "out", store, evolver_of(seal=False, dataset="d"))
    before = dumped(tmp_path / "out")
    (tmp_path / "out" / "growing" / END).touch()
    report = evolved(tmp_path / "out", store, evolver_of(dataset="d"))
    assert report.sealed
    assert report.made_now == 0
    assert dumped(tmp_path / "out") == before


def test_a_sealed_store_takes_no_more(store, tmp_path):
    evolved(tmp_path / "out", store, evolver_of(rounds=1))
    with pytest.raises(OutputExistsError, match="is sealed, with 6 tasks left"):
        evolved(tmp_path / "out", store, evolver_of(rounds=2))


class Busy(Model):
    """A model that waits until three requests of a round are there together."""

    def __init__(self):
        super().__init__()
        self.together = asyncio.Barrier(3)
        self.first = True

    async def act(self, request):
        if self.first:
            await asyncio.wait_for(self.together.wait(), 30)
            self.first = False
        return await super().act(request)


def test_the_three_operators_of_a_round_run_at_once(tmp_path):
    store = rolled_out(tmp_path / "sums", 1)
    report = evolved(tmp_path / "out", store, evolver_of(Busy(), rounds=1, concurrency=1))
    assert sum(counts.tried for counts in report.operators.values()) == 3
