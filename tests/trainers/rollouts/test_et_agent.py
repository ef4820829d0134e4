"""ET-Agent's reward against the formula, over runs in tags and runs whose calls are data."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.spec import load
from adp.trainers.rollouts.et_agent import EtAgentReward, EtAgentSettings
from adp.trainers.rollouts.et_agent_formula import MeasuredRollout, shaped, sigma_share
from adp.trainers.rollouts.reward import ROLLOUT_REWARDS, FinishedRollout, RewardStage
from adp_schema.model import Observation, Step, Task, ToolCall, Trajectory
from tests.trainers.rollouts.et_agent_reference import (
    RESPONSES,
    SIGMAS,
    TRUTHS,
    Response,
    rewards,
    right,
)

RIGHT = "<think>t</think><answer>\\boxed{4}</answer>"
ONE_CALL = "<think>t</think><python>2+2</python><result>4</result>" + RIGHT


def reward(**settings):
    return EtAgentReward(EtAgentSettings(**settings))


def text_rollouts(responses, truths, dataset=None):
    task = Task(task_id="t", answers=json.dumps(truths), dataset=dataset)
    for response in responses:
        steps = [Step(source="user", text="?"), Step(source="agent", kind="llm_turn")]
        steps[1].text = response.text
        yield FinishedRollout(
            response.group, Trajectory(task=task, steps=steps), response_tokens=response.tokens
        )


@given(RESPONSES, TRUTHS, st.sampled_from(["math", "qa"]), SIGMAS, st.integers(1, 9), st.booleans())
def test_it_is_the_formula(responses, truths, rule, sigmas, step, decays):
    steps = 5
    chosen = reward(
        sigma_tool=sigmas[0], sigma_len=sigmas[1], metric=rule, decay=decays, form="tags"
    )
    scores = chosen(list(text_rollouts(responses, truths)), RewardStage(step - 1, steps))
    wanted = rewards(responses, truths, rule, sigmas, (step, steps) if decays else None)
    assert scores == pytest.approx(wanted.tolist())


@given(RESPONSES, TRUTHS, st.sampled_from(["math", "qa"]))
def test_outside_of_a_training_it_is_how_right_the_answer_is(responses, truths, rule):
    stage = RewardStage(0, 5, training=False)
    scores = reward(metric=rule, form="tags")(list(text_rollouts(responses, truths)), stage)
    assert scores == pytest.approx([right(response.text, truths, rule) for response in responses])


@given(
    st.lists(
        st.builds(
            MeasuredRollout, st.just(1.0), st.integers(0, 40), st.integers(0, 9000), st.just(False)
        ),
        min_size=1,
        max_size=16,
    ),
    SIGMAS,
)
def test_fewer_calls_and_shorter_responses_are_never_worth_less(group, sigmas):
    scores = shaped(group, *sigmas)
    assert all(0 <= score <= 4 for score in scores)
    for first, score in zip(group, scores, strict=True):
        for second, other in zip(group, scores, strict=True):
            if first.calls <= second.calls and first.length <= second.length:
                assert score >= other - 1e-12
    assert shaped(group, 0, 0) == [1.0] * len(group)


@pytest.mark.parametrize(
    ("step", "steps", "left"),
    [(1, 5, 1.0), (3, 5, 0.5), (5, 5, 0.0), (9, 5, 0.0), (1, 1, 0.0), (1, 0, 0.0)],
)
def test_what_is_left_of_the_sigmas(step, steps, left):
    assert sigma_share(step, steps) == left


def test_an_extreme_excess_is_no_overflow():
    group = [MeasuredRollout(1.0, calls, 1, False) for calls in (0, 100_000)]
    with np.errstate(over="ignore"):
        wanted = [2 / (1 + np.exp(np.float64(x))) for x in (-250_000, 250_000)]
    assert shaped(group, 5, 0) == pytest.approx(wanted)


def structured(calls, answer, **columns):
    steps = [Step(source="user", text="?")]
    for number in range(calls):
        step = Step(source="agent", kind="llm_turn")
        step.calls.append(ToolCall(call=0, name="search", arguments='{"query": "q"}'))
        step.observations.append(Observation(call=0, text=str(number)))
        steps.append(step)
    steps.append(Step(source="agent", kind="llm_turn", text=answer))
    task = Task(task_id="t", answers='["the Nile"]', dataset=columns.pop("dataset", None))
    return Trajectory(task=task, steps=steps, final_answer=answer, **columns)


def test_calls_that_are_data_are_counted():
    rollouts = [FinishedRollout("g", structured(n, "Nile"), response_tokens=9) for n in (0, 1, 5)]
    rollouts.append(FinishedRollout("g", structured(2, None), response_tokens=9))
    scores = reward(sigma_tool=0.2, metric="qa", decay=False)(rollouts, RewardStage())
    mean = (0 + 1 + 5 + 2) / 4
    wanted = [2 / (1 + np.exp(0.2 * (n - mean))) for n in (0, 1, 5)]
    assert scores == pytest.approx([*wanted, -1.0])


def test_arguments_that_cannot_be_read_are_malformed():
    run = structured(1, "Nile")
    run.steps[1].calls[0] = ToolCall(call=0, name="search", arguments_raw="{")
    rollout = FinishedRollout("g", run)
    assert reward(metric="qa")([rollout], RewardStage()) == [0.0]
    assert reward(metric="qa", format="none")([rollout], RewardStage()) == [1.0]


def test_results_that_an_environment_keeps_apart_belong_to_the_text():
    first = Step(source="agent", text="<think>t</think><python>2+2</python>")
    first.calls.append(ToolCall(call=0, name="python", origin="parsed_from_text"))
    first.observations.append(Observation(call=0, text="4"))
    steps = [first, Step(source="agent", text=RIGHT)]
    task = Task(answers='["4"]')
    apart = FinishedRollout("g", Trajectory(task=task, steps=steps))
    (joined,) = text_rollouts([Response(ONE_CALL, 0, "g")], ["4"])
    chosen = reward(metric="math")
    assert chosen.measure(apart, in_tags=True) == chosen.measure(joined, in_tags=True)
    assert chosen.measure(joined, in_tags=True).calls == 1
    # One rollout with tags says that those of its group without them are malformed.
    plain = FinishedRollout("g", Trajectory(task=task, steps=[Step(source="agent", text="4")]))
    assert chosen([apart, plain], RewardStage(training=False)) == [1.0, 0.0]
    assert chosen([plain], RewardStage(training=False)) == [1.0]


def test_the_second_validator_asks_for_more():
    (rollout,) = text_rollouts([Response("so " + RIGHT, 3, "g")], ["4"])
    scores = [reward(metric="math", format=name)([rollout], RewardStage()) for name in ("v1", "v2")]
    assert scores == [[1.0], [0.0]]


@pytest.mark.parametrize(
    ("dataset", "columns", "score"),
    [
        ("aime24", {}, 0.0),
        ("hotpotqa", {}, 2 / 3),
        ("musique/train.jsonl", {}, 2 / 3),
        ("other", {}, 2 / 3),
        ("other", {"reward": 0.25}, 0.25),
        ("other", {"success": True}, 1.0),
        ("hotpotqa", {"success": True}, 2 / 3),
    ],
)
def test_what_is_right_comes_from_the_data_set(dataset, columns, score):
    rollout = FinishedRollout("g", structured(0, "Nile delta", dataset=dataset, **columns))
    assert reward()([rollout], RewardStage(training=False)) == [pytest.approx(score)]


def test_the_published_code_counts_joined_words():
    rollout = FinishedRollout("g", structured(0, "Nile delta"))
    chosen = reward(metric="qa", words="joined")
    assert chosen([rollout], RewardStage(training=False)) == [0.0]
    same = FinishedRollout("g", structured(0, "The Nile."))
    assert chosen([same], RewardStage(training=False)) == [1.0]


def test_a_run_that_broke_counts_nowhere():
    broken = structured(50, "Nile", error_type="infrastructure")
    unknown = Trajectory(steps=[Step(source="agent", text="Nile")])
    good = [FinishedRollout("g", structured(n, "Nile")) for n in (1, 3)]
    chosen = reward(metric="qa", decay=False)
    alone = chosen(good, RewardStage())
    mixed = [FinishedRollout("g", broken), *good, FinishedRollout("g", unknown)]
    assert chosen(mixed, RewardStage()) == [None, *alone, None]
    assert chosen([], RewardStage()) == []


def test_it_is_named_in_a_configuration():
    kind, settings = load(ROLLOUT_REWARDS, "et_agent:sigma_tool=0.1,format=v2,metric=math")
    made = kind.make(settings)
    assert (made.name, made.settings.sigma_tool, made.settings.format) == ("et_agent", 0.1, "v2")
