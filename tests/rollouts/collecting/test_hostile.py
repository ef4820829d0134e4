"""What policies and environments answer that they must not: nothing is lost, and blame is right."""

from __future__ import annotations

import asyncio
import json
import math
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.collect import alone, collect_now
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.collecting.threads import DaemonThreads
from adp.rollouts.environment import Start, Verdict
from adp.rollouts.environments.from_object import from_object
from adp.rollouts.turns import Call, Outcome, Result, Turn, Usage
from adp_schema.errors import UsageError
from adp_schema.journal import encode
from adp_schema.model import Step, Task
from tests.rollouts.collecting.test_episode import ABOUT, Adder, Scripted, call, play

HALF = "\ud83d"


class Panic(BaseException):
    """What a library in Rust raises; polars and tokenizers do."""


class Wordless(Exception):
    def __str__(self):
        raise ValueError


ANSWER = Turn(text="5")


def stored(trajectory):
    """The store can hold it, and it is all there."""
    encode(trajectory)
    return trajectory


def nested(levels):
    return '{"a":' * levels + "1" + "}" * levels


@pytest.mark.parametrize(
    "arguments",
    [
        '{"a": 2, "b": 3, "note": "\\ud83d"}',
        '{"a": 2, "b": 3, "note": "\ud83d"}',
        nested(600),
        nested(100_000),
        "[" * 3_000,
        '{"a": ' + "9" * 5_000 + ', "b": 1}',
    ],
)
def test_arguments_that_the_store_cannot_hold_are_kept_as_text(arguments):
    result = stored(play([call(arguments), ANSWER]))
    assert (result.success, result.error_type, len(result.steps)) == (True, None, 3)
    (kept,) = result.steps[1].calls
    if kept.arguments is None:
        assert (kept.arguments_raw, kept.arguments_kind) == (
            arguments.replace(HALF, "\ufffd"), "invalid",
        )  # fmt: skip
    else:  # the half character stood there as it is, and a whole one does in its place
        assert HALF in arguments


ODD_TURNS = {
    "id": Turn(calls=(Call("add", '{"a": 1, "b": 1}', HALF),)),
    "name": Turn(calls=(Call(HALF, "{}"),)),
    "model": Turn(calls=(Call("add"),), model=HALF, response_id=HALF, stop_reason=HALF),
    "malformed": Turn(malformed=HALF),
    "usage": Turn(calls=(Call("add"),), usage=Usage(1, 2, raw={"a": math.nan, "b": HALF, HALF: 1})),
    "counts": Turn(
        calls=(Call("add"),), usage=Usage(1.5, 10**30, -1, "7", math.inf, {"a": 10**5_000})
    ),
    "extra": Turn(
        calls=(Call("add"),), extra={"a": object(), 1: 2, "b": {HALF}, "c": json.loads(nested(300))}
    ),
    "deep extra": Turn(calls=(Call("add"),), extra=json.loads(nested(700))),
    "tokens": Turn(
        calls=(Call("add"),), completion_token_ids=(2**70,), logprobs=(math.nan, -math.inf)
    ),
    "log probabilities": Turn(calls=(Call("add"),), logprobs=(-0.5, -math.inf)),
}


@pytest.mark.parametrize("name", ODD_TURNS)
def test_an_odd_value_costs_itself_alone(name):
    result = stored(play([ODD_TURNS[name], ANSWER]))
    assert (result.success, result.error_type, len(result.steps)) == (True, None, 3)
    dropped = json.loads(result.steps[1].extra or "{}").get("dropped", {})
    assert set(dropped) == {
        "counts": {"tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning", "cost_usd",
                   "usage"},
        "deep extra": {"extra"},
        "tokens": {"completion_token_ids", "logprobs"},
    }.get(name, set())  # fmt: skip
    assert result.total_cost_usd is None
    if name == "usage":
        assert json.loads(result.steps[1].usage) == {"a": "nan", "b": "\ufffd", "\ufffd": 1}


class Says(Adder):
    """Answers what it is given."""

    def __init__(self, outcome=None, verdict=None, start=None):
        super().__init__()
        self.outcome, self.verdict, self.start = outcome, verdict, start

    def reset(self, task=None, *, seed=None):
        began = super().reset(task, seed=seed)
        return began if self.start is None else self.start

    def step(self, turn):
        if not turn.calls or self.outcome is None:
            return super().step(turn)
        return self.outcome(turn)

    def score(self, trajectory):
        return super().score(trajectory) if self.verdict is None else self.verdict(trajectory)


