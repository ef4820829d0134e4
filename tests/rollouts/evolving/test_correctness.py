"""Whether a trajectory is right, by each of the rules."""

from __future__ import annotations

import asyncio
import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.evolving.asking import JUDGE, Asking
from adp.rollouts.evolving.correctness import (
    judge_trajectory,
    read_verdict,
    rule_of,
)
from adp.rollouts.judging.answers import UnreadableError
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.turns import Turn
from adp_schema.model import Task, Trajectory

WORDS = st.lists(st.sampled_from(["the", "The", "river", "Maas", "of"]), min_size=1, max_size=6)
TEXTS = WORDS.map(" ".join)


def test_a_verdict_is_one_of_two_words():
    assert read_verdict("Correct") is True
    assert read_verdict("They are the same.\n**Incorrect.**\n") is False
    for text in ("", "Correct, I think", "Not correct", "correct or incorrect"):
        with pytest.raises(UnreadableError):
            read_verdict(text)


def judged(rule, answer, answers, script=None, *, source=None, success=None, tries=4):
    extra = json.dumps({"source": source}) if source else None
    task = Task(task_id="t", instruction="?", answers=json.dumps(answers), extra=extra)
    models = {} if script is None else {JUDGE: Scripted(script)}
    asking = Asking(models, tries)
    trajectory = Trajectory(final_answer=answer, success=success)
    return asyncio.run(judge_trajectory(trajectory, task, rule, asking)), asking


def test_the_environment():
    for success in (True, False, None):
        verdict, _ = judged("environment", "x", ["y"], success=success)
        assert (verdict.correct, verdict.quality) == (success, float(bool(success)))


def test_questions_are_right_above_the_limit_only():
    verdict, _ = judged("qa", "the French Republic", ["Republic", "French Republic"])
    assert (verdict.correct, verdict.quality) == (False, pytest.approx(0.8))
    verdict, _ = judged("qa", "french republic", ["x", "French Republic"])
    assert (verdict.correct, verdict.quality) == (True, 1.0)


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_f1_is_the_best_of_precision_and_recall(answer, references):
    def f1(reference):
        left, right = Counter(answer.lower().split()), Counter(reference.lower().split())
        common = sum(min(left[word], right[word]) for word in left)
        if not common:
            return 0.0
        precision, recall = common / sum(left.values()), common / sum(right.values())
        return 2 * precision * recall / (precision + recall)

    verdict, _ = judged("qa", answer, references)
    expected = max(map(f1, references))
    assert verdict.quality == pytest.approx(expected)
    if abs(expected - 0.8) > 1e-9:
        assert verdict.correct is (expected > 0.8)


def test_mathematics_by_equality_without_a_judge():
    assert judged("math", r"\boxed{12}", ["12.0"])[0].correct is True
    assert judged("math", r"It is \boxed{\frac{1}{2}}.", ["0.5"])[0].correct is True
    assert judged("math", "13", ["12"])[0].correct is False


def test_no_answer_is_wrong_and_nobody_is_asked():
    def never(request):
        raise AssertionError

    assert judged("math", " ", ["12"], never)[0].correct is False
    assert judged("math", None, ["12"], never)[0].correct is False


def test_without_references_nobody_can_say():
    assert judged("qa", "x", [])[0].correct is None


def test_the_judge_is_asked_until_its_answer_can_be_used_four_times_at_most():
    answers = iter(["perhaps", "", "Correct?!", "so: Correct\nIncorrect"])
    verdict, asking = judged("math", "1", ["1"], lambda request: Turn(text=next(answers)))
    assert verdict.correct is True
    assert [bad["reason"] for bad in asking.bad] == ["neither Correct nor Incorrect", "empty"]

    asked = []

    def bad(request):
        asked.append(request.seed)
        if len(asked) == 2:
            raise InfrastructureError("http_500", "down")
        return Turn(text="perhaps")

    verdict, asking = judged("math", "1", ["1"], bad)
    assert (verdict.correct, verdict.quality) == (None, 0.0)
    assert len(set(asked)) == 4
    assert "neither Correct nor Incorrect 3, no answer: http_500 1 (down)" in verdict.facts["why"]
    assert verdict.unreachable is None


def test_a_judge_of_whom_no_answer_came_can_be_asked_later():
    def down(request):
        raise InfrastructureError("bad_answer", "it is no JSON; check base_url")

    verdict, asking = judged("math", "1", ["1"], down)
    assert verdict.correct is None
    assert verdict.unreachable == verdict.facts["why"]
    assert verdict.unreachable.endswith("no answer: bad_answer 4 (it is no JSON; check base_url)")
    assert {bad["reason"] for bad in asking.bad} == {"no answer: bad_answer"}


def test_the_rule_of_a_source_is_the_same_everywhere():
    for source in ("openr1", "numina-tir", "numina-cot", "aime", "dapo", "still"):
        assert rule_of("et_agent", Task(extra=json.dumps({"source": source}))) == "math"
    assert rule_of("et_agent", Task(extra='{"source": "hotpotqa"}')) == "qa"
    assert rule_of("et_agent", Task()) == "qa"
    assert rule_of("environment", Task(extra='{"source": "aime"}')) == "environment"
