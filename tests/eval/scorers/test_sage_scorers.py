"""SAGE's evaluators and rewards, against slow references written from their definitions."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.eval.scorers import agent_reward as reward_module
from adp.eval.scorers.plan_evaluator import evaluate_plan
from adp.eval.scorers.sage_text import (
    has_plan,
    response_text,
    sage_instruction,
    sage_planning,
    sage_reasoning,
    sage_tool_use,
    tools_in_text,
)
from adp.workflows.scorer_reward import ScorerReward, ScorerRewardSettings
from tests.eval.scorers.runs import call, figures, run, scorer, tools, turn, values

WORDS = st.lists(
    st.sampled_from(
        [
            *(
                "tool:",
                "Function:",
                "because",
                "Since",
                "so",
                "first",
                "then",
                "1.",
                "- ",
                "step 1",
            ),
            *(
                "a",
                "b",
                "mail_send_001",
                "use",
                "call",
                "execute",
                "{",
                "[",
                "*",
                "2.",
                "\n",
                "plan:",
            ),
            *("<tool_call>", "</tool_call>", '{"name": "mail_send_001"}', '{"name": "x"', "done"),
            *('"name": "odd"', "name:", "2.x", "1.\n", "Final", "step\n7", "file_open_002"),
        ]
    ),
    max_size=12,
).map(" ".join)


def shared(response, expected):
    wanted, given_words = set(expected.lower().split()), set(response.lower().split())
    return sum(word in given_words for word in wanted) / max(len(wanted), 1)


@given(WORDS, WORDS)
def test_capabilities_are_the_slow_definitions(response, expected):
    text, wanted = response.strip().lower(), expected.strip().lower()
    right = wanted in text
    if re.search("tool:|function:", text):
        right = right or any(word in text for word in wanted.split())
    assert sage_tool_use(response, expected) == right
    plan = 0.3 * bool(re.search(r"step 1|1\.|first|- ", text)) + 0.7 * shared(response, expected)
    assert sage_planning(response, expected) == pytest.approx(plan)
    why = 0.3 * bool(re.search("because|therefore|thus|so|since", text))
    assert sage_reasoning(response, expected) == pytest.approx(
        why + 0.7 * shared(response, expected)
    )
    for form, fits in (
        (None, True),
        ("json", text[:1] in ("{", "[") and text != ""),
        ("list", bool(re.search(r"- |\* |1\.", text))),
        ("poem", True),
    ):
        score = 0.3 * (1 if fits else 0.5) + 0.7 * shared(response, expected)
        assert sage_instruction(response, expected, form) == pytest.approx(score)


PLAN = [r"step\s*\d+", r"first.*then", r"1\.\s*\w+.*2\.\s*\w+", r"plan:", r"步骤"]
TAGGED = r'<tool_call>\s*\{?\s*"?name"?\s*:\s*"?([^"}\s]+)"?'


@given(WORDS)
def test_marks_of_plans_and_names_of_tools_are_sages_patterns(text):
    assert has_plan(text) == any(re.search(pattern, text.lower()) for pattern in PLAN)
    by_verb = re.findall(r"(?:call|use|invoke)\s+([a-z_]+_\d{3})", text, re.IGNORECASE)
    assert tools_in_text(text) == list(dict.fromkeys(re.findall(TAGGED, text) + by_verb))


def slow_reward(response, wanted, trace, optimal):
    """AgentRewardModel, as its definition reads."""
    verb = r"(?:call|use|invoke|execute)\s+([a-z_]+_\d{3})"
    tags = re.findall(TAGGED, response, re.IGNORECASE)
    verbs = re.findall(verb, response, re.IGNORECASE)
    named = list(dict.fromkeys(tags + verbs))
    penalties = 0.0
    hits = len(set(named) & set(wanted))
    if trace:
        completion = sum(good for _, good in trace) / len(trace)
    else:
        ends = any(w in response.lower() for w in ("done", "finished", "conclusion", "final"))
        coverage = hits / len(wanted) if wanted else (0.5 if named else 1.0)
        completion = 0.5 * coverage + (0.5 if ends else 0.25)
    if not wanted:
        accuracy = 0.7 if named else 1.0
    elif not named:
        accuracy = 0.0
    else:
        precision, recall = hits / len(set(named)), hits / len(set(wanted))
        accuracy = 2 * precision * recall / (precision + recall) if hits else 0.0
        penalties -= 0.3 * bool(set(named) - set(wanted))
        penalties -= 0.4 * any(not re.match(r"^[a-z]+(_[a-z]+)*_\d{3}$", name) for name in named)
    steps = len(trace)
    efficiency = 0.5 if not steps else 1.0
    if steps > optimal:
        efficiency = max(0.0, 1 - 0.2 * (steps - optimal) / optimal)
    retries = sum(trace[n][0] == trace[n - 1][0] for n in range(1, steps))
    timing = max(0.5, 1 - 0.1 * retries)
    form = 1.0
    if verbs and not tags:
        form, penalties = form - 0.2, penalties - 0.1
    if response.count("<tool_call>") != response.count("</tool_call>"):
        form, penalties = form - 0.3, penalties - 0.1
    flat = re.search(r"<tool_call>\s*(\{[^}]+\})\s*</tool_call>", response)
    if flat:
        try:
            json.loads(flat[1])
        except ValueError:
            form -= 0.2
    parts = [completion, accuracy, efficiency, timing, max(0.0, form)]
    weighted = sum(w * p for w, p in zip((0.4, 0.25, 0.15, 0.1, 0.1), parts, strict=True))
    return min(1.0, max(0.0, weighted + penalties)), parts


IDS = st.sampled_from(["mail_send_001", "file_open_002", "odd"])


@given(WORDS, st.lists(IDS, max_size=3), st.lists(st.tuples(IDS, st.booleans()), max_size=9),
       st.integers(1, 6))  # fmt: skip
def test_the_reward_is_the_slow_definition(response, wanted, trace, optimal):
    settings = reward_module.AgentRewardSettings(optimal=optimal)
    made = reward_module.agent_reward(response, wanted, trace, settings)
    total, parts = slow_reward(response, wanted, trace, optimal)
    assert made.total == pytest.approx(total)
    assert list(made.parts.values()) == pytest.approx(parts)


def test_hostile_texts_take_no_time():
    texts = ["<tool_call>" + " " * 50_000, "<tool_call>{" * 20_000, "1.1." * 50_000,
             "first " * 50_000, "use " + "a" * 100_000, "step" * 50_000,
             "2.a\n1." * 30_000]  # fmt: skip
    began = time.process_time()
    for text in texts:
        tools_in_text(text, reward_module.VERBS)
        has_plan(text)
        reward_module.agent_reward(text, ["a"])
    assert time.process_time() - began < 5


def answered(name, good=True, **arguments):
    result = {"text": "ok" if good else "Error: no", "is_error": not good}
    return call(name, arguments, result)


def test_the_evaluation_of_training_reads_calls_and_their_results():
    item = run(
        turn(answered("mail_send_001"), text="Step 1: send"),
        turn(answered("mail_send_001", good=False)),
        turn(answered("file_open_002")),
        task={"expected_calls": '["mail_send_001", "web_open_003"]'},
    )
    result = values(scorer("agent_training").score(item))
    assert result["tool_selection_accuracy"] == 0.5
    assert result["plan_success_rate"] == 0.75
    assert (result["step_efficiency"], result["timing_precision"]) == (1.0, 1.0)
    assert result["end_to_end_success"] == pytest.approx(2 / 3)
    total = 0.3 * 0.5 + 0.25 * 0.75 + 0.15 + 0.1 + 0.2 * 2 / 3
    assert result["agent_training"] == pytest.approx(total)
    again = values(scorer("agent_training:repeats=true,optimal=2").score(item))
    assert again["timing_precision"] == pytest.approx(2 / 3)
    assert again["step_efficiency"] == pytest.approx(0.9)
    silent = run(turn(text="Plan: use mail_send_001"), task={"expected_calls": "[]"})
    bare = values(scorer("agent_training").score(silent))
    assert (bare["tool_selection_accuracy"], bare["plan_success_rate"]) == (0.5, 0.8)
    assert bare["end_to_end_success"] == pytest.approx(0.64)


def test_the_reward_of_a_run_is_that_of_its_text_and_trace():
    item = run(
        turn(answered("mail_send_001", to="a")),
        turn(answered("mail_send_001", good=False, to="a")),
        turn(text="done"),
        task={"extra": json.dumps({"ground_truth": {"target_tools": ["mail_send_001"],
                                                    "optimal_steps": 1}})},
    )  # fmt: skip
    text = response_text(item.trajectory)
    total, parts = slow_reward(text, ["mail_send_001"], [("mail_send_001", True)] * 2, 1)
    parts[0], total = 0.5, total - 0.2
    result = values(scorer("agent_reward").score(item))
    assert list(result.values()) == pytest.approx([total, *parts])
    more = values(scorer("agent_reward:all_penalties=true").score(item))
    assert more["agent_reward"] == pytest.approx(total - 0.2)
    other = values(scorer("agent_reward:weights={tool_accuracy: 1}").score(item))
    assert other["agent_reward"] == pytest.approx(parts[1])


def test_the_reward_of_a_training_is_this_number():
    from adp.trainers.rollouts.reward import FinishedRollout, RewardStage

    item = run(turn(answered("mail_send_001")), task={"expected_calls": '["mail_send_001"]'})
    item.trajectory.task = item.task
    made = ScorerReward(ScorerRewardSettings(name="agent_reward"))
    given_rewards = made([FinishedRollout("t", item.trajectory)], RewardStage())
    assert given_rewards == [values(scorer("agent_reward").score(item))["agent_reward"]]


def test_tools_are_verified_by_what_is_on_offer_or_by_their_ids():
    steps = turn(call("mail_send_001", {"to": "a"}), call("mail_send_001"), call("Mail_1"))
    offered = run(steps, tools=tools(mail_send_001={"to": {}}))
    result = values(scorer("tool_verifier").score(offered))
    assert result == pytest.approx(
        {"tool_verifier": 1 / 3, "tool_exists": 2 / 3, "arguments_given": 1 / 3}
    )
    bare = values(scorer("tool_verifier").score(run(steps)))
    assert bare == pytest.approx(
        {"tool_verifier": 2 / 3, "tool_exists": 2 / 3, "arguments_given": 1.0}
    )
    assert values(scorer("tool_verifier:ids=true").score(offered)) == bare


def test_plans_are_judged_by_their_keys():
    whole = [{"goal": "x", "tool": "a"}, {"action": "b"}]
    plan = json.dumps(whole)
    assert values(scorer("plan_evaluator").score(run(turn(text=plan), final_answer=plan))) == {
        "plan_evaluator": pytest.approx(1.0),
        "has_clear_goal": 1, "has_tool_assignments": 1, "is_executable": 1,
    }  # fmt: skip
    assert evaluate_plan([{"tool_id": "a"}, {"goal": "b"}]) == {
        "has_clear_goal": False, "has_tool_assignments": True, "is_executable": False,
    }  # fmt: skip
    acted = run(turn(call("a"), text="To send it"), turn(call("b")))
    assert values(scorer("plan_evaluator").score(acted))["plan_evaluator"] == pytest.approx(1.0)
    nothing = values(scorer("plan_evaluator").score(run(turn(text="hm"))))
    assert set(nothing.values()) == {0.0}
    means = figures(scorer("plan_evaluator"), acted, run(turn(call("a"))))
    assert means["plan_evaluator"].value == pytest.approx(0.85)