def results(turn, **parts):
    return Outcome(
        results=tuple(Result(**{"text": "1", "call_id": call.call_id} | parts)
                      for call in turn.calls)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("parts", "dropped"),
    [
        ({"text": HALF, "name": HALF}, set()),
        ({"structured": {"a": HALF, "b": math.inf}}, set()),
        ({"structured": json.loads(nested(600))}, {"structured"}),
        ({"structured": [[]] * 5}, set()),
        ({"exit_code": 2**40, "duration_ms": math.nan}, {"exit_code"}),
    ],
)
def test_an_odd_result_costs_itself_alone(parts, dropped):
    world = Says(lambda turn: results(turn, **parts))
    result = stored(play([call("{}"), ANSWER], environment=world))
    assert (result.success, result.error_type) == (True, None)
    (seen,) = result.steps[1].observations
    assert set(json.loads(seen.extra or "{}").get("dropped", {})) == dropped


def test_rewards_that_are_no_numbers_are_left_out_with_a_note():
    def outcome(turn):
        return Outcome(results=results(turn).results, reward=math.nan, labels=("a" + HALF,))

    odd = Verdict(True, math.inf, {"a": math.nan, "b": 1.0}, {"why": HALF, "x": math.nan})
    result = stored(play([call("{}"), ANSWER], environment=Says(outcome, lambda _: odd)))
    assert (result.success, result.reward) == (True, None)
    assert json.loads(result.rewards) == {"b": 1.0}
    assert json.loads(result.judge) == {"why": "\ufffd", "x": "nan"}
    noted = json.loads(result.extra)
    assert (set(noted["dropped"]), noted["environment"]) == ({"reward", "rewards.a"}, "adder")
    assert (result.steps[1].reward, result.steps[1].labels) == (None, ["a\ufffd"])
    assert set(json.loads(result.steps[1].extra)["dropped"]) == {"reward"}


NO_OUTCOMES = {
    "nothing": lambda turn: None,
    "a text": lambda turn: "3",
    "no text": lambda turn: results(turn, text=None),
    "no result": lambda turn: Outcome(),
    "one of two": lambda turn: Outcome(results=results(turn).results[:1]),
    "unknown ids": lambda turn: Outcome(results=(Result("1", "zzz"), Result("2", "zzz"))),
    "text for messages": lambda turn: Outcome(results=results(turn).results, messages="hello"),
    "odd role": lambda turn: Outcome(context=({"role": "robot", "content": "x"},)),
    "an error": lambda turn: 1 / 0,
    "half": lambda turn: (_ for _ in ()).throw(ValueError(HALF)),
    "usage": lambda turn: (_ for _ in ()).throw(UsageError("step wants more")),
    "exit": lambda turn: (_ for _ in ()).throw(SystemExit(3)),
    "a panic": lambda turn: (_ for _ in ()).throw(Panic("at src/lib.rs")),
    "a group": lambda turn: (_ for _ in ()).throw(BaseExceptionGroup("of", [SystemExit()])),
    "no words": lambda turn: (_ for _ in ()).throw(Wordless()),
}


@pytest.mark.parametrize("name", NO_OUTCOMES)
def test_an_environment_that_answers_nonsense_is_to_blame_and_the_steps_are_kept(name):
    turns = 0

    def outcome(turn):
        nonlocal turns
        turns += 1
        return results(turn) if turns < 3 else NO_OUTCOMES[name](turn)

    two = Turn(calls=(Call("add"), Call("add")))
    result = stored(play([two] * 5, environment=Says(outcome)))
    assert (result.error_type, result.success, len(result.steps)) == ("environment", None, 3)
    assert len(result.error_message) > 5


@pytest.mark.parametrize("start", [Start("hello"), Start(({"role": "user", "content": 5},)), {}])
def test_a_start_that_is_none(start):
    result = stored(play([ANSWER], environment=Says(start=start)))
    assert (result.error_type, len(result.steps)) == ("environment", 0)


@pytest.mark.parametrize("verdict", [None, "yes", Verdict(success="yes"), Verdict(success=0.3)])
def test_a_verdict_that_is_none(verdict):
    result = stored(play([call("{}"), ANSWER], environment=Says(verdict=lambda _: verdict)))
    assert (result.error_type, result.success, len(result.steps)) == ("environment", None, 3)
    assert result.error_message.startswith("scoring: ")


NO_TURNS = [
    None,
    "hello",
    Turn(text=None),
    Turn(calls="add"),
    Turn(calls=(Call("add", {"a": 1}),)),
    Turn(calls=(Call(None),)),
    Turn(model=5),
]


@pytest.mark.parametrize("number", range(len(NO_TURNS)))
def test_a_policy_that_answers_nonsense_is_to_blame_and_the_steps_are_kept(number):
    result = stored(play(lambda request: call("{}") if request.turn < 5 else NO_TURNS[number]))
    assert (result.error_type, result.stop_reason, len(result.steps)) == ("policy", "policy", 6)


