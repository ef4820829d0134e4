"""M3's modes of assistance: who acts when, and what is tried on the side."""

from __future__ import annotations

import itertools
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from adp.rollouts.collecting.episode import turn_seed
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.experts.judges import Judges
from adp.rollouts.experts.modes import Assistance
from adp.rollouts.experts.settings import AssistSettings
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.turns import Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task
from tests.rollouts.collecting.worlds import (
    TASK,
    Chain,
    Knowing,
    acts,
    facts_of,
    gold_turn,
    labels,
    look,
    play,
)

BAD, STUCK, GOOD = "BAD_TOOL_CALL", "AGENT_STUCK", "SUCCESS_TOOL_CALL"


# ---- the modes -----------------------------------------------------------------------------


def test_none_is_the_agent_alone():
    run = play([look("x"), look("a"), Turn(text="d")], mode="none")
    assert acts(run) == ["a:look x", "a:look a", "a:=d"]
    assert facts_of(run)["tracker"] == [0, 0, 0]
    assert labels(run) == [[BAD], [GOOD], []]
    assert run.branches == []


def test_ground_truth_is_the_reference_run_with_its_thoughts():
    judges = Judges(witness=lambda _: True, rewriter=lambda _: "rewritten")
    run = play(None, mode="ground_truth", judges=judges)
    assert acts(run) == ["e:look a", "e:look b", "e:look c", "e:=d"]
    thoughts = [step.reasoning for step in run.steps if step.source == "agent"]
    assert thoughts == ["gold thought a", "gold thought b", "gold thought c", "all seen"]
    assert (run.success, facts_of(run)["tracker"]) == (True, [1, 1, 1, 1])


@settings(max_examples=25)
@given(st.floats(0, 1), st.integers(0, 2**31), st.booleans())
def test_random_draws_from_the_seed_of_the_turn(probability, seed, compat):
    chance = {"m3_epsilon": 1 - probability} if compat else {"expert_probability": probability}
    run = play(lambda _: look("a"), mode="random", seed=seed, limits=Limits(max_turns=6), **chance)
    draws = [random.Random(f"assist/{turn_seed(seed, n)}").random() for n in range(6)]
    bar = 1 - chance["m3_epsilon"] if compat else probability
    wanted = [int(draw < bar) for draw in draws]
    assert facts_of(run)["tracker"] == wanted[: len(facts_of(run)["tracker"])]
    assert len(facts_of(run)["tracker"]) == 6 or run.terminated


@pytest.mark.parametrize(("epsilon", "actor"), [(1.0, "a"), (0.0, "e")])
def test_m3_s_epsilon_is_the_chance_of_the_agent(epsilon, actor):
    run = play([look("a"), Turn(text="d")], mode="random", m3_epsilon=epsilon)
    assert {act[0] for act in acts(run)} == {actor}


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "random"},
        {"mode": "random", "expert_probability": 0.5, "m3_epsilon": 0.5},
        {"mode": "none", "expert_probability": 0.5},
        {"recent_limit": 0},
        {"init_limit": 0},
    ],
)
def test_settings_that_do_not_fit_are_refused(wrong):
    with pytest.raises(ValidationError):
        AssistSettings(**wrong)


# ---- the rules of the mode informed --------------------------------------------------------


def test_rule_1_no_help_before_the_first_steps():
    script = [look("x")] * 3
    run = play(script, init_limit=3, limits=Limits(max_turns=4))
    assert facts_of(run)["tracker"] == [0, 0, 0, 1]
    assert [STUCK in label for label in labels(run)] == [False, False, True, False]


def test_rule_2_no_two_interventions_in_a_row():
    run = play(lambda _: look("x"), limits=Limits(max_turns=8))
    # The last two steps before the fifth are an error and the expert's, so no rule asks.
    judges = Judges(overseer=lambda _: True)
    always = play(lambda _: look("x"), judges=judges, limits=Limits(max_turns=6))
    assert facts_of(always)["tracker"] == [0, 0, 1, 0, 1, 0]
    tracker = facts_of(run)["tracker"]
    assert all(result + two < 2 for result, two in itertools.pairwise(tracker))


def test_rule_3_errors_only():
    run = play([look("x"), look("y"), look("z")], limits=Limits(max_turns=3))
    assert acts(run) == ["a:look x", "a:look y", "e:look a"]
    assert labels(run)[:2] == [[BAD], [BAD, STUCK]]
    mixed = play([look("x"), look("a"), look("z")], limits=Limits(max_turns=3))
    assert acts(mixed)[2] == "a:look z"


