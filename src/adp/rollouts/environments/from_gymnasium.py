"""Environments of gymnasium: one tool, ``act(action)``.

    from_gymnasium("FrozenLake-v1", actions=["left", "down", "right", "up"])

The schema of ``action`` follows from the action space; members of a discrete one may get names. The
result is the observation as JSON, and the drawing of the environment where ``render_mode`` is
``ansi``. Rewards of ``step`` are the rewards of the turn, their sum is the reward of the episode;
``terminated`` and ``truncated`` stay what they are. Source of the interface: Towers et al.,
"Gymnasium: A Standard Interface for Reinforcement Learning Environments", 2024.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from adp.core.json_values import json_or_none
from adp.rollouts.environment import CannotForkError, EnvironmentKind, Settings, Start, Verdict
from adp.rollouts.environments.gymnasium_spaces import action_of, observed, schema_of
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool, arguments_schema
from adp.rollouts.turns import Outcome, Result, Turn
from adp_schema.errors import MissingExtraError, UsageError
from adp_schema.ids import digest
from adp_schema.model import Task, Trajectory

NAME = "gymnasium"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_MOST_SEED = 2**31


class GymnasiumSettings(Settings):
    """Settings of the environment ``gymnasium``."""

    id: str
    """Id of the environment, such as FrozenLake-v1."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of gymnasium.make."""
    actions: tuple[str, ...] | None = None
    """Names of the actions of a discrete space, in order."""
    instruction: str | None = None
    """What the agent is told to do."""
    show_reward: bool = False
    """Whether the agent reads the rewards."""
    solved_at: float | None = None
    """Sum of rewards from which on an episode counts as solved."""


class GymnasiumEnvironment(ToolEnvironment):
    """An environment of gymnasium; `from_gymnasium` makes it.

    Args:
        world: the environment.
        settings: how it is shown and judged.
    """

    def __init__(self, world: Any, settings: GymnasiumSettings) -> None:
        self._world, self._settings = world, settings
        super().__init__([self._tool(world.action_space)])
        self._total = 0.0
        self._ended = self._truncated = False
        self._info: Mapping[str, Any] = {}

    def _tool(self, space: Any) -> FunctionTool:
        names = self._settings.actions
        if names is None:
            schema = schema_of(space)
        elif type(space).__name__ == "Discrete" and int(space.n) == len(set(names)) == len(names):
            schema = {"type": "string", "enum": list(names)}
        else:
            raise UsageError(f"the names in 'actions' must be as many as the actions of {space}")
        parameters = arguments_schema({"action": {**schema, "description": "The action."}})
        about = "Does an action, and tells what is observed then."
        return FunctionTool("act", about, parameters, self._act)

    def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        """Begin an episode. The task may fix the seed and the options of ``reset``.

        Args:
            task: its ``environment_config`` may hold ``seed`` and ``options``.
            seed: seed, where the task has none.

        Raises:
            UsageError: the task's configuration is no JSON object.
        """
        self.task, self.seed, self.answer = task, seed, None
        self._total, self._ended, self._truncated, self._info = 0.0, False, False, {}
        config = _config(task)
        chosen = config.get("seed", seed)
        if chosen is not None:
            chosen = int(chosen) % _MOST_SEED
        observation, info = self._world.reset(seed=chosen, options=config.get("options"))
        instruction_text = (task.instruction if task else None) or instruction(self._settings)
        text = f"{instruction_text}\n\n{self._shown(observation)}"
        return Start(({"role": "user", "content": text},), {"reset": observed(info)})

    def step(self, turn: Turn) -> Outcome:
        """Carry out a turn: actions in order, or an answer, which ends the episode."""
        before = self._total
        outcome = super().step(turn)
        if turn.malformed is not None or not turn.calls:
            return outcome
        acted = any(result.error is None for result in outcome.results)
        stopped = "truncated" if self._truncated else "terminated"
        return replace(
            outcome,
            reward=self._total - before if acted else None,
            terminated=self._ended and not self._truncated,
            truncated=self._truncated,
            stop_reason=stopped if self._ended else None,
        )

    def is_over(self) -> bool:
        """Whether an action has ended the episode."""
        return self._ended

    def _act(self, action: Any) -> Result:
        names = self._settings.actions
        space = self._world.action_space
        value = int(space.start) + names.index(action) if names else action
        observation, reward, terminated, truncated, info = self._world.step(action_of(space, value))
        self._total += float(reward)
        self._ended = bool(terminated or truncated)
        # An end of its own counts, even if the limit is reached with the same step.
        self._truncated = bool(truncated and not terminated)
        self._info = info
        lines = [self._shown(observation)]
        if self._settings.show_reward:
            lines.append(f"Reward: {float(reward):g}")
        if self._ended:
            lines.append("The episode has ended.")
        structured = {
            "observation": observed(observation),
            "reward": observed(float(reward)),
            "terminated": bool(terminated),
            "truncated": bool(truncated),
            "info": observed(info),
        }
        return Result(text="\n".join(lines), structured=structured)

    def _shown(self, observation: Any) -> str:
        value = observed(observation)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if getattr(self._world, "render_mode", None) != "ansi":
            return text
        return f"{text}\n{_COLOURS.sub('', str(self._world.render())).strip()}"

    def score(self, trajectory: Trajectory) -> Verdict:
        """The sum of the rewards; success by ``solved_at``, or by what the environment says."""
        success = next(
            (bool(self._info[key]) for key in ("is_success", "success") if key in self._info), None
        )
        if self._settings.solved_at is not None:
            success = self._total >= self._settings.solved_at
        return Verdict(success=success, reward=self._total)

    def fork(self) -> GymnasiumEnvironment:
        """A deep copy.

        Raises:
            CannotForkError: the environment cannot be copied.
        """
        try:
            world = copy.deepcopy(self._world)
        except Exception as error:
            raise CannotForkError(f"this environment cannot be copied: {error}") from error
        twin = copy.copy(self)
        twin._world = world
        tool = copy.copy(self.functions["act"])
        object.__setattr__(tool, "run", twin._act)
        twin.functions = {"act": tool}
        return twin

    def close(self) -> None:
        """Close the environment."""
        self._world.close()


