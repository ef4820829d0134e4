"""Reference runs of tasks, in every form and in none."""

from __future__ import annotations

import json

from hypothesis import given, settings

from adp.rollouts.experts.modes import Assistance
from adp.rollouts.experts.reference_run import GoldTurn, gold_of
from adp.rollouts.experts.settings import AssistSettings
from adp.rollouts.task_references import expected_calls
from adp_schema.model import Task
from tests.eval.scorers.test_any import TASK, VALUE
from tests.rollouts.collecting.worlds import TASK as WHERE
from tests.rollouts.collecting.worlds import Chain, acts, gold_turn, play


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
    result, two = gold_of(task)
    assert (result.query, result.answer, result.truncated) == ("Q", "b", True)
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
    for item in (task, Task(gold_trajectory=json.dumps([[value], [value]]))):
        for turn in gold_of(item):
            assert turn.steps
            assert all(step.turn.calls or step.turn.text is not None for step in turn.steps)


def message(role, content=None, *calls, **more):
    """A message in the OpenAI shape."""
    listed = [
        {"id": f"c{number}", "type": "function",
         "function": {"name": "look", "arguments": json.dumps({"key": key})}}
        for number, key in enumerate(calls)
    ]  # fmt: skip
    return {"role": role, "content": content, **({"tool_calls": listed} if calls else {}), **more}


def test_messages_are_read_as_the_scorers_read_them():
    messages = [
        message("system", "Be good."),
        message("user", [{"type": "text", "text": "Where?"}]),
        message("assistant", "first a", "a"),
        message("tool", "{'value': 'b'}", tool_call_id="c0"),
        message("assistant", None, "b", "c"),
        message("tool", "1", tool_call_id="c0"),
        message("tool", "2", tool_call_id="c1"),
        message("assistant", "It is d."),
    ]
    for value in (messages, {"messages": messages}, [messages]):
        task = Task(gold_trajectory=json.dumps(value), answers='["no"]')
        (turn,) = gold_of(task)
        assert (turn.query, turn.answer) == ("Where?", "It is d.")
        assert [len(step.turn.calls) for step in turn.steps] == [1, 2, 0]
        assert keys(turn) == [json.dumps({"key": key}) for key in "abc"]
        assert [step.turn.reasoning for step in turn.steps] == ["first a", None, None]
        assert [step.response for step in turn.steps] == ["{'value': 'b'}", None, None]
        assert turn.steps[-1].turn.text == "It is d."
        made = [call.name for step in turn.steps for call in step.turn.calls]
        assert [call.name for call in expected_calls(task)] == made


def test_messages_of_several_turns():
    messages = [
        message("user", "One?"),
        message("assistant", None, "a"),
        message("tool", "b"),
        message("assistant", "b"),
        message("user", "Two?"),
        message("assistant", "I know: c"),
    ]
    result, two = gold_of(Task(gold_trajectory=json.dumps(messages)))
    assert (result.query, result.answer, len(result.steps)) == ("One?", "b", 2)
    assert (two.query, two.answer, len(two.steps)) == ("Two?", "I know: c", 1)
    silent = Task(gold_trajectory=json.dumps(messages[:3]), answers='["b"]')
    (turn,) = gold_of(silent)
    assert turn.steps[-1].turn.text == "b"


def test_an_expert_walks_messages():
    messages = [
        message("user", "Where does a lead?"),
        *(
            item
            for key in "abc"
            for item in (message("assistant", None, key), message("tool", f"{{'value': '{key}'}}"))
        ),
        message("assistant", "d"),
    ]
    task = WHERE.model_copy(update={"gold_trajectory": json.dumps(messages)})
    run = play(None, task=task, mode="ground_truth")
    assert acts(run) == ["e:look a", "e:look b", "e:look c", "e:=d"]
    assert run.success is True


def test_a_reference_run_without_calls_is_said():
    assistance = Assistance(AssistSettings(mode="ground_truth"))
    odd = Task(task_id="t", gold_trajectory='[{"role": "user", "content": "?"}]')
    assert "no call that can be read" in assistance.missing(odd, Chain())
    assert "no call that can be read" not in assistance.missing(Task(task_id="t"), Chain())
    assert assistance.missing(WHERE, Chain()) is None


def test_expected_calls_belong_to_turns_of_the_user():
    calls = [{"name": "a", "turn": 0}, {"name": "b", "turn": 2}, {"name": "c", "turn": 2}]
    turns = [{"query": text} for text in ("one", "two", "three")]
    task = Task(expected_calls=json.dumps(calls), turns=json.dumps(turns), answers='["yes"]')
    gold = gold_of(task)
    names = [[call.name for step in turn.steps for call in step.turn.calls] for turn in gold]
    assert names == [["a"], [], ["b", "c"]]
    assert [turn.query for turn in gold] == ["one", "two", "three"]
    assert [turn.answer for turn in gold] == [None, None, "yes"]
    odd = [{"name": "a", "turn": 9}, {"name": "b", "turn": True}, {"name": "c", "turn": "1"}]
    (first, *rest) = gold_of(task.model_copy(update={"expected_calls": json.dumps(odd)}))
    assert len(first.steps) == 3
    assert [len(turn.steps) for turn in rest] == [0, 1]
