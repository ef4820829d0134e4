"""More attempts, more tasks and further tries beside a finished store, put into one by a merge."""

from __future__ import annotations

import pytest

from adp.eval.scorers.outcome import KIND as OUTCOME
from adp.eval.scoring import ScoreOptions, choose, score_store
from adp.rollouts.collecting.settings import Totals
from adp.stores.merge import merge
from adp_schema.errors import NothingNewError, OutputExistsError, StoreError, UsageError
from adp_schema.growing import seal
from adp_schema.store import Store
from tests.rollouts.collecting.adder import Waiting, sums
from tests.rollouts.collecting.test_collect import TASKS, Failing, adds_up, gather, held, wanted


class Seldom(Waiting):
    """Right or wrong by the seed of the episode."""

    async def act(self, request):
        turn = await super().act(request)
        return turn if request.seed % 3 else type(turn)(text="no idea")


def contents(store):
    """id -> everything, but for the place in the store."""
    return {
        trajectory.trajectory_id: [
            trajectory.model_dump(exclude={"seq", "source_file"}),
            *(step.model_dump() for step in trajectory.steps),
        ]
        for trajectory in Store.open(str(store)).trajectories()
    }  # fmt: skip


def figures(store):
    report = score_store(Store.open(str(store)), choose([f"{OUTCOME.name}"]), ScoreOptions())
    return report.scorers[0].figures


@pytest.mark.parametrize("chain", [False, True])
def test_more_attempts_and_tasks_beside_a_store_are_as_in_one_store(tmp_path, chain):
    first, more, last = (tmp_path / name for name in ("sums", "more", "last"))
    gather(first, Seldom(), TASKS[:12], n=2, timed=False)
    report = gather(more, Seldom(), n=4, timed=False, since=[str(first)])
    assert adds_up(report) == (24, 56, 0, 0, 0)
    assert report.sealed
    assert (report.whole.episodes, report.now.episodes) == (80, 56)
    assert not set(held(first)) & set(held(more))
    again = gather(more, Seldom(), n=4, timed=False, since=[str(first)])
    assert adds_up(again) == (80, 0, 0, 0, 0)
    whole = tmp_path / "whole"
    merge([str(first), str(more)], str(whole), workers=1)
    # Further ones: beside both of them, or beside the merged store, which has no run file.
    since = [str(whole)] if chain else [str(first), str(more)]
    report = gather(last, Seldom(), n=5, timed=False, since=since)
    assert adds_up(report) == (80, 20, 0, 0, 0)
    assert len(report.notes) == chain
    merge([*since, str(last)], str(tmp_path / "all"), workers=1)
    gather(tmp_path / "one" / "sums", Seldom(), n=5, timed=False)
    assert contents(tmp_path / "all") == contents(tmp_path / "one" / "sums")
    assert figures(tmp_path / "all") == figures(tmp_path / "one" / "sums")
    assert {"pass@5", "pass^5"} <= {figure.name for figure in figures(tmp_path / "all")}


def test_what_broke_in_a_finished_store_is_tried_again_beside_it(tmp_path):
    first, more = tmp_path / "sums", tmp_path / "more"
    gather(first, Failing({"test-3", "test-4"}), seal=True)
    with pytest.raises(OutputExistsError, match=r"1 broken|2 broken") as messages:
        gather(first, retry_failed=True)
    assert str(messages.value).endswith(
        f"the same call with --since {first} -o {first}-more; then "
        f"adp merge {first} {first}-more -o {first}-whole"
    )
    with pytest.raises(NothingNewError, match=r"holds all 20 episodes.*2 of them broken"):
        gather(more, since=[str(first)])
    assert not more.exists()
    half = gather(more, Failing({"test-4"}), since=[str(first)], retry_failed=True)
    assert adds_up(half) == (18, 1, 0, 1, 0)
    assert not half.sealed
    whole = gather(more, since=[str(first)], retry_failed=True)
    assert adds_up(whole) == (19, 1, 0, 0, 0)
    assert whole.sealed
    assert set(held(more)) == {
        f"sums/{name}" for name in ("test-3/attempt-0#2", "test-4/attempt-0#2",
                                    "test-4/attempt-0#3")
    }  # fmt: skip
    merge([str(first), str(more)], str(tmp_path / "all"), workers=1)
    report = score_store(Store.open(str(tmp_path / "all")), choose(["outcome"]), ScoreOptions())
    assert (report.trajectories, sum(report.broken.values())) == (20, 0)


def test_a_store_that_was_ended_early_is_made_whole_beside_it(tmp_path):
    first, more = tmp_path / "sums", tmp_path / "more"
    gather(first, Waiting(0.01), n=2, concurrency=1, totals=Totals(tokens=75 * 9))
    done = len(held(first))
    with pytest.raises(StoreError, match="still growing; seal it first"):
        gather(more, n=2, since=[str(first)])
    seal(first)
    # A budget counts what the new store holds.
    part = gather(more, n=2, since=[str(first)], concurrency=1, totals=Totals(tokens=75 * 5))
    assert (part.done_before, part.stopped) == (done, "total_tokens")
    assert 5 <= part.done_now <= 6
    assert gather(more, n=2, since=[str(first)]).sealed
    assert held(first) + held(more) == wanted(first, n=2)


def test_stores_of_another_run_are_refused(tmp_path):
    first, out = tmp_path / "sums", tmp_path / "more"
    gather(first)
    other = tmp_path / "other"
    gather(other)
    changed = [*sums(None, "test", 1, 4), *TASKS[1:]]
    for given, error, output in [
        (
            {"seed": 1},
            OutputExistsError,
            "sums was begun with --seed 0, and this call has --seed 1",
        ),
        ({"timed": False}, OutputExistsError, "begun without --no-times, and this call has --no-t"),
        ({"tasks": changed}, UsageError, "the task 'test-0' of .*sums has another instruction"),
        ({"dataset": "d"}, OutputExistsError, "with --dataset sums, and this call has --dataset d"),
        ({"since": [str(first), str(other)]}, UsageError, r"several data sets \(other, sums\)"),
        ({"since": [str(tmp_path / "none")]}, StoreError, "none is not a store"),
        ({"since": [str(out)]}, UsageError, "-o and --since both name"),
    ]:
        with pytest.raises(error, match=output):
            gather(out, **{"n": 2, "since": [str(first)], **given})
        assert not out.exists()
    gather(out, n=2, since=[str(first)], seal=False)
    for given, output in [
        ({"n": 2}, "begun with --since, and this call is without it"),
        ({"n": 2, "since": [str(tmp_path / "sums2")]}, "with other stores in --since than this"),
    ]:
        gather(tmp_path / "sums2", dataset="sums", timed=True, n=1)
        with pytest.raises(OutputExistsError, match=output):
            gather(out, **{"dataset": "sums", **given})
