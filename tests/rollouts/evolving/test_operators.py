"""Each operator alone: what it keeps, what is really carried out, and what it says about itself."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from adp.rollouts.collecting.recorder import About
from adp.rollouts.environments.calculator import Calculator
from adp.rollouts.evolving.asking import Asking, GaveUpError
from adp.rollouts.evolving.lineage import lineage_of
from adp.rollouts.evolving.operator import BUILTIN, OPERATORS, UnchangedError
from adp.rollouts.evolving.prompts import hints, prompt
from adp.rollouts.evolving.recorded import agent_steps, parent_of
from adp.rollouts.evolving.step_hint import hint_kind
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.turns import Call, Turn
from adp_schema.model import Observation, Step, Task, ToolCall, Trajectory
from tests.rollouts.evolving.worlds import Model, evolver_of

TASK = Task(task_id="t", instruction="What is 2 + 3 * 4? Answer with the number alone.",
            answers='["14"]')  # fmt: skip
EXPRESSION = "2 + 3 * 4"


def called(expression, number=0):
    return Call("calculator", json.dumps({"expression": expression}), f"c{number}")


def trajectory_of(turns, answer):
    """A really rolled out trajectory with these turns."""
    from adp.rollouts.collecting.actor import Alone
    from adp.rollouts.collecting.episode import run_episode

    about = About("before", task=TASK, policy="p", environment="calculator", seed=5, timed=False)
    script = [*turns, Turn(text=answer, reasoning="So It Is.")]
    return asyncio.run(run_episode(about, Calculator(), Alone(Scripted(script))))


WRONG = [Turn(calls=(called("2 + 3"),), reasoning="Add First."),
         Turn(calls=(called("5 + 4", 1),), reasoning="Then add four.")]  # fmt: skip
RIGHT = [Turn(calls=(called("3 * 4"),), reasoning="Times."),
         Turn(calls=(called("3 * 4 + 2", 1),), text="And two.")]  # fmt: skip


def made(name, turns, answer, model=None, **settings):
    """What an operator makes of a trajectory; and its parent."""
    parent = parent_of(trajectory_of(turns, answer), TASK)
    about = About("out", attempt=7, task=TASK, policy="model", environment="calculator", seed=5,
                  timed=False)  # fmt: skip
    evolver = evolver_of(model, **settings)
    return asyncio.run(evolver.make(OPERATORS.get(name), parent, about)), parent


def texts(trajectory):
    """What came back in each turn of the agent."""
    return [[seen.text for seen in step.observations] for step in agent_steps(trajectory)]


def test_all_are_there_and_say_what_they_are_for():
    operators = [OPERATORS.get(name) for name in BUILTIN]
    assert [item.name for item in operators] == list(BUILTIN)
    kinds = [item.applies_to for item in operators]
    assert kinds == ["correct"] * 3 + ["incorrect"] * 3


def test_re_rollout_begins_anew():
    trajectory, parent = made("re_rollout", RIGHT, "14")
    lineage = lineage_of(trajectory.extra)
    assert lineage["kept_turns"] == 0
    assert lineage["parent"] == parent.trajectory.trajectory_id
    assert (trajectory.trajectory_id, trajectory.attempt) == ("out/t/attempt-7", 7)
    assert trajectory.success is not None
    assert json.loads(trajectory.extra)["seed"] == 5


@pytest.mark.parametrize("name", ["redundant_step", "step_refine"])
def test_a_changed_step_is_really_carried_out(name):
    def answer(body):
        reply = asked(body)
        return reply if reply is not None else good(body)

    from tests.rollouts.evolving.models import good_answer as good

    call = json.dumps({"name": "calculator", "arguments": {"expression": EXPRESSION}})
    step = f"<thought>Whole.</thought><call>{call}</call>"

    def asked(body):
        text = body["messages"][0]["content"]
        if text == prompt("redundant_step"):
            return {"content": f"Step: 2\nAnalysis: twice.\nCorrected step:\n{step}"}
        if text == prompt("flawed_step"):
            return {"content": "Step: 2\nAnalysis: logic"}
        return {"content": step} if text == prompt("rewrite_step") else None

    turns, result = (RIGHT, "14") if name == "redundant_step" else (WRONG, "9")
    trajectory, parent = made(name, turns, result, Model(answer))
    steps = agent_steps(trajectory)
    assert texts(trajectory)[0] == texts(parent.trajectory)[0]
    assert texts(trajectory)[1] == ["14"]
    assert steps[1].calls[0].arguments == json.dumps({"expression": EXPRESSION})
    assert steps[1].reasoning == "Whole."
    assert steps[1].actor == OPERATORS.get(name).asks[-1]
    assert [step.made_by for step in steps[:2]] == [name, name]
    first = (steps[0].made_from_trajectory, steps[0].made_from_step)
    assert first == (parent.trajectory.trajectory_id, agent_steps(parent.trajectory)[0].step)
    assert steps[1].made_from_trajectory is None
    lineage = lineage_of(trajectory.extra)
    assert (lineage["step"], lineage["kept_turns"], lineage["same_results"]) == (2, 1, True)
    assert (trajectory.links[0].target_id, trajectory.links[0].kind) == (first[0], "fork")
    assert trajectory.final_answer
    assert "words" in lineage


def test_nothing_redundant_is_an_entry_that_says_so():
    model = Model(lambda body: {"content": "Step: none"})
    trajectory, _ = made("redundant_step", RIGHT, "14", model)
    assert (trajectory.error_type, trajectory.stop_reason) == ("not_made", "unchanged")
    assert trajectory.error_message == "the refiner finds nothing redundant"
    assert not trajectory.steps
    assert trajectory.success is None


def test_global_refinement_changes_thoughts_alone_and_keeps_capitals():
    trajectory, parent = made("global_refinement", RIGHT, "14")
    before, after = agent_steps(parent.trajectory), agent_steps(trajectory)
    assert [step.calls for step in after] == [step.calls for step in before]
    assert texts(trajectory) == texts(parent.trajectory)
    assert after[0].reasoning == "New Thought 1."
    assert (after[1].text, after[1].reasoning) == ("New Thought 2.", None)
    assert (after[2].text, after[2].reasoning) == ("14", "New Thought 3.")
    assert all(step.completion_token_ids is None and step.tokens_out is None for step in after)
    assert trajectory.success is True
    assert parent.trajectory.steps != trajectory.steps
    assert lineage_of(trajectory.extra)["operator"] == "global_refinement"


def test_a_step_hint_stands_behind_the_flawed_step_whole():
    def answer(body):
        if body["messages"][0]["content"] == prompt("flawed_step"):
            return {"content": "Step: 1\nAnalysis: logic"}
        return good(body)

    from tests.rollouts.evolving.models import good_answer as good

    trajectory, parent = made("step_hint", WRONG, "9", Model(answer))
    steps = agent_steps(trajectory)
    assert texts(trajectory)[0] == texts(parent.trajectory)[0] == ["5"]
    opening = steps[1].reasoning.split("\n")[0]
    assert opening in hints("python")
    lineage = lineage_of(trajectory.extra)
    assert lineage["step"] == 2
    assert lineage["hint"] == {
        "step": steps[1].step,
        "message": f"{prompt('opening')}\n{opening}",
    }
    assert "hint" not in lineage_of(made("re_rollout", WRONG, "9", Model(answer))[0].extra)


def test_a_hint_never_follows_an_answer():
    def answer(body):
        if body["messages"][0]["content"] == prompt("flawed_step"):
            return {"content": "Step: 1\nAnalysis: logic"}
        return good(body)

    from tests.rollouts.evolving.models import good_answer as good

    trajectory, _ = made("step_hint", [], "9", Model(answer))
    lineage = lineage_of(trajectory.extra)
    assert (lineage["kept_turns"], lineage["step"]) == (0, 1)
    assert agent_steps(trajectory)[0].reasoning.split("\n")[0] in hints("python")


def test_a_trajectory_hint_takes_the_answer_back():
    model = Model()
    trajectory, parent = made("trajectory_hint", WRONG, "9", model)
    steps = agent_steps(trajectory)
    assert texts(trajectory)[:2] == texts(parent.trajectory)[:2]
    lines = steps[2].reasoning.split("\n")
    assert lines[:2] == ["So It Is.", "9"]
    assert lines[2] in hints("python")
    note = model.asked[0].messages[-1]
    assert note["role"] == "user"
    assert note["content"].startswith(prompt("opening"))
    recorded = [step.text for step in trajectory.steps if step.source == "user"]
    assert recorded == [TASK.instruction], "the note is for the policy alone"
    hint = lineage_of(trajectory.extra)["hint"]
    assert hint == {"step": steps[2].step, "message": note["content"]}


def test_a_run_that_was_cut_goes_on_with_more_calls():
    parent_turns = [Turn(calls=(called("1 + 1", n),)) for n in range(3)]
    trajectory = trajectory_of(parent_turns, "9")
    trajectory.steps = trajectory.steps[:-1]
    parent = parent_of(trajectory, TASK)
    about = About("out", task=TASK, seed=5, timed=False)
    evolver = evolver_of(limits={"max_calls": 3, "max_turns": 3}, additional_calls=2)
    again = asyncio.run(evolver.make(OPERATORS.get("trajectory_hint"), parent, about))
    assert len(agent_steps(again)) >= 4
    assert again.truncated is False or len(agent_steps(again)) == 5


def test_results_that_differ_are_noted():
    trajectory = trajectory_of(WRONG, "9")
    agent_steps(trajectory)[0].observations[0].text = "6"
    about = About("out", task=TASK, seed=5, timed=False)
    made_ = asyncio.run(
        evolver_of().make(OPERATORS.get("trajectory_hint"), parent_of(trajectory, TASK), about)
    )
    assert lineage_of(made_.extra)["same_results"] is False


@pytest.mark.parametrize("name", [n for n in BUILTIN if n not in ("re_rollout", "trajectory_hint")])
@pytest.mark.parametrize("text", ["", "I do not know.", "Step: 99", "Step: 1", "<thought>"])
def test_answers_that_cannot_be_used_are_counted_and_given_up(name, text):
    turns, answer = (WRONG, "9") if name.startswith("step") else (RIGHT, "14")

    def reply(body):
        system = body["messages"][0]
        usable = system["role"] == "system" and system["content"] == prompt("flawed_step")
        if usable and text == "Step: 1" and name == "step_hint":
            return {"content": "perhaps step one"}
        return {"content": text}

    trajectory, _ = made(name, turns, answer, Model(reply))
    lineage = lineage_of(trajectory.extra)
    if trajectory.error_type is None:  # an analysis may be any text
        pytest.fail("it was made of nothing")
    assert trajectory.error_type == "not_made"
    assert trajectory.stop_reason in ("refiner", "analyser")
    assert len(lineage["bad_answers"]) == 4
    assert "gave no answer that can be used in 4 tries" in trajectory.error_message
    assert all(bad["reason"] for bad in lineage["bad_answers"])


def test_operators_without_anything_to_change():
    empty = parent_of(Trajectory(trajectory_id="e"), TASK)
    rng = random.Random(0)
    for name in ("redundant_step", "global_refinement", "step_refine", "step_hint"):
        with pytest.raises(UnchangedError):
            asyncio.run(OPERATORS.get(name).change(empty, Asking({}), rng))


def test_who_gives_up_says_why():
    error = GaveUpError("judge", ["empty", "empty", "late"], unreachable=False)
    assert str(error) == "the judge gave no answer that can be used in 3 tries: empty 2, late 1"


def test_tagged_text_is_carried_out_again():
    """A run of ET-Agent, as its converter reads it: a program in a tag is no JSON."""
    step = Step(step=1, source="agent", kind="llm_turn", text="<think>Try.</think> <calculator>",
                prose="", reasoning="Try.")  # fmt: skip
    step.calls = [ToolCall(step=1, call=0, name="calculator", kind="code", arguments_raw="2 + 3",
                           arguments_kind="text")]  # fmt: skip
    step.observations = [Observation(step=1, order=0, call_step=1, call=0, text="5")]
    last = Step(step=2, source="agent", kind="llm_turn", text="<answer>5</answer>", prose="5")
    trajectory = Trajectory(trajectory_id="x", steps=[step, last], final_answer="5")
    parent = parent_of(trajectory, TASK, Calculator().tools())
    about = About("out", task=TASK, seed=5, timed=False)
    again = asyncio.run(evolver_of().make(OPERATORS.get("trajectory_hint"), parent, about))
    assert texts(again)[0] == ["5"]
    assert agent_steps(again)[0].calls[0].arguments == '{"expression": "2 + 3"}'
    assert lineage_of(again.extra)["same_results"] is True


def test_hints_fit_the_tools():
    def tools(*names):
        return [{"type": "function", "function": {"name": name}} for name in names]

    assert hint_kind(tools("search", "open_document")) == "search"
    assert hint_kind(tools("python")) == "python"
    assert hint_kind(tools("search", "python")) == "general"
    assert hint_kind([]) == "general"
    for kind in ("python", "search", "general"):
        assert len(set(hints(kind))) == 6
        assert all(len(text) > 20 and text[-1] in ".?" for text in hints(kind))
