"""Pairs of alternates that were followed to the end: against the outcomes of the known tree."""

from __future__ import annotations

import json

import pytest

from adp.rendering.pairs import BadPair, pairs_of
from adp_schema.branches import after
from adp_schema.seal_store import seal
from adp_schema.store import Store
from tests.curation.recipes import curate
from tests.rollouts.experts.test_following import followed

SUBOPTIMAL = frozenset({"REWARD_BAD_TOOL_CALL", "REWARD_AGENT_STUCK"})


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """A store of one run with its tree, and all of its trajectories by id, whole."""
    run = followed(3)
    path = tmp_path_factory.mktemp("followed") / "store"
    with Store.grow(path) as store:
        store.append(run)
    seal(path)
    known = {run.trajectory_id: run}
    for branch in run.branches:
        known[branch.trajectory_id] = after(known[branch.parent_id], branch)
    return path, run, known


def paired(path, out, **options):
    """The pairs of one rule, rendered, and what was said of the candidates."""
    curate({"runs": str(path)}, out, {"pairs": options})
    return list(pairs_of(Store.open(str(out))))


def differing(run, known):
    """Where the outcome of a branch is not that of its parent: (chosen, rejected, step)."""
    return {
        (branch.trajectory_id, branch.parent_id, branch.parent_step)
        if branch.success
        else (branch.parent_id, branch.trajectory_id, branch.parent_step)
        for branch in run.branches
        if branch.success != known[branch.parent_id].success
    }


def test_a_step_is_chosen_when_what_follows_it_succeeds(collected, tmp_path):
    path, run, known = collected
    pairs = paired(path, tmp_path / "out", rule="alternates", prefer="outcome")
    assert not [pair.reason for pair in pairs if isinstance(pair, BadPair)]
    rows = [pair.pair for pair in pairs]
    expected = differing(run, known)
    assert {(row.chosen_id, row.rejected_id, row.context_up_to) for row in rows} == expected
    assert len(rows) == len(expected) == 5
    assert {row.level for row in rows} == {"step"}
    assert {(row.chosen_score, row.rejected_score, row.margin) for row in rows} == {(1.0, 0.0, 1.0)}
    for pair in pairs:
        for name, chat in (
            (pair.pair.chosen_id, pair.chosen),
            (pair.pair.rejected_id, pair.rejected),
        ):
            (ours,) = chat.trained()
            assert ours == pair.shared
            step = known[name].steps[pair.pair.context_up_to]
            assert [call.arguments for call in chat.messages[ours].calls or ()] == [
                json.loads(call.arguments) for call in step.calls
            ]


@pytest.mark.parametrize("mask", [True, False])
def test_whole_continuations_are_paired_and_masked(collected, tmp_path, mask):
    path, run, known = collected
    out = tmp_path / "out"
    options = {"rule": "m3_trajectory", "alternates": True, "mask_suboptimal_traces": mask}
    pairs = paired(path, out, **options)
    expected = differing(run, known)
    assert len(pairs) == len(expected)
    good = [pair for pair in pairs if not isinstance(pair, BadPair)]
    # A rejected side that only gives up has no bad turn that could be trained.
    assert len(good) == (3 if mask else 5)
    for pair in good:
        row = pair.pair
        assert (row.chosen_id, row.rejected_id, row.context_up_to) in expected
        assert row.level == "trajectory"
        for name, chat, worse in (
            (row.chosen_id, pair.chosen, False),
            (row.rejected_id, pair.rejected, True),
        ):
            steps_after = known[name].steps[row.context_up_to :]
            bad = {
                step.step for step in steps_after if not SUBOPTIMAL.isdisjoint(step.labels or ())
            }
            steps = [step.step for step in steps_after if not mask or worse == (step.step in bad)]
            assert [chat.messages[place].step for place in chat.trained()] == steps


def test_m3_s_own_rule_takes_alternates_of_alternates_too(collected, tmp_path):
    path, run, known = collected
    pairs = paired(path, tmp_path / "out", rule="m3_step")
    assert len(pairs) == len(run.branches)
    for pair in pairs:
        row = pair.pair
        assert known[row.chosen_id].steps[row.context_up_to].actor == "expert"
        assert known[row.rejected_id].steps[row.context_up_to].actor == "agent"
