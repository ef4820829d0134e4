"""What is tried on the side in the mode informed, and that the episode does not see it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.recorder import About
from adp.rollouts.experts.judges import Judges
from adp.rollouts.experts.modes import Assistance
from adp.rollouts.experts.settings import AssistSettings
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.turns import Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task
from tests.rollouts.collecting.worlds import TASK, Chain, Knowing, acts, look, play
from tests.waiting import PATIENCE


def test_beside_a_bad_step_stands_what_the_expert_would_have_done():
    world = Chain()
    run = play([look("a"), look("x"), look("b")], environment=world, limits=Limits(max_turns=3))
    (branch,) = run.branches
    assert (branch.parent_step, branch.branch_kind, branch.steps[0].actor) == (
        2,
        "alternate",
        "expert",
    )
    assert branch.steps[0].labels == ["REWARD_SUCCESS_TOOL_CALL"]
    # It was called in a fork that had seen one call; the episode did not see it.
    assert branch.steps[0].observations[0].text == '{"value": "c", "count": 2}'
    assert run.steps[3].observations[0].text == '{"value": "c", "count": 3}'
    assert world.count == 3


def test_beside_the_expert_s_step_stands_what_the_agent_would_have_done():
    run = play(lambda request: look("x"), limits=Limits(max_turns=3))
    extra_keys = {branch.parent_step: branch.steps[0] for branch in run.branches}
    # A bad step by the agent, a bad step after which it is stuck, and the expert's.
    assert {step: extra_key.actor for step, extra_key in extra_keys.items()} == {
        1: "expert",
        2: "expert",
        3: "agent",
    }
    assert extra_keys[3].labels == ["REWARD_BAD_TOOL_CALL"]
    assert extra_keys[3].observations[0].error_type == "execution"
    assert extra_keys[3].observations[0].call_id == extra_keys[3].calls[0].call_id


def test_a_good_step_by_the_agent_has_no_alternate_and_an_answer_never_has_one():
    run = play([look("a"), look("b"), look("c"), Turn(text="d")])
    assert acts(run)[-1] == "e:=d"
    assert run.branches == []
    stuck = play([look("a"), look("a"), look("b")], limits=Limits(max_turns=2))
    assert [branch.parent_step for branch in stuck.branches] == [2]


def test_nothing_stands_beside_the_only_answer():
    gold = [{"input": "?"}, {"plan": "known", "answer": "d"}]
    task = Task(task_id="t", instruction="?", gold_trajectory=json.dumps(gold))
    run = play([Turn(text="guess")], task=task)
    assert (acts(run), run.branches) == (["e:=d"], [])


@pytest.mark.parametrize("world", [Chain, Knowing])
def test_the_expert_is_asked_in_the_state_before_the_step(world):
    judges = Judges(overseer=lambda question: len(question.history) == 2)
    script = [look("a"), look("b")]
    run = play(script, environment=world(), judges=judges, limits=Limits(max_turns=2))
    (branch,) = run.branches
    # After the step it would have been c.
    assert branch.steps[0].calls[0].arguments == '{"key": "b"}'


def test_alternates_have_ids_of_their_own_and_the_turn_of_their_step():
    class Talking(Chain):
        def step(self, turn):
            return replace(super().step(turn), messages=("go on",))

    call = replace(look("x").calls[0], call_id="same")
    run = play(
        lambda _: Turn(calls=(call,)), environment=Talking(), task=TASK, limits=Limits(max_turns=3)
    )
    ids = [item.call_id for run_ in (run, *run.branches) for s in run_.steps for item in s.calls]
    assert len(ids) == len(set(ids)) > 3
    turns = {step.step: step.turn for step in run.steps}
    for branch in run.branches:
        assert branch.steps[0].turn == turns[branch.parent_step]


def test_a_discarded_answer_is_the_alternate_of_the_step_in_its_place():
    asked = []

    def script(request):
        asked.append(request.turn)
        return Turn(text="guess")

    run = play(script)
    assert acts(run) == ["e:look a", "e:look b", "e:look c", "e:=d"]
    assert [branch.steps[0].text for branch in run.branches] == ["guess"] * 3
    # The agent is not asked a second time for what it said already.
    assert asked == [0, 1, 2, 3]


def test_the_agent_is_asked_in_the_state_before_the_step():
    seen = []

    def script(request):
        seen.append((request.turn, len(request.messages), request.seed))
        return look("x")

    play(script, limits=Limits(max_turns=3))
    assert [entry[:2] for entry in seen] == [(0, 1), (1, 3), (2, 5)]
    assert len({entry[2] for entry in seen}) == 3


def test_forks_are_closed_and_the_world_is_not_touched():
    forks = []

    class Counted(Chain):
        def fork(self):
            forks.append(super().fork())
            return forks[-1]

    world = Counted()
    run = play(lambda request: look("x"), environment=world, limits=Limits(max_turns=5))
    assert len(run.branches) == 5
    assert [fork.closed for fork in forks] == [1] * len(forks)
    assert world.count == 5

    class Slow(Scripted):
        async def act(self, request):
            await asyncio.sleep(PATIENCE)

    forks.clear()
    play_slow = Assistance(AssistSettings(), Slow([])).actor()
    about = About("chain", 0, TASK, timed=False)
    asyncio.run(run_episode(about, Counted(), play_slow, Limits(max_seconds=3)))
    assert [fork.closed for fork in forks] == [1]


def test_without_a_fork_only_tools_that_read_are_called():
    with pytest.raises(UsageError, match="save_alternates=false"):
        play([look("a")], environment=Chain(forks=False))
    run = play([look("x")] * 2, environment=Chain(forks=False), save_alternates=False)
    assert run.branches == []
    world = Chain(forks=False, read_only=True)
    run = play([look("a"), look("x"), look("c")], environment=world, limits=Limits(max_turns=3))
    (branch,) = run.branches
    assert branch.steps[0].observations[0].structured is not None


def test_the_same_seed_gives_the_same_bytes():
    def text():
        run = play(lambda request: look("x"), limits=Limits(max_turns=6))
        parts = [run, *run.branches]
        return [
            part.model_dump_json() + "".join(s.model_dump_json() for s in part.steps)
            for part in parts
        ]

    assert text() == text()
