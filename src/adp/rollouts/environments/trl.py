"""Environments for TRL's GRPOTrainer, and TRL's for us.

TRL (1.16) takes a class as ``environment_factory``: its public methods are the tools, with types
and docstrings; ``reset(**row)`` begins an episode and may return a text that is put behind the
prompt; ``get_reward()`` scores it.

    Calculator = to_trl("calculator")
    rows = trl_rows(tasks, "calculator")
    trainer = GRPOTrainer(
        model=..., args=..., train_dataset=Dataset.from_list(rows), environment_factory=Calculator,
        reward_funcs=[answer_reward],
    )

TRL does not tell an environment what the model says at the end. So there are two ways to answer:

- ``answer="text"``: the last text of the model is the answer, as everywhere in this package. The
  class has no ``get_reward``; give ``reward_funcs=[answer_reward]``.
- ``answer="tool"``: the class has one more tool, ``submit_answer``, and ``get_reward``.

Prompts, results and errors are those of this package; turns and limits are TRL's.
`adp train grpo --env` (`adp.trainers.grpo_environment`) plays whole episodes as `adp collect` does.

`from_trl` makes an environment of a class that was written for TRL.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import keyword
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal

from adp.rollouts.collecting.actor import Acted
from adp.rollouts.collecting.recorder import About, Recorder
from adp.rollouts.environment import ENVIRONMENTS, AsyncEnvironment, Environment
from adp.rollouts.environments.from_object import (
    AsyncObjectEnvironment,
    ObjectEnvironment,
    from_object,
)
from adp.rollouts.environments.trl_methods import method_of
from adp.rollouts.spec import load
from adp.rollouts.tools import ToolError
from adp.rollouts.turns import Call, ErrorType, Outcome, Tool, Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task

TRL_RESERVED = frozenset({"reset", "get_reward"})
"""Methods that TRL makes no tools of."""

TAKEN = TRL_RESERVED | {"submit_answer"}

Make = Callable[[], Environment | AsyncEnvironment]

Answer = Literal["text", "tool"]

_SUBMIT = "Give the answer by calling submit_answer; nothing else counts as one."


def to_trl(
    source: str | Make,
    *,
    answer: Answer = "text",
    first: Task | None = None,
    name: str = "AdpEnvironment",
) -> type:
    """Make a class for ``environment_factory`` of TRL's GRPOTrainer.

    Args:
        source: an environment as on the command line, such as ``toolworld:max_hops=2``; or a
            function that makes one.
        answer: how the model answers; see the module.
        first: a task to begin with while the tools are read, for an environment whose tools
            depend on the task. TRL fixes the tools when the trainer is made.
        name: name of the class; TRL logs the reward under it.

    Raises:
        UsageError: the environment offers no tools before an episode begins and ``first`` is not
            given, or the name of an argument is none that Python knows.
    """
    make = _maker(source) if isinstance(source, str) else source
    members: dict[str, Any] = {"_make": staticmethod(make), "__doc__": f"{name} for TRL."}
    for number, tool in enumerate(_tools_of(make, first)):
        called = str(tool["function"]["name"])
        good = called.isidentifier() and not keyword.iskeyword(called)
        taken = called in TAKEN or called.startswith("_") or called in members
        members[called if good and not taken else f"tool_{number}"] = method_of(tool)
    return type(name, (_WithAnswerTool if answer == "tool" else _TrlEnvironment,), members)


def trl_rows(
    tasks: Sequence[Task], source: str | Make | None = None, *, answer: Answer = "text"
) -> list[dict[str, Any]]:
    """Rows of a data set for GRPOTrainer: the prompt, and the task as JSON for ``reset``.

    Args:
        tasks: the tasks.
        source: the environment, as for `to_trl`: the prompt is then what it says at the
            beginning, messages of the system included. None: the instruction alone.
        answer: how the model answers, as for `to_trl`.

    Raises:
        UsageError: the environment cannot do a task.
    """
    make = _maker(source) if isinstance(source, str) else source
    return [{"prompt": _first_messages(task, make, answer), "task": _plain(task)} for task in tasks]


def _plain(task: Task) -> str:
    return task.model_dump_json(exclude_none=True)


def _first_messages(task: Task, make: Make | None, answer: Answer) -> list[dict[str, Any]]:
    """What an environment says first."""
    messages = [{"role": "user", "content": task.instruction or ""}]
    if make is not None:
        environment: Any = make()
        try:
            messages = [dict(message) for message in _wait(environment.reset(task)).messages]
        finally:
            _wait(environment.close())
    if answer == "tool" and messages:
        messages[-1]["content"] = f"{messages[-1].get('content') or ''}\n\n{_SUBMIT}"
    return messages


def answer_reward(
    completions: Sequence[Any], environments: Sequence[Any], **columns: Any
) -> list[float | None]:
    """Reward function of GRPOTrainer for classes with ``answer="text"``.

    TRL counts a call as failed when it raises, and then tells the model Python's words for it. Ours
    are told as everywhere, so their share is logged here, as ``failed_calls``.

    Args:
        completions: what the model wrote: a list of messages each, or a text.
        environments: the environments of the completions.
        **columns: what else TRL gives, such as ``log_metric``.

    Returns:
        Rewards; None where the environment does not score.
    """
    calls = sum(environment._calls for environment in environments)
    if calls and callable(columns.get("log_metric")):
        failed = sum(environment._failed for environment in environments)
        columns["log_metric"]("failed_calls", failed / calls)
    return [
        environment._answered(_last_text(completion))
        for completion, environment in zip(completions, environments, strict=True)
    ]


def from_trl(
    factory: Callable[[], Any], *, solved_at: float | None = None, blocking: bool = False
) -> ObjectEnvironment | AsyncObjectEnvironment:
    """Make an environment of a class that was written for TRL.

    It is `adp.rollouts.environments.from_object.from_object` with TRL's rule that only
    ``reset`` and ``get_reward`` are no tools.

    Args:
        factory: what ``environment_factory`` would be given.
        solved_at: reward from which on the task counts as solved; None: the task's ``answers``
            decide.
        blocking: whether methods wait for a disk, a process or a network.

    Raises:
        UsageError: see `from_object`; or there is no ``reset``.
    """
    result = from_object(factory, solved_at=solved_at, blocking=blocking, reserved=TRL_RESERVED)
    if not callable(getattr(result.subject, "reset", None)):
        raise UsageError(f"{type(result.subject).__name__} has no method reset, which TRL asks for")
    return result


# ---- the class that TRL gets ---------------------------------------------------------------------


class _TrlEnvironment:
    """An environment as TRL calls it. All helpers begin with an underscore: the rest are tools."""

    _make: Callable[[], Any]

    def __init__(self) -> None:
        self._environment: Any = None
        self._recorder = Recorder(About(dataset="trl"))
        self._over = False
        self._earned: list[float] = []
        self._calls = self._failed = 0

    def reset(self, **row: Any) -> str | None:
        """Begin an episode with the task of a row."""
        if self._environment is not None:
            _wait(self._environment.close())
        task, seed = _task(row), row.get("seed")
        self._environment = type(self)._make()
        start = _wait(self._environment.reset(task, seed=seed if isinstance(seed, int) else None))
        self._over, self._earned = False, []
        self._calls = self._failed = 0
        self._recorder = Recorder(About(dataset="trl", task=task, timed=False))
        self._recorder.begin(start)
        return _unsaid(start.messages, row.get("prompt")) or None

    def _step(self, turn: Turn) -> Outcome:
        if self._environment is None or self._over:
            raise ToolError("the episode is over", ErrorType.LIMIT)
        self._recorder.offer(self._environment.tools())
        turn = self._recorder.numbered(turn)
        outcome: Outcome = _wait(self._environment.step(turn))
        self._recorder.turn(turn, Acted(turn), outcome)
        self._over = outcome.terminated or outcome.truncated
        if outcome.reward is not None:
            self._earned.append(outcome.reward)
        return outcome

    def _called(self, tool: str, arguments: Mapping[str, Any]) -> str:
        self._calls += 1
        try:
            outcome = self._step(Turn(calls=(Call(tool, json.dumps(arguments)),)))
        except ToolError as error:
            self._failed += 1
            return f"Error: {error}"
        # What TRL sees raised it would tell the model in words of its own.
        self._failed += outcome.failed
        return "\n\n".join([*(result.text for result in outcome.results), *outcome.messages])

    def _reward(self) -> float | None:
        if self._environment is None:
            return None
        trajectory = self._recorder.end(terminated=self._over)
        verdict = _wait(self._environment.score(trajectory))
        if verdict.reward is not None:
            return float(verdict.reward)
        if verdict.success is not None:
            return float(verdict.success)
        return sum(self._earned) if self._earned else None

    def _answered(self, text: str) -> float | None:
        if not self._over:
            self._step(Turn(text=text))
        return self._reward()


class _WithAnswerTool(_TrlEnvironment):
    """The same with a tool for the final answer, and its own reward."""

    def submit_answer(self, answer: str) -> str:
        """Gives the final answer, which ends the episode.

        Args:
            answer: The answer.
        """
        try:
            outcome = self._step(Turn(text=answer))
        except ToolError as error:
            return f"Error: {error}"
        return "\n\n".join(outcome.messages) or "The answer was taken."

    def get_reward(self) -> float | None:
        """The reward of the episode."""
        return self._reward()


def _maker(text: str) -> Make:
    kind, settings = load(ENVIRONMENTS, text)
    return lambda: kind.make(settings)


def _tools_of(make: Make, first: Task | None) -> Sequence[Tool]:
    environment: Any = make()
    try:
        if first is not None:
            _wait(environment.reset(first, seed=0))
        tools = list(environment.tools())
    finally:
        _wait(environment.close())
    if not tools:
        raise UsageError("the environment offers no tools yet; give a task to begin with as first=")
    return tools


def _task(row: Mapping[str, Any]) -> Task | None:
    """The task of a row: its column ``task``, or the columns that a task has."""
    given = row.get("task")
    if isinstance(given, str):
        return Task.model_validate_json(given)
    columns = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in row.items()
        if key in Task.model_fields and value is not None
    }
    if _prompt(row):
        columns.setdefault("instruction", _prompt(row))
    return Task(**columns) if columns else None


def _prompt(row: Mapping[str, Any]) -> str:
    messages = row.get("prompt")
    if isinstance(messages, str):
        return messages
    content = messages[-1].get("content") if isinstance(messages, list) and messages else ""
    return content if isinstance(content, str) else ""


def _unsaid(messages: Sequence[Mapping[str, Any]], prompt: Any) -> str:
    """What an environment says at the beginning that the prompt of a row does not.

    TRL writes it behind the last message of the prompt, with nothing between.
    """
    spoken = prompt if isinstance(prompt, list) else [{"content": prompt or ""}]
    heard = [
        str(message.get("content") or "") for message in spoken if isinstance(message, Mapping)
    ]
    texts = [str(message.get("content") or "") for message in messages]
    left = [text for text in texts if text and not any(text in other for other in heard)]
    last = heard[-1] if heard else ""
    if len(left) == 1 and last and left[0].startswith(last):
        return left[0].removeprefix(last)
    return "\n\n".join(["", *left] if left and last else left)


def _last_text(completion: Any) -> str:
    if isinstance(completion, str):
        return completion
    content = completion[-1].get("content") if completion else ""
    return content if isinstance(content, str) else ""


# ---- asynchronous environments -------------------------------------------------------------------


class _Loop:
    """One event loop in a thread of its own, for what TRL calls from plain functions."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, daemon=True).start()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


_LOOP = _Loop()


def _wait(value: Any) -> Any:
    """What a method of an environment brings, be it plain or asynchronous."""
    return _LOOP.run(value) if inspect.iscoroutine(value) else value
