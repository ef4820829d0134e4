"""What trajectories are compared with besides the tasks of their own store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from adp.stores.tasks import TaskIndex, TaskKey, find_tasks, key_of, same_tasks
from adp_schema.ids import digest
from adp_schema.model import Task, Trajectory
from adp_schema.store import Store


@dataclass(frozen=True)
class References:
    """Tasks that say what is right.

    Attributes:
        name: what to call them; it is kept with the scores, together with their hash.
        tasks: what tells the task from others -> the task.
    """

    name: str
    tasks: Mapping[TaskKey, Task]

    @property
    def label(self) -> str:
        """The name with a hash of the tasks."""
        keys = sorted(self.tasks, key=lambda key: (key.task_id, *map(str, key)))
        texts = [self.tasks[key].model_dump_json(exclude_none=True) for key in keys]
        return f"{self.name} {digest(chr(10).join(texts).encode())}"

    def over(self, keys: Iterable[TaskKey]) -> Mapping[TaskKey, Task]:
        """The references of tasks, by the names of these.

        Args:
            keys: the tasks that are scored, all of them: which one a reference is of may depend on
                what else there is.
        """
        same = same_tasks(self.tasks, keys)
        names: dict[TaskKey, Task] = {}
        for key, task in self.tasks.items():
            names.setdefault(key.name, task)
        return {other: names[name] for other, name in same.items()}


def put_over(task: Task | None, more: Task | None) -> Task | None:
    """A task with what a reference knows put over what the store says."""
    if more is None or task is None:
        return more or task
    known = {
        name: value for name in Task.model_fields if (value := getattr(more, name)) is not None
    }
    return task.model_copy(update=known)


def references(name: str, tasks: Iterable[Task]) -> References:
    """References from tasks; of several that cannot be told apart the first counts."""
    results: dict[TaskKey, Task] = {}
    for task in tasks:
        key = key_of(task)
        if key is not None:
            results.setdefault(key, task)
    return References(name, results)


def from_tasks(store: Store) -> References:
    """Take what the tasks of another store say."""
    return References(store.name, TaskIndex(store).tasks())


def from_store(store: Store) -> References:
    """Take one run of each task of a store for the right one: a successful one if there is one.

    Its calls are the expected calls, its messages the gold trajectory, its final answer the answer
    where the task has none.
    """
    tasks = find_tasks(store)
    best: dict[TaskKey, tuple[bool, Trajectory]] = {}
    for trajectory in store.trajectories():
        key = tasks[str(trajectory.trajectory_id)].key
        if key is None or trajectory.parent_id is not None or trajectory.success is False:
            continue
        good = trajectory.success is True
        if key not in best or (good and not best[key][0]):
            best[key] = (good, trajectory)
    return References(
        store.name, {key: as_reference(trajectory) for key, (_, trajectory) in best.items()}
    )


def as_reference(trajectory: Trajectory) -> Task:
    """A run as what is right for its task."""
    calls = [
        {"name": call.name, "arguments": _arguments(call.arguments)}
        for step in trajectory.steps
        for call in step.calls
        if call.requestor in (None, "agent")
    ]
    answer = trajectory.final_answer
    return Task(
        task_id=trajectory.task_id,
        expected_calls=json.dumps(calls, ensure_ascii=True),
        gold_trajectory=json.dumps(_messages(trajectory), ensure_ascii=True),
        answers=None if answer is None else json.dumps([answer], ensure_ascii=True),
    )


def _arguments(text: str | None) -> object:
    try:
        return json.loads(text) if text is not None else None
    except ValueError:
        return text


def _messages(trajectory: Trajectory) -> list[dict[str, object]]:
    """The run as messages in the OpenAI shape."""
    messages: list[dict[str, object]] = []
    for step in trajectory.steps:
        role = {"agent": "assistant", "system": "system"}.get(step.source or "", "user")
        message: dict[str, object] = {"role": role, "content": step.text or ""}
        if step.calls:
            message["tool_calls"] = [
                {
                    "id": call.call_id or f"call_{step.step}_{call.call}",
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": call.arguments or call.arguments_raw,
                    },
                }
                for call in step.calls
            ]
        if step.kind != "context_edit":
            messages.append(message)
        for result in step.observations:
            answer: dict[str, object] = {"role": "tool", "content": result.text or ""}
            if result.call is not None:
                answer["tool_call_id"] = result.call_id or f"call_{result.call_step}_{result.call}"
            messages.append(answer)
    return messages
