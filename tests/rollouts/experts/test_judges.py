"""Judges made of a policy: what they are told, and how their words are read."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.collecting.limits import Limits
from adp.rollouts.experts.judges import (
    Judges,
    Observed,
    Stuck,
    overseer_of,
    rewriter_of,
    verdict,
    witness_of,
)
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.turns import Turn
from tests.rollouts.collecting.worlds import acts, facts_of, look, play


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Thought: it repeats itself.\nConclusion: yes", True),
        ("conclusion:  NO.\n\n", False),
        ("Conclusion: yes, or no", None),
        ("Conclusion: yes\nConclusion: no", None),
        ("The conclusion is clear.\nConclusion: yes", None),
        ("Yes", None),
        ("", None),
    ],
)
def test_only_a_clear_conclusion_is_read(text, wanted):
    assert verdict(text) is wanted


@given(st.text())
def test_no_text_breaks_the_reading(text):
    assert verdict(text) in (True, False, None)


def test_policies_as_judges():
    asked = []

    def answer(request):
        system, user = (message["content"] for message in request.messages)
        asked.append((system.split(".")[0], json.loads(user)))
        if "Write down" in system or "write down" in system:
            return Turn(text=" I saw that b lies at a. ")
        return Turn(text=f"Thought: hm\nConclusion: {'yes' if 'watch' in system else 'no'}")

    policy = Scripted(answer)
    judges = Judges(overseer_of(policy), witness_of(policy), rewriter_of(policy))
    script = [look("a"), look("c")]
    run = play(script, judges=judges, limits=Limits(max_turns=3), save_alternates=False)
    # The witness says that nothing was seen, so the expert begins at the beginning.
    assert acts(run) == ["a:look a", "a:look c", "e:look a"]
    assert run.steps[3].reasoning == "I saw that b lies at a."
    counts = facts_of(run)["counts"]
    assert {name: counts[name] for name in counts if "." in name} == {
        "overseer.yes": 1,
        "witness.no": 1,
        "rewriter.yes": 1,
    }
    kinds = [sorted(facts) for _, facts in asked]
    assert kinds == [
        ["history", "question", "questions that lead to the answer"],
        ["action", "information", "question", "seen"],
        ["history", "next action", "question", "thought of a reference solution"],
    ]
    assert [item["observation"] for item in asked[0][1]["history"]] == [
        '{"value": "b", "count": 1}',
        '{"value": "d", "count": 2}',
    ]


def test_a_judge_that_cannot_be_had_breaks_the_episode_as_infrastructure():
    def down(request):
        raise InfrastructureError("http_500", "the server failed")

    judges = Judges(overseer=overseer_of(Scripted(down)))
    run = play([look("a"), look("b")], judges=judges)
    assert (run.error_type, run.stop_reason, run.success) == ("infrastructure", "http_500", None)


def test_an_unreadable_turn_of_a_judge_is_no_answer():
    policy = Scripted(lambda request: Turn(text="Conclusion: yes", malformed="cut"))

    async def ask():
        history = ()
        stuck = Stuck("?", (), history)
        observed = Observed("?", look("a"), None, history)
        return await overseer_of(policy)(stuck), await witness_of(policy)(observed)

    assert asyncio.run(ask()) == (None, None)
