"""What is well formed in three styles."""

from __future__ import annotations

import asyncio

import pytest

from adp.eval.scorer import Item
from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.turns import Call, Turn
from tests.eval.scorers.runs import call, figures, reasons, run, scorer, tools, turn, values
from tests.rollouts.collecting.test_episode import ABOUT, Adder


def test_a_rollout_with_a_malformed_turn_and_arguments_that_are_no_json():
    script = [
        Turn(text="{broken", malformed="no JSON"),
        Turn(calls=(Call("add", "{"),)),
        Turn(calls=(Call("add", '{"a": 2, "b": 3}'),)),
        Turn(text="5"),
    ]
    trajectory = asyncio.run(run_episode(ABOUT, Adder(), Alone(Scripted(script))))
    first, second = scorer("format").score(Item(trajectory))
    assert (first.value, second.value) == (0.0, 0.5)
    assert [fault["fault"] for fault in first.evidence["faults"]] == [
        "malformed: no JSON",
        "the arguments of add are no JSON object",
    ]


@pytest.mark.parametrize(
    ("step", "value"),
    [
        (turn(text="four"), 1),
        (turn(call("f", {"a": 1}), text="so"), 1),
        (turn(text='<tool_call>{"name": "f"}'), 0),
        (turn(text="[TOOL_CALLS] f"), 0),
        (turn(call("f", {}, origin="parsed_from_text"), text="<tool_call>...", prose=""), 1),
        (turn(call("f", {}, origin="parsed_from_text"), text="x", prose="<tool_call>{"), 0),
        (turn(call("python", "1 +", kind="code")), 1),
        (turn(extra='{"malformed": null}', text="four"), 1),
    ],
)
def test_turns_as_data(step, value):
    assert values(scorer("format").score(run(step)))["format_correct"] == value


def test_shares_of_turns_over_all_runs():
    good, bad = run(turn(text="a")), run(turn(text="<tool_call>"), turn(text="a"), turn(text="b"))
    result = figures(scorer("format"), good, bad)
    assert result["format_correct"].value == 0.5
    assert result["turns_correct"].value == pytest.approx((1 + 2 / 3) / 2)
    assert result["turns_correct:turns"].value == pytest.approx(3 / 4)


BLOCK = '[TOOL_CALL]{"name": "f", "parameters": {}}[/TOOL_CALL]'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (BLOCK, 1),
        (f"I'll help. {BLOCK} {BLOCK}", 1),
        ("no call", 0),
        (BLOCK.replace('"f"', '"g"'), 0),
        (BLOCK.replace("[/TOOL_CALL]", ""), 0),
        (BLOCK.replace('"parameters"', '"arguments"'), 0),
        (BLOCK.replace("{}", "{"), 0),
        (f"{BLOCK}[TOOL_CALL]", 0),
    ],
)
def test_the_playgrounds_tags(text, value):
    item = run(turn(text=text), tools=tools(f={}))
    score = scorer("format:style=playground").score(item)
    assert values(score)["format_correct"] == value
    assert reasons(score)["turns_correct"] == "playground looks at whole runs"


GOOD = (
    "<think>a</think><search>q</search><result>r</result><think>b</think>"
    "<answer>\\boxed{4}</answer>"
)
UNANSWERED = "a tool call without its result"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (GOOD, None),
        (GOOD.replace("<think>b</think>", ""), None),
        (GOOD.replace("<think>b", "b"), "think tags are missing or do not match"),
        (GOOD.replace("think", "thought"), "think tags are missing or do not match"),
        (GOOD + "<answer></answer>", "there is not exactly one answer"),
        (GOOD.replace("</search>", ""), UNANSWERED),
        (GOOD.replace("<result>r</result>", ""), UNANSWERED),
        (GOOD.replace("search", "python").replace("</result>", ""), UNANSWERED),
        (GOOD.replace("\\boxed{4}", "4"), "the answer has no box"),
    ],
)
def test_et_agents_tags(text, fault):
    score = scorer("format:style=et_agent").score(run(turn(text=text)))[0]
    assert score.evidence["fault"] == fault
    assert score.value == float(fault is None)


def test_reasoning_that_is_kept_apart_is_a_thought():
    item = run(turn(text="<answer>\\boxed{4}</answer>", reasoning="a"))
    assert values(scorer("format:style=et_agent").score(item))["format_correct"] == 1.0


def test_et_agents_tags_over_several_steps():
    first = turn(call("search", {}, "r"), text="<think>a</think><search>q</search>")
    last = turn(text="<think>b</think><answer>\\boxed{4}</answer>")
    item = run(first, last)
    assert values(scorer("format:style=et_agent").score(item))["format_correct"] == 1.0


def test_no_turn_is_unscored():
    assert set(reasons(scorer("format").score(run())).values()) == {"the agent made no turn"}
