"""Attempts at one task that branch: the same tree as ARPO's loop, each with a world of its own."""

from __future__ import annotations

import asyncio
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.branching.group import BranchingGroup, GroupMember, vocabulary_of
from adp.rollouts.collecting.branching.rule import branch_draw
from adp.rollouts.collecting.branching.settings import BranchingSettings
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.plan import episode_seed
from adp.rollouts.collecting.recorder import About, branch_alone
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.turns import Call, Turn
from adp_schema.branches import after
from adp_schema.errors import UsageError
from tests.rollouts.collecting.branching.arpo import arpo
from tests.rollouts.collecting.branching.worlds import (
    VOCABULARY,
    Notebook,
    Unsure,
    ends_at,
    entropy_at,
    tasks,
    turn_of,
)

(TASK,) = tasks(1)


def abouts(n, seed=0, task=TASK):
    seeds = [episode_seed(seed, task.task_id, attempt) for attempt in range(n)]
    return [
        About("notes", attempt, task, "unsure", "notebook", value, timed=False)
        for attempt, value in enumerate(seeds)
    ]


def play(n, policy=None, world=Notebook, limits=None, seed=0, task=TASK, **settings):
    """A group; and the worlds that were made for it."""
    made = []

    def make():
        made.append(world())
        return made[-1]

    policy, shape = policy or Unsure(), BranchingSettings(**settings)
    actor = Alone(policy)
    group = BranchingGroup(
        [GroupMember(about, actor, about.seed) for about in abouts(n, seed, task)],
        make, limits or Limits(), shape, vocabulary_of(policy, shape),
    )  # fmt: skip
    return [branch_alone(item) for item in asyncio.run(group.run())], made


def full(run):
    """The trajectories by id, branches with the steps of what they come from."""
    result = {}
    for item in run:
        parent = result.get(item.parent_id)
        result[item.trajectory_id] = item if parent is None else after(parent, item)
    return result


def facts(trajectory):
    return json.loads(trajectory.extra)["branching"]


def agent(trajectory):
    return [step for step in trajectory.steps if step.source == "agent"]


SHAPES = {
    "n": st.integers(1, 20),
    "initial": st.integers(1, 10),
    "beam": st.integers(1, 4),
    "probability": st.floats(0, 1),
    "weight": st.sampled_from([0.0, 0.2, 1.0, 5.0]),
    "seed": st.integers(0, 1000),
    "baseline": st.booleans(),
}


@given(**SHAPES)
def test_the_tree_is_that_of_arpos_loop(n, initial, beam, probability, weight, seed, baseline):
    run, _ = play(
        n, seed=seed, initial=initial, beam=beam, probability=probability, entropy_weight=weight,
        call_limit=None, baseline="branch" if baseline else "path",
    )  # fmt: skip
    seeds = [about.seed for about in abouts(n, seed)]
    tree = arpo(
        n, initial, beam, probability, weight,
        entropy=lambda i, k: math.fsum(entropy_at("t0", i, k)) / math.log(VOCABULARY),
        ends=lambda i, k: ends_at("t0", i, k),
        draw=lambda i, k, number: branch_draw(seeds[i], k, number),
        own_baseline=baseline,
    )  # fmt: skip
    names = [item.trajectory_id for item in run]
    assert names == [f"notes/t0/attempt-{number}" for number in range(n)]
    assert [facts(item)["kind"] for item in run] == tree.kinds
    parents = [None if item.parent_id is None else names.index(item.parent_id) for item in run]
    assert parents == tree.parents
    assert [len(agent(item)) for item in full(run).values()] == tree.lengths
    # One message of the user stands before the turns.
    shared = [0 if item.parent_step is None else item.parent_step - 1 for item in run]
    assert shared == tree.left_at


@given(st.integers(0, 1000))
def test_an_attempt_sees_only_what_it_and_those_before_it_did(seed):
    run, _ = play(16, seed=seed, initial=3, beam=3, probability=0.7)
    for item in full(run).values():
        answered = item.stop_reason == "answer"
        assert item.success is (True if answered else None)
        words = [json.loads(call.arguments)["word"] for step in agent(item) for call in step.calls]
        assert [int(word.split(".")[1]) for word in words] == list(range(len(words)))
        assert [step.step for step in item.steps] == list(range(len(item.steps)))
        ids = [call.call_id for step in item.steps for call in step.calls]
        assert len(ids) == len(set(ids))


