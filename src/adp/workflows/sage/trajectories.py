"""Trajectories as SAGE's collector keeps them, and what reads and filters these."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

from adp.curation.apply import apply
from adp.workflows.sage.samples import store_of
from adp_schema.errors import InputError, UsageError

NOT_TOOLS = frozenset({"finish", "error"})


@dataclass
class TrajectoryStep:
    """A step: what the agent thought and did, and what came back."""

    step_id: int = 0
    thought: str = ""
    action: str = ""
    action_input: dict[str, Any] = field(default_factory=dict)
    observation: str = ""
    reward: float = 0.0
    timestamp: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class AgentTrajectory:
    """A run of an agent, as a line of ``trajectories.jsonl`` holds it."""

    task_id: str
    instruction: str
    steps: list[TrajectoryStep] = field(default_factory=list)
    success: bool = False
    total_reward: float = 0.0
    trajectory_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    start_time: str = ""
    end_time: str = ""
    available_tools: list[str] = field(default_factory=list)
    ground_truth: dict[str, Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def num_steps(self) -> int:
        """The number of steps."""
        return len(self.steps)

    @property
    def duration_seconds(self) -> float:
        """Seconds from start to end; 0 when one of them is missing."""
        try:
            start, end = (datetime.fromisoformat(text) for text in (self.start_time, self.end_time))
            return (end - start).total_seconds()
        except (ValueError, TypeError):
            return 0.0

    @property
    def actions_taken(self) -> list[str]:
        """The actions, in order."""
        return [step.action for step in self.steps]

    @property
    def tools_used(self) -> list[str]:
        """The actions that are calls of tools, in order."""
        return [name for name in self.actions_taken if name not in NOT_TOOLS]

    def to_dict(self) -> dict[str, Any]:
        """The line as a mapping."""
        return asdict(self)

    def to_json(self) -> str:
        """The line."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> AgentTrajectory:
        """A trajectory of the mapping of a line.

        Raises:
            UsageError: it is no such line.
        """
        try:
            steps = [TrajectoryStep(**_known(TrajectoryStep, step)) for step in given["steps"]]
            return cls(**{**_known(cls, given), "steps": steps})
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"this is no trajectory of SAGE: {error!r}") from error

    @classmethod
    def from_json(cls, text: str) -> AgentTrajectory:
        """A trajectory of a line.

        Raises:
            UsageError: it is no such line.
        """
        try:
            value = json.loads(text)
        except ValueError as error:
            raise UsageError(f"this is no trajectory of SAGE: {error}") from error
        return cls.from_dict(value if isinstance(value, dict) else {})


def _known(kind: type, given: Mapping[str, Any]) -> dict[str, Any]:
    names = {item.name for item in fields(kind)}
    return {name: value for name, value in given.items() if name in names}


def load_trajectories(path: str | PathLike[str]) -> Iterator[AgentTrajectory]:
    """Read trajectories from a file, one a line.

    Args:
        path: JSON Lines file.

    Raises:
        InputError: the file cannot be read, or a line is no trajectory; the message names it.
    """
    try:
        with Path(path).open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _of_line(line, f"{path}, line {number}")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: {error}") from error


def _of_line(line: str, place: str) -> AgentTrajectory:
    try:
        return AgentTrajectory.from_json(line)
    except UsageError as error:
        raise InputError(f"{place}: {error}") from error


class TrajectoryFilter:
    """The op ``filter`` with the preset ``sage_doc``, on trajectories in memory.

    Args:
        min_reward: the least total reward that passes.
        require_success: whether only runs that solved their task pass.
        max_steps: most steps; None does not limit them.
        min_steps: fewest steps.
        min_tool_usage: fewest different tools.
        exclude_actions: actions that a run must not have.
    """

    def __init__(
        self,
        min_reward: float = 0.5,
        require_success: bool = True,
        max_steps: int | None = None,
        *,
        min_steps: int = 0,
        min_tool_usage: int = 0,
        exclude_actions: Sequence[str] | None = None,
    ) -> None:
        self._rules: dict[str, Any] = {
            "min_reward": min_reward,
            "require_success": require_success,
            "max_steps": max_steps,
            "min_steps": min_steps,
            "min_tool_usage": min_tool_usage,
            "exclude_actions": tuple(exclude_actions or ()),
        }

    def filter(self, trajectories: Sequence[AgentTrajectory]) -> list[AgentTrajectory]:
        """The trajectories that pass, in order."""
        dropped, _ = self._judge(trajectories)
        return [item for place, item in enumerate(trajectories) if place not in dropped]

    def get_stats(self, trajectories: Sequence[AgentTrajectory]) -> dict[str, Any]:
        """Counts: those of SAGE's code, and ``kept`` as its documentation names it."""
        _, counts = self._judge(trajectories)
        return {**counts, "kept": counts["passed_filter"]}

    def _judge(self, trajectories: Sequence[AgentTrajectory]) -> tuple[set[int], dict[str, Any]]:
        if not trajectories:
            names = ("total", "successful", "success_rate", "above_reward_threshold")
            return set(), dict.fromkeys((*names, "passed_filter", "filter_pass_rate"), 0)
        with store_of(trajectories) as samples:
            result = apply("filter", samples.store, workers=1, preset="sage_doc", **self._rules)
            assert result.dropped is not None
            dropped = {samples.places[seq] for seq in result.dropped["seq"].to_list()}
        return dropped, result.summary["sage"]
