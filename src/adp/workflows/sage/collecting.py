"""Collecting trajectories with an agent in Python, as `adp.collect` does.

An agent is an object with ``run_step`` or ``act``, or a function: it gets ``instruction``,
``available_tools`` and ``history``, and gives ``thought``, ``action`` and ``action_input``. An
environment has ``step`` or ``execute``, or is a function of action and input; what it gives back is
the observation. The actions finish, done and error end a run.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adp.converters.systems.sage_keys import ENDS, ERROR
from adp.converters.systems.sage_trajectories import SageTrajectories
from adp.rollouts.environment import AsyncEnvironment, Start, Verdict, as_async
from adp.rollouts.from_python import collect_in_python
from adp.rollouts.policy import Request
from adp.rollouts.step_rewards import StepRewarded, StepRewardSettings
from adp.rollouts.turns import Call, ErrorType, Outcome, Result, Tool, Turn
from adp.workflows.sage.conversion import SFTConversionConfig, TrajectoryToSFTConverter
from adp.workflows.sage.trajectories import AgentTrajectory, TrajectoryFilter
from adp_schema import jsontext
from adp_schema.errors import InputError, UsageError
from adp_schema.losses import Losses
from adp_schema.model import Task, Trajectory
from adp_schema.scratch import ScratchFolder
from adp_schema.store import Store


@dataclass
class CollectorConfig:
    """How trajectories are collected.

    Attributes:
        max_steps: most steps of a run.
        require_success: whether only runs that solved their task are given back.
        save_intermediate: whether observations are kept; without, only the last one is.
        reward_correct_tool: for a call of an expected tool.
        reward_correct_args: for the expected arguments, besides.
        reward_success: for the step that ends a run which is a success by then.
        penalty_error: for a call whose observation reads like an error.
        seed: seed of the run.
    """

    max_steps: int = 10
    require_success: bool = True
    save_intermediate: bool = True
    reward_correct_tool: float = 1.0
    reward_correct_args: float = 0.5
    reward_success: float = 0.0
    penalty_error: float = -1.0
    seed: int = 0

    def rewards(self) -> StepRewardSettings:
        """The rewards as settings of ``--step-rewards``."""
        return StepRewardSettings(
            correct_tool=self.reward_correct_tool,
            correct_args=self.reward_correct_args,
            success=self.reward_success,
            error=self.penalty_error,
        )


class TrajectoryCollector:
    """Lets an agent do tasks, and keeps what it did.

    Args:
        agent: see the module.
        config: limits and rewards.
        environment: see the module; None answers every call with an empty observation.
    """

    def __init__(
        self, agent: Any, config: CollectorConfig | None = None, environment: Any = None
    ) -> None:
        self.agent, self.config = agent, config or CollectorConfig()
        self._act = _method(agent, ("run_step", "act"), "agent")
        self._step: Callable[..., Any] = lambda action, given: ""
        if environment is not None:
            self._step = _method(environment, ("step", "execute"), "environment")

    def collect(self, tasks: Sequence[Mapping[str, Any]]) -> list[AgentTrajectory]:
        """Collect one trajectory for each task.

        Args:
            tasks: each with ``instruction``, and ``task_id``, ``available_tools`` and
                ``ground_truth`` (``expected_tools``, ``expected_args``) where they are known.

        Returns:
            The trajectories, in the order of the tasks.

        Raises:
            UsageError: a task has no instruction, or two have one id.
        """
        if not tasks:
            return []
        known: list[dict[str, Any]] = [
            {"task_id": f"task_{n}", **task} for n, task in enumerate(tasks)
        ]
        with ScratchFolder("collect") as folder:
            out = str(folder / "store")
            settings = {
                "seed": self.config.seed,
                "limits": {"max_turns": self.config.max_steps},
                "concurrency": 1,  # an agent of the user's may not be ready for more
            }
            collect_in_python(
                self._environment, self._policy, known, out, expert=None, settings=settings
            )
            runs = [_of_store(run) for run in Store.open(out)]
        by_task = {run.task_id: run for run in runs}
        runs = [by_task[str(task["task_id"])] for task in known]
        for run, task in zip(runs, known, strict=True):
            run.ground_truth = task.get("ground_truth")
        if not self.config.save_intermediate:
            for run in runs:
                for step in run.steps[:-1]:
                    step.observation = ""
        return [run for run in runs if run.success or not self.config.require_success]

    def collect_single(self, task: Mapping[str, Any]) -> AgentTrajectory:
        """Collect the trajectory of one task, whether it is a success or not."""
        config = CollectorConfig(**{**vars(self.config), "require_success": False})
        only = TrajectoryCollector(self.agent, config)
        only._step = self._step
        return only.collect([task])[0]

    def _environment(self) -> AsyncEnvironment:
        return StepRewarded(as_async(_Actions(self._step)), self.config.rewards())

    def _policy(self, request: Request) -> Turn:
        task = request.task
        extra = json.loads(task.extra) if task is not None and task.extra else {}
        context = {
            "instruction": task.instruction if task is not None else "",
            "available_tools": extra.get("available_tools", []),
            "history": _history(request),
        }
        try:
            given = self._act(context)
            action, thought = str(given["action"]), str(given.get("thought") or "")
            arguments = json.dumps(given.get("action_input") or {}, ensure_ascii=False)
        except Exception as error:  # the agent is the user's; its fault is recorded
            thought, action = "", ERROR
            arguments = json.dumps({"error": f"{type(error).__name__}: {error}"})
        return Turn(calls=(Call(action, arguments),), reasoning=thought or None)


def collect_and_convert(
    agent: Any,
    tasks: Sequence[Mapping[str, Any]],
    environment: Any = None,
    min_reward: float = 0.5,
    require_success: bool = True,
    output_format: Any = "chatml",
    save_path: str | None = None,
) -> list[dict[str, Any]]:
    """Collect, filter and convert in one call.

    Args:
        agent: see the module.
        tasks: as for `TrajectoryCollector.collect`.
        environment: see the module.
        min_reward: the least total reward that is kept.
        require_success: whether only runs that solved their task are kept.
        output_format: chatml, alpaca or sharegpt.
        save_path: file for the rows, one a line; None writes none.

    Raises:
        InputError: the file cannot be written.
    """
    collector = TrajectoryCollector(agent, CollectorConfig(require_success=False), environment)
    kept = TrajectoryFilter(min_reward, require_success).filter(collector.collect(tasks))
    rows = TrajectoryToSFTConverter(SFTConversionConfig(output_format)).convert(kept)
    if save_path is not None:
        try:
            with Path(save_path).open("w", encoding="utf-8") as file:
                file.writelines(jsontext.text_of(row) + "\n" for row in rows)
        except OSError as error:
            raise InputError(f"{save_path} cannot be written: {error.strerror}") from error
    return rows


class _Actions:
    """An environment whose tools are whatever the agent names."""

    def __init__(self, step: Callable[..., Any]) -> None:
        self._step = step
        self._tools: list[Tool] = []

    def tools(self) -> Sequence[Tool]:
        return self._tools

    def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        extra = json.loads(task.extra) if task is not None and task.extra else {}
        names = extra.get("available_tools") or []
        self._tools = [{"type": "function", "function": {"name": str(name)}} for name in names]
        text = task.instruction if task is not None and task.instruction else ""
        return Start(({"role": "user", "content": text},))

    def step(self, turn: Turn) -> Outcome:
        [call] = turn.calls
        if call.name == ERROR:
            failed = Result(call.arguments, call.call_id, call.name, ErrorType.EXECUTION)
            return Outcome((failed,), terminated=True, stop_reason=ERROR)
        if call.name in ENDS:
            return Outcome((Result("", call.call_id, call.name),), terminated=True)
        started = time.perf_counter()
        try:
            seen = self._step(call.name, json.loads(call.arguments))
            text = seen if isinstance(seen, str) else json.dumps(seen, ensure_ascii=False)
            error = None
        except Exception as fault:  # a tool of the user's; its fault is seen
            text, error = f"Error executing {call.name}: {fault}", ErrorType.EXECUTION
        took = (time.perf_counter() - started) * 1000
        return Outcome((Result(text, call.call_id, call.name, error, duration_ms=took),))

    def score(self, trajectory: Trajectory) -> Verdict:
        return Verdict()

    def fork(self) -> _Actions:
        raise UsageError("an agent's own environment cannot be copied")

    def close(self) -> None:
        """It holds nothing."""


def _method(thing: Any, names: Sequence[str], what: str) -> Callable[..., Any]:
    for name in names:
        method: Any = getattr(thing, name, None)
        if callable(method):
            return method  # type: ignore[no-any-return]
    if callable(thing):
        return thing  # type: ignore[no-any-return]
    raise UsageError(f"the {what} is a {type(thing).__name__}; give it {' or '.join(names)}")


def _history(request: Request) -> list[dict[str, Any]]:
    """The steps so far, from the messages."""
    steps: list[dict[str, Any]] = []
    for message in request.messages:
        for call in message.get("tool_calls") or ():
            function = call["function"]
            given = function["arguments"]
            given = json.loads(given) if isinstance(given, str) else given
            thought = message.get("reasoning_content") or message.get("reasoning") or ""
            steps.append({"thought": thought, "action": function["name"], "action_input": given})
        if message.get("role") == "tool" and steps:
            steps[-1]["observation"] = message.get("content") or ""
    return steps


def _of_store(run: Trajectory) -> AgentTrajectory:
    line = jsontext.text_of(SageTrajectories().write(run, Losses()))
    return AgentTrajectory.from_json(line)