def from_gymnasium(
    source: str | Callable[[], Any] | GymnasiumSettings, **settings: Any
) -> GymnasiumEnvironment:
    """Make an environment of one of gymnasium's.

    Args:
        source: id, or a function that makes the environment, or settings.
        **settings: settings of `GymnasiumSettings`.

    Raises:
        MissingExtraError: gymnasium is not installed.
        UsageError: there is no such environment, or its actions cannot be written as JSON.
    """
    if isinstance(source, GymnasiumSettings):
        return GymnasiumEnvironment(_made(source), source)
    if isinstance(source, str):
        return from_gymnasium(GymnasiumSettings(id=source, **settings))
    world = source()
    return GymnasiumEnvironment(world, GymnasiumSettings(id=type(world).__name__, **settings))


def instruction(settings: GymnasiumSettings) -> str:
    """What the agent is told to do, where a task does not say it."""
    default = f"Act in {settings.id} with the tool act until the episode ends."
    return settings.instruction or default


def _made(settings: GymnasiumSettings) -> Any:
    try:
        import gymnasium
    except ImportError as error:
        raise MissingExtraError("gymnasium", "gymnasium") from error
    try:
        return gymnasium.make(settings.id, **settings.options)
    except (gymnasium.error.Error, ImportError, TypeError) as error:
        raise UsageError(f"gymnasium cannot make '{settings.id}': {error}") from error


def _config(task: Task | None) -> Mapping[str, Any]:
    if task is None or task.environment_config is None:
        return {}
    value = json_or_none(task.environment_config)
    if not isinstance(value, dict) or not isinstance(value.get("seed", 0), int):
        raise UsageError(f"environment_config of the task '{task.task_id}' is no JSON object")
    return value


def _tasks(settings: GymnasiumSettings, split: str, count: int | None, seed: int) -> Sequence[Task]:
    """Tasks are seeds: every attempt at a task begins in the same state."""
    tasks = []
    for number in range(100 if count is None else count):
        chosen = int(digest(f"{settings.id}/{split}/{seed}/{number}".encode())[:8], 16)
        tasks.append(
            Task(
                task_id=f"{settings.id}-{split}-{seed}-{number}",
                split=split,
                instruction=instruction(settings),
                environment=NAME,
                environment_config=json.dumps({"seed": chosen % _MOST_SEED}),
            )
        )
    return tasks


KIND = EnvironmentKind(
    name=NAME,
    about="An environment of gymnasium, played with one tool; its tasks are seeds.",
    settings=GymnasiumSettings,
    make=from_gymnasium,
    tasks=_tasks,
)
"""What the registry holds."""
