"""A policy that says what was said in a recorded run, turn by turn.

    replay:store=runs/first

Each (task, attempt) gets the turns of the trajectory that was recorded for it, exactly: text,
reasoning, calls, usage and tokens. What the environment answers is its own; so a recorded run can
be carried out again, in a mended environment or under another scorer. Of several trajectories for
one (task, attempt) the first is taken; of tries that broke and were made again, the last.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from adp.core.json_values import json_object
from adp.rollouts.collecting.attempts import superseded, tries_of
from adp.rollouts.environment import Settings
from adp.rollouts.policy import AgentLimitError, InfrastructureError, PolicyKind, Request
from adp.rollouts.turns import USAGE_COLUMNS, Call, Turn, Usage
from adp.stores.tasks import TaskKey, find_tasks, key_of, same_tasks
from adp_schema.errors import EmptyResultError
from adp_schema.model import Step, Task, ToolCall, Trajectory
from adp_schema.store import Store

_KEPT = 256
"""Trajectories that are held; an episode asks for its own again and again."""

_ROLLOUT_KEYS = ("malformed", "tools_offered")
"""What the recorder itself puts into ``extra``."""


class ReplaySettings(Settings):
    """Settings of the policy ``replay``."""

    store: str
    """The store with the recorded runs."""
    dataset: str | None = None
    """Only the trajectories of this data set."""


class ReplayPolicy:
    """Says what was recorded.

    Args:
        settings: its settings.

    Raises:
        StoreError: there is no store.
        EmptyResultError: it holds no trajectory to replay.
    """

    def __init__(self, settings: ReplaySettings) -> None:
        self._store = Store.open(settings.store)
        self.name = f"replay:{self._store.name}"
        self._ids = _index(self._store, settings.dataset)
        self._tasks: dict[str, dict[TaskKey, None]] = {}
        for key, _ in self._ids:
            self._tasks.setdefault(key.task_id, {})[key] = None
        self._turns: OrderedDict[str, Sequence[Turn]] = OrderedDict()
        if not self._ids:
            where = f" of the data set {settings.dataset}" if settings.dataset else ""
            raise EmptyResultError(f"{settings.store} holds no trajectory{where} to replay")

    async def act(self, request: Request) -> Turn:
        """The recorded turn.

        Raises:
            InfrastructureError: nothing was recorded for this task and attempt.
            AgentLimitError: the recorded run has no further turn.
        """
        name = self._name(request.task, request.attempt)
        turns = self._recorded(name)
        if request.turn >= len(turns):
            raise AgentLimitError(
                "recording_ended", f"the recorded run {name} has {len(turns)} turns"
            )
        return turns[request.turn]

    async def close(self) -> None:
        """Forget what was read."""
        self._turns.clear()

    def _name(self, task: Task | None, attempt: int) -> str:
        """The trajectory of an attempt at a task."""
        task_id = (task.task_id if task else None) or ""
        known = list(self._tasks.get(task_id, ()))
        task_key = None if task is None else key_of(task)
        if len({key.name for key in known}) > 1 and task_key is not None:
            same = same_tasks(known, [task_key]).get(task_key.name)
            if same is None:
                raise InfrastructureError(
                    "not_recorded",
                    f"the store holds runs of {len(known)} tasks '{task_id}', and none is surely "
                    "that of this call; name the data set of its runs, dataset=NAME",
                )
            known = [key for key in known if key.name == same]
        name = next((id_ for key in known if (id_ := self._ids.get((key, attempt)))), None)
        if name is None:
            raise InfrastructureError(
                "not_recorded", f"the store holds no run of the task '{task_id}', attempt {attempt}"
            )
        return name

    def _recorded(self, name: str) -> Sequence[Turn]:
        if name not in self._turns:
            self._turns[name] = recorded_turns(self._store.get(name, resolve=True))
            if len(self._turns) > _KEPT:
                self._turns.popitem(last=False)
        self._turns.move_to_end(name)
        return self._turns[name]


def recorded_turns(trajectory: Trajectory) -> list[Turn]:
    """The turns of the agent in a trajectory, without those that are copied context."""
    return [
        _turn(step)
        for step in trajectory.steps
        if step.source == "agent"
        and step.kind not in ("context_edit", "event")
        and not step.is_copied_context
    ]


def _index(store: Store, dataset: str | None) -> Mapping[tuple[TaskKey, int], str]:
    """Main lines by task and attempt, the first one of each that was not made again."""
    tasks = find_tasks(store)
    tries = list(tries_of(store))
    again = superseded(tries)
    index: dict[tuple[TaskKey, int], str] = {}
    for item in tries:
        name = str(item.trajectory_id)
        wanted = item.is_attempt and dataset in (None, item.dataset) and name not in again
        key = tasks[name].key
        if wanted and key is not None:
            index.setdefault((key, item.attempt or 0), name)
    return index


def _turn(step: Step) -> Turn:
    extra = json_object(step.extra)
    malformed = extra.get("malformed")
    return Turn(
        text=(step.prose if step.prose is not None else step.text) or "",
        calls=tuple(_call(call) for call in step.calls),
        reasoning=step.reasoning,
        malformed=malformed if isinstance(malformed, str) else None,
        model=step.model,
        response_id=step.response_id,
        stop_reason=step.stop_reason,
        usage=Usage(
            **{name: getattr(step, name) for name in USAGE_COLUMNS},
            raw=json_object(step.usage) if step.usage is not None else None,
        ),
        prompt_token_ids=_several(step.prompt_token_ids),
        completion_token_ids=_several(step.completion_token_ids),
        logprobs=_several(step.logprobs),
        extra={key: value for key, value in extra.items() if key not in _ROLLOUT_KEYS},
    )


def _call(call: ToolCall) -> Call:
    given = call.arguments if call.arguments is not None else call.arguments_raw
    return Call(
        name=call.name or "",
        arguments="{}" if given is None else given,
        call_id=call.native_id or call.call_id or "",
    )


def _several(values: Sequence[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)


KIND = PolicyKind(
    name="replay",
    about="What was said in a recorded run, turn by turn.",
    settings=ReplaySettings,
    make=ReplayPolicy,
)