def test_rule_3_by_the_text_as_m3_does_it():
    class Silent(Chain):
        def offered(self):
            tool = super().offered()[0]
            return [type(tool)("look", "", tool.parameters, lambda key: f"Error of {key}")]

    script = [look("x"), look("y"), look("z")]
    run = play(script, environment=Silent(), limits=Limits(max_turns=3))
    assert facts_of(run)["tracker"] == [0, 0, 0]
    run = play(script, environment=Silent(), limits=Limits(max_turns=3), errors="text")
    assert facts_of(run)["tracker"] == [0, 0, 1]


def test_rule_4_the_same_action_again():
    other = Turn(calls=(look("a").calls[0].__class__("look", '{ "key" : "a" }'),))
    run = play([look("a"), other, look("a")], limits=Limits(max_turns=3))
    assert acts(run) == ["a:look a", "a:look a", "e:look b"]
    assert labels(run)[1] == [GOOD, STUCK]
    varied = play([look("a"), look("b"), look("a"), look("b")], limits=Limits(max_turns=4))
    assert facts_of(varied)["tracker"] == [0, 0, 0, 0]


def test_rule_5_the_overseer_is_asked_last():
    asked = []

    def overseer(question):
        asked.append((len(question.history), question.plan, question.query))
        return len(question.history) == 3

    script = [look("a"), look("b"), look("a"), look("c")]
    run = play(script, judges=Judges(overseer=overseer), limits=Limits(max_turns=4))
    assert facts_of(run)["tracker"] == [0, 0, 0, 1]
    plan = ("what is at a?", "what is at b?", "what is at c?")
    assert asked == [(2, plan, TASK.instruction), (3, plan, TASK.instruction)]
    assert facts_of(run)["counts"]["overseer.yes"] == 1
    assert facts_of(run)["counts"]["stuck_by_overseer"] == 1


def test_an_overseer_that_cannot_be_read_says_no():
    judges = Judges(overseer=lambda _: None)
    run = play([look("a"), look("b"), look("c")], judges=judges, limits=Limits(max_turns=3))
    assert facts_of(run)["tracker"] == [0, 0, 0]
    assert facts_of(run)["counts"]["overseer.unreadable"] == 2


def test_other_modes_say_stuck_only_with_an_overseer():
    assert all(STUCK not in label for label in labels(play([look("x")] * 4, mode="none")))
    judges = Judges(overseer=lambda _: False)
    run = play([look("x")] * 3, mode="none", judges=judges, limits=Limits(max_turns=3))
    assert [STUCK in label for label in labels(run)] == [False, True, True]
    assert facts_of(run)["tracker"] == [0, 0, 0]


def test_the_answer_is_always_the_expert_s():
    run = play([look("a"), Turn(text="wrong"), Turn(text="wrong"), Turn(text="wrong")])
    # The expert looks at what was not seen before it answers, as in M3.
    assert acts(run) == ["a:look a", "e:look b", "e:look c", "e:=d"]
    assert facts_of(run)["counts"]["answers_discarded"] == 3
    extra = json.loads(run.steps[-1].extra)
    assert (extra["expert_because"], extra["discarded_answer"]) == ("final", "wrong")


_TURNS = st.lists(
    st.sampled_from([look("a"), look("b"), look("c"), look("x"), Turn(text="guess")])
    | st.just(Turn(text="{", malformed="no JSON")),
    min_size=12,
    max_size=12,
)


@settings(max_examples=25)
@given(_TURNS, st.integers(1, 4), st.integers(1, 4), st.lists(st.booleans(), max_size=12))
def test_informed_as_m3_writes_it(script, init_limit, recent_limit, says):
    """A slow reference: the rules are computed anew from the finished run."""
    answers = iter(says)
    judges = Judges(overseer=lambda _: next(answers, False))
    run = play(
        script,
        judges=judges,
        limits=Limits(max_turns=12),
        init_limit=init_limit,
        recent_limit=-recent_limit,
    )
    answers = iter(says)
    steps = [step for step in run.steps if step.source == "agent"]
    expert = False
    for n, step in enumerate(steps):
        proposed = script[n]
        final = not proposed.calls and proposed.malformed is None
        assert step.actor == ("expert" if expert or final else "agent")
        if not step.calls and step.actor == "expert":
            assert run.terminated
            assert n == len(steps) - 1
            break
        history = steps[: n + 1]
        recent = history[-recent_limit:]
        keys = {
            (json.dumps([(c.name, json.loads(c.arguments)) for c in item.calls]), item.text)
            for item in recent
        }
        if len(history) < init_limit or step.actor == "expert":
            expert = False
        elif all(seen.is_error for item in recent for seen in item.observations) or len(keys) == 1:
            expert = True
        else:
            expert = next(answers, False)
        assert ("REWARD_AGENT_STUCK" in step.labels) == expert
    assert facts_of(run)["tracker"] == [int(step.actor == "expert") for step in steps]