def test_a_branch_keeps_and_pays_only_its_own_steps():
    run, _ = play(16, initial=2, beam=3, probability=0.9)
    branches = [item for item in run if item.parent_id is not None]
    assert branches
    for item in branches:
        assert (item.branch_kind, item.source_format) == ("attempt", "adp_rollout")
        assert item.steps[0].step == item.parent_step
        assert item.total_tokens_out == 3 * len(agent(item))
        assert len(facts(item)["entropies"]) == len(agent(item))
        assert item.task is None


def test_what_comes_out_does_not_depend_on_who_answers_first():
    wanted, _ = play(16, initial=4)
    for _ in range(3):
        run, _ = play(16, Unsure(seconds=0.003), initial=4)
        assert [item.model_dump() for item in run] == [item.model_dump() for item in wanted]


def test_every_world_is_closed_and_a_branch_has_a_world_of_its_own():
    run, made = play(12, initial=3)
    fresh = sum(item.parent_id is None for item in run)
    assert len(made) == fresh < len(run)
    assert [world.closed for world in made] == [1] * fresh


def test_a_world_that_cannot_be_copied_brings_no_branch_and_that_is_counted():
    run, _ = play(12, world=lambda: Notebook(forks=False), initial=3, probability=1.0)
    assert [facts(item)["kind"] for item in run] == ["initial"] * 3 + ["refill"] * 9
    assert sum(facts(item).get("refused", 0) for item in run) > 0


def test_a_world_that_cannot_be_copied_may_do_its_calls_again():
    plain, _ = play(12, initial=3)
    run, made = play(12, world=lambda: Notebook(forks=False), initial=3, without_fork="replay")
    assert [item.model_dump() for item in run] == [item.model_dump() for item in plain]
    assert len(made) == 12
    assert all(world.closed == 1 for world in made)


def test_a_world_that_answers_otherwise_the_second_time_brings_no_branch():
    def world():
        return Notebook(forks=False, noise=True)

    run, made = play(12, world=world, initial=3, without_fork="replay", probability=1.0)
    assert all(item.parent_id is None for item in run)
    assert sum(facts(item).get("refused", 0) for item in run) == len(made) - 12 > 0
    assert all(world.closed == 1 for world in made)


def calling(request):
    call = Call("note", json.dumps({"word": str(request.turn)}))
    return Turn(calls=(call,), entropies=(1.0,))


def test_an_attempt_over_the_limit_of_calls_ends_and_does_not_carry_them_out():
    run, made = play(4, Unsure(calling), initial=1, call_limit=3)
    for item in full(run).values():
        assert (item.stop_reason, item.truncated) == ("call_limit", True)
        turns = agent(item)
        assert len(turns) == 4  # the calls of a parent count
        last = turns[-1].observations[0]
        assert (last.error_type, last.is_error) == ("limit", True)
        assert "an episode has 3 calls" in last.text
    assert len(made[0].words) == 3


def test_limits_count_what_a_branch_has_in_common_with_its_parent():
    run, _ = play(6, Unsure(calling), limits=Limits(max_turns=2), initial=1, probability=1.0)
    assert [len(agent(item)) for item in full(run).values()] == [2] * 6
    assert {item.stop_reason for item in run} == {"max_turns"}


def test_an_attempt_that_breaks_stops_no_other():
    def script(request):
        if request.attempt == 1 and request.turn == 1:
            raise InfrastructureError("http_500", "down")
        return calling(request)

    run, _ = play(6, Unsure(script), initial=3, call_limit=2)
    assert [item.error_type for item in run] == [None, "infrastructure", None, None, None, None]


def test_worlds_that_cannot_be_made_are_broken_attempts():
    def world():
        raise ValueError("no space")

    run, _ = play(5, world=world, initial=2)
    assert [(item.error_type, item.error_message) for item in run] == [
        ("environment", "ValueError: no space")
    ] * 5


def test_a_turn_that_cannot_be_read_does_not_branch():
    def script(request):
        return Turn(malformed="no JSON") if request.turn == 0 else turn_of(request)

    run, _ = play(8, Unsure(script), initial=2, probability=1.0)
    assert all(item.parent_step is None or item.parent_step > 2 for item in run)


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (Scripted([Turn(text="4")], "plain"), "the policy 'plain' gives no log probabilities"),
        (Unsure([Turn(text="4")]), "the policy 'unsure' gives no log probabilities"),
    ],
)
def test_a_policy_without_log_probabilities_is_refused(policy, reason):
    with pytest.raises(UsageError, match=reason):
        play(2, policy)


def test_a_policy_that_does_not_know_its_vocabulary_is_told_how_to_give_it():
    policy = Unsure()
    policy.vocabulary = None
    with pytest.raises(UsageError, match="vocabulary=N"):
        play(2, policy)
    run, _ = play(2, policy, vocabulary=VOCABULARY)
    assert len(run) == 2
