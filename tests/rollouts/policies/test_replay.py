"""A recorded run, carried out again."""

from __future__ import annotations

import asyncio

import pytest

from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.recorder import About
from adp.rollouts.policies.replay import ReplayPolicy, ReplaySettings
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.policy import POLICIES, InfrastructureError
from adp.rollouts.spec import load
from adp.rollouts.turns import Call, Turn, Usage
from adp_schema.errors import EmptyResultError
from adp_schema.store import Store
from tests.rollouts.collecting.test_episode import TASK, Adder

LONG = [
    Turn(
        text="Let me add.",
        calls=(Call("add", '{"a": 2,  "b": 3}', "x"), Call("add", '{"a": 1', "x")),
        reasoning="Two and three.",
        model="m",
        response_id="r",
        stop_reason="tool_calls",
        usage=Usage(3, 4, 1, 2, 0.25, {"prompt_tokens": 3}),
        prompt_token_ids=(1, 2, 3),
        completion_token_ids=(4, 5),
        logprobs=(-0.5, -0.25),
        extra={"tries": 2},
    ),
    Turn(text="<tool_call>{", malformed="no JSON"),
    Turn(calls=(Call("sub", "{}"), Call("add", "NaN"))),
    Turn(text="5", reasoning=""),
]
SHORT = [Turn(text="6")]


def about(attempt):
    return About(dataset="sums", task=TASK, attempt=attempt, policy="p", timed=False)


def play(policy, attempt=0, limits=None):
    return asyncio.run(run_episode(about(attempt), Adder(), Alone(policy), limits))


@pytest.fixture
def store(tmp_path):
    place = tmp_path / "store"
    with Store.grow(place) as growing:
        growing.append(play(Scripted(LONG)))
        growing.append(play(Scripted(SHORT), 1))
        growing.append(play(Scripted(LONG), 2, Limits(max_turns=2)))
    return str(place)


def dumped(trajectory):
    steps = [step.model_dump_json() for step in trajectory.steps]
    parts = [part for step in trajectory.steps for part in (*step.calls, *step.observations)]
    return [trajectory.model_dump_json(), *steps, *(part.model_dump_json() for part in parts)]


def test_a_replayed_run_is_the_recorded_one(store):
    kind, settings = load(POLICIES, f"replay:store={store}")
    policy = kind.make(settings)
    assert dumped(play(policy)) == dumped(play(Scripted(LONG)))
    assert dumped(play(policy, 1)) == dumped(play(Scripted(SHORT), 1))


def test_where_the_record_ends_the_episode_is_cut(store):
    policy = ReplayPolicy(ReplaySettings(store=store))
    result = play(policy, 2)
    assert (result.truncated, result.stop_reason, result.error_type) == (
        True,
        "recording_ended",
        None,
    )
    assert dumped(play(policy, 2, Limits(max_turns=2))) == dumped(
        play(Scripted(LONG), 2, Limits(max_turns=2))
    )


def test_what_was_not_recorded_is_no_fault_of_the_agent(store):
    result = play(ReplayPolicy(ReplaySettings(store=store)), 7)
    assert (result.error_type, result.stop_reason) == ("infrastructure", "not_recorded")


def test_a_store_without_such_runs(store):
    with pytest.raises(EmptyResultError, match="data set other"):
        ReplayPolicy(ReplaySettings(store=store, dataset="other"))


def record(place, *runs):
    """A store of runs: data set, words of the task, attempt, what is said."""
    with Store.grow(place) as growing:
        for dataset, asks, attempt, says in runs:
            growing.append(run_of(turn_of(says), dataset, asks, attempt))
    return str(place)


def turn_of(text):
    """A policy that says a text; None for one that cannot be asked."""

    def script(request):
        if text is None:
            raise InfrastructureError("down", "no answer")
        return Turn(text=text)

    return Scripted(script)


def run_of(policy, dataset, asks, attempt, tries=1):
    task = TASK.model_copy(update={"instruction": asks})
    ours = About(dataset, task=task, attempt=attempt, policy="p", environment="adder", tries=tries)
    return asyncio.run(run_episode(ours, Adder(), Alone(policy)))


def test_tasks_with_one_id_are_told_apart_by_what_they_ask(tmp_path):
    """Two files of tasks that both begin with the id t1, merged into one store."""
    place = record(
        tmp_path / "s", ("a", "2 + 3?", 0, "five"), ("b", "4 + 4?", 0, "eight"),
        ("b", "4 + 4?", 1, "again"), ("c", "4 + 4?", 0, "of another policy"),
    )  # fmt: skip
    policy = ReplayPolicy(ReplaySettings(store=place))
    cases = (("2 + 3?", 0, "five"), ("4 + 4?", 0, "eight"), ("4 + 4?", 1, "again"))
    for asks, attempt, says in cases:
        assert run_of(policy, "new", asks, attempt).final_answer == says
    for asks, attempt in (("2 + 3?", 1), ("9 + 9?", 0)):
        result = run_of(policy, "new", asks, attempt)
        assert (result.error_type, result.stop_reason) == ("infrastructure", "not_recorded")
    only = ReplayPolicy(ReplaySettings(store=place, dataset="a"))
    assert run_of(only, "new", "9 + 9?", 0).final_answer == "five"  # a mended task


def test_a_try_that_was_made_again_is_not_replayed(tmp_path):
    with Store.grow(tmp_path / "s") as growing:
        growing.append(run_of(turn_of(None), "a", "2 + 3?", 0))
        growing.append(run_of(turn_of("five"), "a", "2 + 3?", 0, tries=2))
    policy = ReplayPolicy(ReplaySettings(store=str(tmp_path / "s")))
    assert run_of(policy, "new", "2 + 3?", 0).final_answer == "five"