# ---- the expert ----------------------------------------------------------------------------


def test_what_was_seen_is_left_out_and_errors_are_not_seen():
    run = play([look("a"), look("x"), look("x"), Turn(text="d")], limits=Limits(max_turns=5))
    # After two errors the expert goes on behind the call that the agent made itself.
    assert acts(run)[:4] == ["a:look a", "a:look x", "a:look x", "e:look b"]
    nothing = play([look("x"), look("x")], limits=Limits(max_turns=3))
    assert acts(nothing)[2] == "e:look a"


def test_a_response_that_was_seen_counts_without_the_same_call():
    gold = gold_turn("Where does a lead?", "ab", "d")
    gold[2]["response"] = '"value": "b"'
    gold[1]["output"]["arguments"]["key"] = "A"
    task = Task(task_id="t", instruction="?", gold_trajectory=json.dumps([gold]))
    run = play([look("a"), look("a")], task=task, limits=Limits(max_turns=3))
    assert acts(run)[2] == "e:look b"


def test_the_witness_and_the_rewriter_are_asked():
    async def witness(question):
        return question.action.calls[0].arguments == '{"key": "a"}'

    judges = Judges(witness=witness, rewriter=lambda question: f"now {len(question.history)}")
    run = play([look("c"), look("c")], judges=judges, limits=Limits(max_turns=3))
    assert acts(run)[2] == "e:look b"
    assert run.steps[3].reasoning == "now 2"
    first = play([look("x"), look("x")], judges=judges, limits=Limits(max_turns=3))
    # Nothing but errors was seen: the action is taken as it is, with its thought.
    assert (acts(first)[2], first.steps[3].reasoning) == ("e:look a", "gold thought a")


def test_each_turn_of_the_user_begins_anew():
    gold = [gold_turn("One?", "a", "b"), gold_turn("Two?", "b", "c")]
    task = Task(task_id="t", instruction="One?", gold_trajectory=json.dumps(gold))
    script = [look("x"), Turn(text="?"), Turn(text="?"), look("x"), look("x"), Turn(text="?")]
    run = play(script, task=task, environment=Chain(["Two?"]))
    assert (
        acts(run)
        == [
            *("a:look x", "e:look a", "e:=b"),
            # One error of the turn before does not count: the user spoke since.
            *("a:look x", "a:look x", "e:look b", "e:=c"),
        ][: len(acts(run))]
    )
    assert len(acts(run)) == 7


def test_expected_calls_and_answers_are_a_reference_run_too():
    calls = [{"name": "look", "arguments": {"key": "c"}}]
    task = Task(
        task_id="t", instruction="?", expected_calls=json.dumps(calls), answers='["d", "D"]'
    )
    run = play(None, mode="ground_truth", task=task)
    assert acts(run) == ["e:look c", "e:=d"]


def test_an_environment_may_be_the_expert():
    run = play([look("a"), look("x"), look("x"), Turn(text="?")] * 3, environment=Knowing())
    assert acts(run)[3] == "e:look b"
    assert (run.success, run.steps[-1].actor) == (True, "expert")
    gold = play([Turn(text="?")], environment=Knowing(), expert="gold", limits=Limits(max_turns=1))
    assert gold.steps[1].reasoning == "gold thought a"


def test_a_task_without_a_solution_is_left_out():
    bare = Task(task_id="t", instruction="?")
    script = Scripted([])
    for mode in ("ground_truth", "informed"):
        assistance = Assistance(AssistSettings(mode=mode), script)
        who = {"ground_truth": "the policy 'expert'", "informed": "the mode 'informed'"}[mode]
        assert assistance.missing(bare, Chain()).startswith(f"{who} needs an expert who knows")
        assert assistance.missing(bare, Knowing()) is None
        assert assistance.missing(TASK, Chain()) is None
        with pytest.raises(UsageError, match="needs an expert"):
            play([look("a")], task=bare, mode=mode)
    assert Assistance(AssistSettings(mode="none"), script).missing(bare, Chain()) is None
    with pytest.raises(UsageError, match="needs a policy"):
        Assistance(AssistSettings(mode="informed"))


def test_an_expert_that_knows_nothing_more_leaves_the_turn_to_the_agent():
    task = Task(task_id="t", instruction="?", expected_calls='[{"name": "look"}]')
    script = [look("a"), Turn(text="d"), Turn(text="d")]
    run = play(script, task=task)
    assert acts(run) == ["a:look a", "e:look ?", "a:=d"]
    assert facts_of(run)["counts"]["expert_silent"] == 1
