"""Reference runs of tasks, in every form and in none."""

from __future__ import annotations

import json

from hypothesis import given, settings

from adp.eval.rollout.assist_gold import GoldTurn, gold_of
from adp_schema.model import Task
from tests.eval.rollout.worlds import gold_turn
from tests.eval.scorers.test_any import TASK, VALUE


def keys(turn: GoldTurn) -> list[str]:
    return [call.arguments for step in turn.steps for call in step.turn.calls]


def test_one_flat_list_is_one_turn():
    task = Task(gold_trajectory=json.dumps(gold_turn("Where?", "ab", "c")))
    (turn,) = gold_of(task)
    assert (turn.query, turn.answer, turn.raw_answer) == ("Where?", "c", "c")
    assert keys(turn) == ['{"key": "a"}', '{"key": "b"}']
    assert [step.response for step in turn.steps] == ["{'value': 'b'}", "{'value': 'c'}", None]
    assert turn.steps[-1].turn.text == "c"
    assert turn.plan == ("what is at a?", "what is at b?")


def test_facts_of_the_task_come_before_those_of_the_run():
    facts = [{"query": "Q", "gold_answer": None, "was_truncated": True}, None, 3]
    gold = [gold_turn("One?", "a", "b"), gold_turn("Two?", "b", "c")]
    task = Task(gold_trajectory=json.dumps(gold), turns=json.dumps(facts))
    one, two = gold_of(task)
    assert (one.query, one.answer, one.truncated) == ("Q", "b", True)
    assert (two.query, two.answer, two.truncated) == ("Two?", "c", False)


def test_expected_calls_stand_in_where_no_call_can_be_read():
    calls = json.dumps([{"name": "look"}, {"name": ""}, {"arguments": {}}, 3])
    task = Task(gold_trajectory="[[{}]]", expected_calls=calls, answers="[7]", instruction="?")
    (turn,) = gold_of(task)
    assert keys(turn) == ["{}"]
    assert (turn.answer, turn.query) == ("7", "?")
    assert gold_of(None) == ()
    assert gold_of(Task()) == ()
    assert gold_of(Task(expected_calls="{}", gold_trajectory="[" * 9000)) == ()


@settings(max_examples=60)
@given(TASK, VALUE)
def test_whatever_a_task_holds_it_is_read(task, value):
    for one in (task, Task(gold_trajectory=json.dumps([[value], [value]]))):
        for turn in gold_of(one):
            assert turn.steps
            assert all(step.turn.calls or step.turn.text is not None for step in turn.steps)
