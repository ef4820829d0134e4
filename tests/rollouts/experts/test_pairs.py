"""From assisted episodes to preference pairs: collected, curated, and rendered as chats."""

from __future__ import annotations

import json

import pytest

from adp.rendering.pairs import BadPair, pairs_of
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.turns import Turn
from adp_schema.model import Task
from adp_schema.seal_store import seal
from adp_schema.store import Store
from tests.curation.recipes import curate
from tests.rollouts.collecting.worlds import Chain, acts, facts_of, gold_turn, look, play

ALTERNATES = {"rule": "alternates", "prefer": "actor", "actors": ["expert", "agent"]}


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """Three episodes: stuck on errors, a hasty answer, and two turns of the user."""
    gold = [gold_turn("One?", "a", "b"), gold_turn("Two?", "b", "c")]
    two = Task(task_id="t2", instruction="One?", gold_trajectory=json.dumps(gold))
    runs = [
        play(lambda request: look("x", f"thought {request.turn}"), limits=Limits(max_turns=6)),
        play([Turn(text="guess", reasoning="easy")] * 9, attempt=1),
        play(
            lambda request: look("b") if request.turn % 2 else Turn(text="hm"),
            task=two,
            environment=Chain(["Two?"]),
            limits=Limits(max_turns=9),
        ),
    ]
    path = tmp_path_factory.mktemp("collected") / "store"
    with Store.grow(path) as store:
        for run in runs:
            assert store.append(run)
    seal(path)
    return path, runs


@pytest.mark.parametrize("options", [{"rule": "m3_step"}, ALTERNATES])
def test_alternates_become_pairs_that_can_be_rendered(collected, tmp_path, options):
    path, runs = collected
    curate({"runs": str(path)}, tmp_path / "out", {"pairs": options})
    store = Store.open(str(tmp_path / "out"))
    pairs = list(pairs_of(store))
    branches = [branch for run in runs for branch in run.branches]
    assert len(pairs) == len(branches) > 8
    steps = {branch.trajectory_id: branch for run in runs for branch in (run, *run.branches)}
    for pair in pairs:
        assert not isinstance(pair, BadPair), pair.reason
        row = pair.pair
        for side, chat, actor in (
            (row.chosen_id, pair.chosen, "expert"),
            (row.rejected_id, pair.rejected, "agent"),
        ):
            run = steps[side]
            (step,) = [step for step in run.steps if step.step == row.context_up_to]
            assert step.actor == actor
            (ours,) = chat.trained()
            message = chat.messages[ours]
            assert message.role == "assistant"
            assert ours == pair.shared
            assert [call.name for call in message.calls or ()] == [c.name for c in step.calls]
    kinds = {(bool(p.chosen.messages[p.shared].calls), bool(p.rejected.messages[p.shared].calls))
             for p in pairs}  # fmt: skip
    assert kinds == {(True, True), (True, False)}


def test_the_context_of_a_pair_is_the_run_before_the_step(collected, tmp_path):
    path, runs = collected
    curate({"runs": str(path)}, tmp_path / "out", {"pairs": {"rule": "m3_step"}})
    ps = {(p.pair.context_id, p.pair.context_up_to): p for p in
             pairs_of(Store.open(str(tmp_path / "out")))}  # fmt: skip
    run = runs[0]
    assert acts(run)[2] == "e:look a"
    pair = ps[run.trajectory_id, 3]
    messages = [
        (message.role, message.reasoning) for message in pair.chosen.messages[: pair.shared]
    ]
    assert messages == [
        ("user", None),
        *(("assistant", "thought 0"), ("tool", None)),
        *(("assistant", "thought 1"), ("tool", None)),
    ]
    assert pair.rejected.messages[pair.shared].reasoning == "thought 2"


def test_a_store_gives_back_who_acted(collected):
    path, runs = collected
    store = Store.open(str(path))
    for run in runs:
        back = store.get(run.trajectory_id)
        assert facts_of(back) == facts_of(run)
        assert [step.actor for step in back.steps] == [step.actor for step in run.steps]
    columns = ("parent_id", "parent_step", "branch_kind")
    rows = {row for row in store.scan("trajectories").select(columns).collect().iter_rows()}
    made = {
        (run.trajectory_id, branch.parent_step, "alternate")
        for run in runs
        for branch in run.branches
    }
    assert rows - {(None, None, None)} == made
