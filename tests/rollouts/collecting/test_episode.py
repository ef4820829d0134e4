"""One episode, from the first message to the verdict."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from adp.rendering.chat import chats_of
from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environment import Verdict
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool, ToolError
from adp.rollouts.turns import Call, Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task
from adp_schema.store import Store
from tests.waiting import PATIENCE

NUMBERS = {"a": {"type": "number"}, "b": {"type": "number"}}


def _add(a, b):
    if a > 1000:
        raise ToolError("too large")
    return a + b


class Adder(ToolEnvironment):
    """Adds numbers; the answer must be 5."""

    def offered(self):
        parameters = {"type": "object", "properties": NUMBERS, "required": ["a", "b"]}
        return [FunctionTool("add", "Adds.", parameters, _add)]

    def score(self, trajectory):
        return Verdict(success=trajectory.final_answer == "5", reward=1.0)


TASK = Task(task_id="t1", instruction="What is 2 + 3?", answers='["5"]')
ABOUT = About(dataset="sums", task=TASK, policy="script", environment="adder", timed=False)


def play(script, limits=None, environment=None, about=ABOUT):
    actor = Alone(Scripted(script))
    return asyncio.run(run_episode(about, environment or Adder(), actor, limits))


def call(arguments, name="add"):
    return Turn(calls=(Call(name, arguments),))


def test_an_episode_is_a_trajectory_with_calls_results_and_a_verdict(tmp_path):
    result = play([call('{"a": 2, "b": 3}'), Turn(text="5", reasoning="I added.")])
    assert (result.success, result.reward, result.final_answer) == (True, 1.0, "5")
    assert (result.terminated, result.truncated, result.stop_reason) == (True, False, "answer")
    assert [step.source for step in result.steps] == ["user", "agent", "agent"]
    assert result.steps[1].observations[0].text == "5"
    assert result.steps[1].observations[0].is_error is False
    with Store.grow(tmp_path / "store") as store:
        assert store.append(result)
    back = Store.open(str(tmp_path / "store")).get("sums/t1/attempt-0")
    assert [step.text for step in back.steps] == ["What is 2 + 3?", None, "5"]
    assert back.task.answers == '["5"]'
    (chat,) = chats_of(back).chats
    assert [message.role for message in chat.messages] == ["user", "assistant", "tool", "assistant"]


def test_what_the_agent_does_wrong_is_a_typed_result():
    result = play(
        [
            call('{"a": 2}'),
            call('{"a": "x", "b": 3}'),
            call("{"),
            call("{}", name="sub"),
            call('{"a": 2000, "b": 3}'),
            Turn(text="{broken", malformed="no JSON"),
            Turn(text="4"),
        ]
    )
    seen = [step.observations[0].error_type for step in result.steps[1:-1]]
    wanted = ["invalid_args", "invalid_args", "parsing", "unknown_tool", "execution", "parsing"]
    assert seen == wanted
    assert result.success is False
    assert result.steps[3].calls[0].arguments_raw == "{"
    assert json.loads(result.steps[6].extra)["malformed"] == "no JSON"


@pytest.mark.parametrize(
    ("limits", "reason", "agent_steps"),
    [(Limits(max_turns=2), "max_turns", 2), (Limits(max_calls=3), "max_calls", 3)],
)
def test_a_budget_cuts_the_episode(limits, reason, agent_steps):
    result = play(lambda request: call('{"a": 1, "b": 1}'), limits)
    assert (result.truncated, result.terminated, result.stop_reason) == (True, False, reason)
    assert sum(step.source == "agent" for step in result.steps) == agent_steps


def test_time_that_the_agent_used_cuts_the_episode():
    class Busy(Scripted):
        async def act(self, request):
            await asyncio.sleep(0.1)  # far from half of the time
            return call('{"a": 1, "b": 1}')

    result = asyncio.run(
        run_episode(ABOUT, Adder(), Alone(Busy([])), Limits(max_seconds=4, max_turns=1000))
    )
    assert (result.truncated, result.stop_reason, result.error_type) == (True, "max_seconds", None)
    assert (result.success, len(result.steps) > 2) == (False, True)


class Waits(Adder):
    """Waits in one of its methods, as others do for a server; or works on and on."""

    def __init__(self, where, seconds=2.4):
        super().__init__()
        self.where, self.seconds = where, seconds

    def _wait(self, where):
        if self.where == where:
            time.sleep(self.seconds)

    def reset(self, task=None, *, seed=None):
        self._wait("reset")
        return super().reset(task, seed=seed)

    def step(self, turn):
        self._wait("step")
        return super().step(turn)


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("where", ["reset", "step"])
def test_time_that_the_environment_used_is_not_the_agent_s(where, blocking):
    world = Waits(where)
    world.blocking = blocking
    result = play(lambda request: call('{"a": 1, "b": 1}'), Limits(max_seconds=1.2), world)
    assert (result.error_type, result.stop_reason) == ("environment", "timeout")
    assert (result.success, result.truncated) == (None, None)
    assert "max_seconds" in result.error_message


def test_a_judge_that_never_returns_costs_one_episode():
    class Undecided(Adder):
        blocking = True

        def score(self, trajectory):
            time.sleep(2)
            return Verdict(success=True)

    result = play([Turn(text="5")], Limits(max_seconds=0.7), Undecided())
    assert (result.error_type, result.stop_reason) == ("environment", "timeout")
    assert result.success is None
    assert result.error_message == (
        "scoring: it took more than 0.7 s, as long as the episode may take (max_seconds)"
    )


def test_time_that_a_request_used_is_not_the_agent_s():
    class Slow(Scripted):
        async def act(self, request):
            if request.turn:
                await asyncio.sleep(PATIENCE)
            return call('{"a": 1, "b": 1}')

    result = asyncio.run(run_episode(ABOUT, Adder(), Alone(Slow([])), Limits(max_seconds=3)))
    assert (result.error_type, result.stop_reason) == ("infrastructure", "timeout")
    assert (result.success, result.truncated, len(result.steps)) == (None, None, 2)


def test_what_breaks_is_written_down_and_not_scored():
    def down(request):
        raise InfrastructureError("http_500", "the server failed 4 times")

    result = play(down)
    assert (result.error_type, result.stop_reason) == ("infrastructure", "http_500")
    assert (result.success, result.terminated, len(result.steps)) == (None, False, 1)

    class Broken(Adder):
        def step(self, turn):
            raise ValueError("bug")

    result = play([Turn(text="5")], environment=Broken())
    assert (result.error_type, result.error_message) == ("environment", "ValueError: bug")


def test_a_task_that_cannot_be_done_is_written_down():
    task = Task(task_id="t2")
    result = play([Turn(text="5")], about=About(dataset="sums", task=task, timed=False))
    assert (result.error_type, result.stop_reason) == ("environment", "task")


def test_a_timeout_inside_the_environment_is_no_budget():
    class Late(Adder):
        def step(self, turn):
            raise TimeoutError("no answer")

    result = play([Turn(text="5")], Limits(max_seconds=60), environment=Late())
    assert (result.error_type, result.error_message) == ("environment", "TimeoutError: no answer")


def test_an_error_of_the_call_itself_is_raised():
    with pytest.raises(UsageError, match="needs a task"):
        play([Turn(text="5")], about=About(dataset="sums"))


def test_ids_of_calls_are_unique_in_the_episode():
    turn = Turn(
        calls=(Call("add", '{"a": 1, "b": 1}', "c0"), Call("add", '{"a": 1, "b": 2}', "c0"))
    )
    result = play([turn, turn, Turn(text="5")])
    ids = [item.call_id for step in result.steps for item in step.calls]
    assert len(set(ids)) == 4
    assert [item.native_id for step in result.steps for item in step.calls] == [None, *["c0"] * 3]
    assert [item.text for step in result.steps for item in step.observations] == ["2", "3"] * 2


def test_the_same_seed_and_script_give_the_same_bytes():
    script = [call('{"a": 2, "b": 3}'), Turn(text="5")]

    def text():
        result = play(script)
        return result.model_dump_json() + "".join(step.model_dump_json() for step in result.steps)

    assert text() == text()


@pytest.mark.parametrize("word", ["length", "max_tokens", "max_output_tokens"])
def test_an_answer_that_the_limit_of_its_tokens_cut_is_truncated(word):
    result = play([Turn(text="5", stop_reason=word)])
    assert (result.terminated, result.truncated, result.stop_reason) == (False, True, "length")
    # What was written is still judged.
    assert (result.success, result.final_answer) == (True, "5")
    assert (result.error_type, result.steps[-1].stop_reason) == (None, word)


def test_a_turn_that_was_cut_in_the_middle_of_an_episode_does_not_end_it():
    cut = Turn(calls=(Call("add", '{"a": 2, "b": 3}'),), stop_reason="length")
    result = play([cut, Turn(text="5", stop_reason="stop")])
    assert (result.terminated, result.truncated, result.stop_reason) == (True, False, "answer")
