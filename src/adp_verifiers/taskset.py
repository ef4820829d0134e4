"""The taskset: tasks of an environment of adp, its tools, its stops, and its own verdict.

The tools run in a server that verifiers starts for each rollout. The verdict is found afterwards:
the turns of the trace are played again in a fresh environment, which depends on task and seed
alone, and judges them. When it answers otherwise than it did, the rollout is not scored.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import verifiers.v1 as vf

from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.recorder import About
from adp.rollouts.collecting.tasks import read_tasks
from adp.rollouts.environment import ENVIRONMENTS, as_async
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.spec import load
from adp.rollouts.turns import Call, Turn
from adp_schema.model import Task, Trajectory
from adp_verifiers.data import AdpState, AdpTaskData
from adp_verifiers.toolset import AdpToolset


class AdpTasksetConfig(vf.TasksetConfig):
    """Which environment, and which of its tasks."""

    environment: str = "calculator"
    """The environment as on the command line of adp."""
    tasks: str = "train:100"
    """A file, a store, or ``SPLIT:COUNT`` of an environment that makes tasks."""
    seed: int = 0
    """Seed of the episodes."""


class AdpTask(vf.Task[AdpTaskData, AdpState]):
    """One task of an environment of adp."""

    @property
    def key(self) -> str:
        """The id of the task in its environment: the same for all attempts."""
        return f"{self.data.environment}/{self.data.id}"

    @classmethod
    def toolsets(cls, config: Any) -> list[vf.Toolset]:
        """The tools of the environment, in a server of their own for each rollout."""
        return [AdpToolset(vf.ToolsetConfig())]

    @vf.stop
    async def environment_is_done(self, trace: vf.Trace) -> bool:
        """Whether the environment has ended the episode."""
        return bool(trace.state.done)

    @vf.reward
    async def environment(self, trace: vf.Trace) -> dict[str, float]:
        """The environment's own reward, or 1 for success; nothing when it was not judged."""
        run = await replayed(self.data, trace)
        if run.reward is not None:
            return {"environment": float(run.reward)}
        return {} if run.success is None else {"environment": float(run.success)}

    @vf.metric
    async def calls(self, trace: vf.Trace) -> float:
        """Calls of tools."""
        return float(sum(len(message.tool_calls or ()) for message in trace.assistant_messages))


class AdpTaskset(vf.Taskset[AdpTask, AdpTasksetConfig]):
    """The tasks of an environment of adp."""

    @cached_property
    def _kind(self) -> Any:
        return load(ENVIRONMENTS, self.config.environment)

    def load(self) -> Iterable[AdpTask]:
        """The tasks, each with the first messages that the environment gives."""
        kind, settings = self._kind
        for task in read_tasks(self.config.tasks, kind, settings).tasks:
            system, prompt = _beginning(kind, settings, task, self.config.seed)
            yield AdpTask(
                AdpTaskData(
                    id=task.task_id,
                    prompt=prompt,
                    system_prompt=system,
                    environment=self.config.environment,
                    task=task.model_dump_json(exclude_none=True),
                    seed=self.config.seed,
                ),
                self.config.task,
            )


def _beginning(kind: Any, settings: Any, task: Task, seed: int) -> tuple[str | None, str]:
    """The first messages of an episode: the system's, and the others as one text."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    async def begun() -> Any:
        environment = as_async(kind.make(settings))
        try:
            return await environment.reset(task, seed=seed)
        finally:
            await environment.close()

    with ThreadPoolExecutor(1) as thread:  # a loop may be running in this one
        start = thread.submit(asyncio.run, begun()).result()
    texts: dict[bool, list[str]] = {True: [], False: []}
    for message in start.messages:
        texts[message["role"] == "system"].append(str(message.get("content") or ""))
    return "\n\n".join(texts[True]) or None, "\n\n".join(texts[False])


async def replayed(data: AdpTaskData, trace: Any) -> Trajectory:
    """Play the turns of a trace again, in a fresh environment that judges them.

    Args:
        data: the task.
        trace: the finished trace.

    Raises:
        ValueError: the environment answers otherwise than it did in the rollout.
    """
    kind, settings = load(ENVIRONMENTS, data.environment)
    task = Task.model_validate_json(data.task)
    turns = [_turn(message) for message in trace.assistant_messages]
    about = About(dataset="verifiers", task=task, seed=data.seed, timed=False)
    limits = Limits(max_turns=max(1, len(turns)))
    run = await run_episode(about, kind.make(settings), Alone(Scripted(turns)), limits)
    if run.error_type is not None:
        raise ValueError(f"the environment broke: {run.error_message}")
    seen = [str(message.content) for message in trace.tool_messages]
    again = [result.text or "" for step in run.steps for result in step.observations]
    if len(seen) != len(again) or not all(map(str.startswith, seen, again)):
        raise ValueError(
            "the environment answers otherwise than it did in the rollout, so it cannot judge it"
        )
    return run


def _turn(message: Any) -> Turn:
    calls = tuple(
        Call(call.name, call.arguments, call.id or "") for call in message.tool_calls or ()
    )
    return Turn(
        text=message.content or "", calls=calls, reasoning=message.reasoning_content or None
    )