def test_a_cancellation_of_the_policy_s_own_breaks_its_episode():
    class Cancels(Scripted):
        async def act(self, request):
            raise asyncio.CancelledError

    result = asyncio.run(run_episode(ABOUT, Adder(), Alone(Cancels([]))))
    assert (result.error_type, len(result.steps)) == ("policy", 1)

    # A real one is not held up.
    class Waits(Scripted):
        async def act(self, request):
            await asyncio.sleep(30)

    async def stopped(limits):
        job = asyncio.create_task(run_episode(ABOUT, Adder(), Alone(Waits([])), limits))
        await asyncio.sleep(0.05)
        job.cancel()
        await job

    for limits in (None, Limits(max_seconds=20)):
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(stopped(limits))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner),
    max_leaves=8,
)
ANY = JSON | st.binary(max_size=3) | st.complex_numbers()


@given(ANY, ANY, ANY, st.text(st.characters()), st.text(st.characters()))
def test_whatever_is_answered_the_store_can_hold_it(value, other, third, text, arguments):
    turn = Turn(
        text=text,
        calls=(Call(text, arguments, text),),
        model=text,
        usage=Usage(value, other, third, value, other, {"a": third}),
        extra={"a": value, text: other},
    )
    world = Says(lambda turn: Outcome(results=results(turn, text=text, structured=value).results,
                                      reward=third, info={text: other}))  # fmt: skip
    result = stored(play([turn, ANSWER], environment=world))
    assert (result.success, result.error_type, len(result.steps)) == (True, None, 3)
    assert all(isinstance(step, Step) for step in result.steps)


def test_threads_are_used_again_and_errors_come_back():
    threads = DaemonThreads("test")
    names = {threads.submit(lambda: threading.current_thread().ident).result(5) for _ in range(20)}
    assert len(names) <= 3  # one may not be free again yet when the next call comes
    with pytest.raises(ZeroDivisionError):
        threads.submit(lambda: 1 / 0).result(5)
    gate = threading.Event()
    waiting = [threads.submit(gate.wait) for _ in range(5)]
    while threads.running < 5:
        pass
    gate.set()
    assert all(future.result(5) for future in waiting)
    threads.shutdown()


class Raises:
    def work(self, how: int) -> str:
        """Fails.

        Args:
            how: in which way.
        """
        raise RAISED[how]


class RaisesAsync:
    async def work(self, how: int) -> str:
        """Fails.

        Args:
            how: in which way.
        """
        raise RAISED[how]


RAISED = [Panic("lib.rs"), BaseExceptionGroup("of", [Panic()]), SystemExit(3), Wordless()]


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("kind", [Raises, RaisesAsync])
def test_whatever_a_tool_raises_is_told_to_the_agent(kind, blocking):
    script = [call(json.dumps({"how": number}), "work") for number in range(len(RAISED))]
    world = from_object(kind, blocking=blocking)
    result = stored(play([*script, ANSWER], environment=world))
    assert (result.error_type, result.final_answer) == (None, "5")
    steps = [step.observations[0] for step in result.steps[1:-1]]
    assert {step.error_type for step in steps} == {"execution"}
    kinds = [step.text.removeprefix("Error: ").partition(":")[0] for step in steps]
    assert kinds == ["Panic", "BaseExceptionGroup", "SystemExit", "Wordless"]


def test_a_tool_in_a_thread_cannot_press_ctrl_c(monkeypatch):
    monkeypatch.setattr(f"{__name__}.RAISED", [KeyboardInterrupt()])
    script = [call('{"how": 0}', "work"), ANSWER]
    result = play(script, environment=from_object(Raises, blocking=True))
    assert result.steps[1].observations[0].error_type == "execution"
    with pytest.raises(KeyboardInterrupt):  # in the main thread it is the user
        play(script, environment=from_object(Raises))


@pytest.mark.parametrize("number", [0, 1, 3])
def test_whatever_a_policy_raises_breaks_its_episode_alone(number):
    def act(request):
        raise RAISED[number]

    result = stored(play(act))
    assert (result.error_type, result.success) == ("policy", None)
    assert result.error_message.startswith(type(RAISED[number]).__name__)


def test_an_environment_that_cannot_be_made_breaks_its_episode_alone(tmp_path):
    made = iter([Panic("lib.rs"), None])

    def environment():
        fault = next(made)
        if fault is not None:
            raise fault
        return Adder()

    tasks = [Task(task_id=name, instruction="2 + 3?", answers='["5"]') for name in "ab"]
    settings = CollectSettings(concurrency=1)
    report = collect_now(tmp_path / "s", environment, alone(Scripted([ANSWER])), tasks, settings)
    assert (report.done_now, report.failed) == (1, 1)


class Waits:
    blocking = True

    def thread(self) -> str:
        """Says where it runs."""
        return threading.current_thread().name


def test_a_class_may_say_that_its_methods_wait():
    result = play([call("{}", "thread"), ANSWER], environment=from_object(Waits))
    assert result.steps[1].observations[0].text != threading.main_thread().name
