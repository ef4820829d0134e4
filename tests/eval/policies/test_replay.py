"""A recorded run, carried out again."""

from __future__ import annotations

import asyncio

import pytest

from adp.eval.policies.replay import ReplayPolicy, ReplaySettings
from adp.eval.policies.scripted import Scripted
from adp.eval.policy import POLICIES
from adp.eval.rollout.actor import Alone
from adp.eval.rollout.episode import run_episode
from adp.eval.rollout.limits import Limits
from adp.eval.rollout.recorder import About
from adp.eval.spec import load
from adp.eval.turns import Call, Turn, Usage
from adp_schema.errors import EmptyResultError
from adp_schema.store import Store
from tests.eval.rollout.test_episode import TASK, Adder

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
    found = play(policy, 2)
    assert (found.truncated, found.stop_reason, found.error_type) == (True, "recording_ended", None)
    assert dumped(play(policy, 2, Limits(max_turns=2))) == dumped(
        play(Scripted(LONG), 2, Limits(max_turns=2))
    )


def test_what_was_not_recorded_is_no_fault_of_the_agent(store):
    found = play(ReplayPolicy(ReplaySettings(store=store)), 7)
    assert (found.error_type, found.stop_reason) == ("infrastructure", "not_recorded")


def test_a_store_without_such_runs(store):
    with pytest.raises(EmptyResultError, match="data set other"):
        ReplayPolicy(ReplaySettings(store=store, dataset="other"))
