"""What counts as a call of the agent and as its result."""

from __future__ import annotations

import pytest

from adp.eval.scorers.usage import cost_of, seconds_of, tokens_of, written_tokens
from adp.rollouts.trajectory_reading import agent_calls, agent_texts, key_of, last_text
from adp_schema.model import Observation, Step, ToolCall, Trajectory
from tests.eval.scorers.runs import call, run, turn


def names(*steps):
    return [made.name for made in agent_calls(run(*steps).trajectory)]


def test_only_calls_of_the_agent_count():
    assert names(turn(call("f"), call("g", requestor="user"), call("h", requestor="agent"))) == [
        "f",
        "h",
    ]
    assert names(turn(call("f", kind="message"), call("g", kind="code"))) == ["g"]
    assert names(turn(call("f"), is_copied_context=True), turn(call("g"))) == ["g"]
    user = turn(call("f"))
    user.source = "user"
    nobody = turn(call("g"))
    nobody.source = None
    assert names(user, nobody) == ["g"]


@pytest.mark.parametrize(
    ("observation", "answered"),
    [
        ({"call_id": "2"}, [0, 1]),
        ({"call": 0}, [1, 0]),
        ({"call": 1, "call_id": "lost"}, [0, 1]),
        ({"call": 7}, [0, 0]),
        ({}, [0, 0]),
    ],
)
def test_a_result_belongs_to_the_call_that_it_names(observation, answered):
    calls = [ToolCall(call=0, call_id="1", name="f"), ToolCall(call=1, call_id="2", name="f")]
    step = Step(source="agent", calls=calls, observations=[Observation(**observation)])
    result = agent_calls(Trajectory(steps=[step]))
    assert [len(made.results) for made in result] == answered


def test_a_result_that_names_nothing_belongs_to_the_only_call():
    step = Step(source="agent", calls=[ToolCall(name="f")], observations=[Observation(text="4")])
    (made,) = agent_calls(Trajectory(steps=[step]))
    assert [result.text for result in made.results] == ["4"]


def test_no_arguments_are_an_empty_object_and_broken_ones_none():
    step = Step(
        source="agent",
        calls=[
            ToolCall(name="f"),
            ToolCall(name="f", arguments_kind="invalid"),
            ToolCall(name="f", arguments_raw="{"),
            ToolCall(name="f", arguments='{"a": 1}'),
            ToolCall(name="f", arguments='{"a": 1.0e0}'),
        ],
    )
    result = agent_calls(Trajectory(steps=[step]))
    assert [made.arguments for made in result] == [{}, None, None, {"a": 1}, {"a": 1.0}]
    assert key_of(result[2]) == ("f", "{")


def test_texts_of_the_agent():
    item = run(turn(call("f"), text="one", reasoning="why"), turn(text=""), turn(call("g")))
    assert list(agent_texts(item.trajectory)) == ["why", "one"]
    assert last_text(item.trajectory) == "one"
    assert last_text(run().trajectory) is None


def test_usage_that_makes_no_sense_is_unknown():
    item = run(turn(tokens_in=-5, tokens_out=3, cost_usd=float("nan"), duration_ms=-1))
    assert (tokens_of(item.trajectory), written_tokens(item.trajectory)) == (3, 3)
    assert cost_of(item.trajectory) is None
    assert seconds_of(item.trajectory) is None
    timed = run(turn(call("f", {}, {"text": "4", "duration_ms": 500}), duration_ms=1000))
    assert seconds_of(timed.trajectory) == 1.5
    total = run(turn(), total_tokens_out=4)
    assert written_tokens(total.trajectory) == 4
