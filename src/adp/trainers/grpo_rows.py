"""Prompts for GRPO: what a model is asked, exactly as it will see it, and what is known of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adp.rendering.chat import Chat, Message, chats_of
from adp.rendering.prepare import plain_tools, prepare
from adp.rendering.probe import TemplateRefusalError
from adp.rendering.render import Renderer
from adp.stores.tasks import TaskIndex, TaskKey
from adp.trainers.config_methods import GrpoSection
from adp.trainers.preference_rows import PairCounts
from adp.trainers.store_parts import Part, StoreParts
from adp_schema.model import Task, Trajectory
from adp_schema.store import Store


@dataclass(frozen=True)
class GrpoPrompt:
    """One prompt.

    Attributes:
        source_id: id of the trajectory that it comes from; of the task without one.
        task_id: id of the task.
        text: what the model sees, up to where it begins to write.
        tokens: its length.
        answers: reference answers of the task, as JSON; None: unknown.
        expected_calls: calls that are expected next, as JSON; None: unknown.
        tools: tools on offer, as JSON; None: none.
    """

    source_id: str
    task_id: str | None
    text: str
    tokens: int
    answers: str | None = None
    expected_calls: str | None = None
    tools: str | None = None


def prompts(
    store: Store, renderer: Renderer, parts: StoreParts, tally: PairCounts, options: GrpoSection
) -> Iterator[tuple[Part, GrpoPrompt]]:
    """The prompts of a store, and what each is for.

    Args:
        store: trajectories and tasks.
        renderer: of the model.
        parts: what each trajectory is for.
        tally: counts what gives no prompt.
        options: which prompts are made.
    """
    tasks = TaskIndex(store)
    maker = _Maker(renderer, options, tally)
    if options.prompts == "steps":
        for part, trajectory in _main_lines(store, parts):
            for prompt in maker.steps(trajectory, tasks.of(trajectory)):
                yield part, prompt
        return
    yield from _first(store, parts, maker, tasks)


def _main_lines(store: Store, parts: StoreParts) -> Iterator[tuple[Part, Trajectory]]:
    for trajectory in store.trajectories():
        part = parts.of(trajectory.trajectory_id or "")
        if trajectory.parent_id is None and part is not None:
            yield part, trajectory


def _first(
    store: Store, parts: StoreParts, maker: _Maker, tasks: TaskIndex
) -> Iterator[tuple[Part, GrpoPrompt]]:
    """One prompt a task: that of its best run, which also says which call comes first."""
    best: dict[TaskKey | str, tuple[tuple[bool, float], Part, GrpoPrompt]] = {}
    for part, trajectory in _main_lines(store, parts):
        prompt = maker.first(trajectory, tasks.of(trajectory))
        if prompt is None:
            continue
        key = tasks.key(trajectory) or str(trajectory.trajectory_id)
        reward = trajectory.reward
        known = reward is not None and not np.isnan(reward)
        score = (bool(trajectory.success), float(reward) if known and reward else 0.0)
        if key not in best or score > best[key][0]:
            best[key] = (score, part, prompt)
    for _, part, prompt in best.values():
        yield part, prompt
    for task_id, task in tasks.tasks().items():
        if task_id.name not in best and task.instruction:
            alone = maker.of_task(task)
            if alone is not None:
                yield "train", alone


class _Maker:
    """Makes prompts of chats."""

    def __init__(self, renderer: Renderer, options: GrpoSection, tally: PairCounts) -> None:
        self._renderer = renderer
        self._options = options
        self._tally = tally

    def first(self, trajectory: Trajectory, task: Task | None) -> GrpoPrompt | None:
        """The first messages of a trajectory, before the agent's."""
        chat = chats_of(trajectory).chats[0]
        place = next((i for i, m in enumerate(chat.messages) if m.role == "assistant"), None)
        message = None if place is None else chat.messages[place]
        asked = chat.messages if place is None else chat.messages[:place]
        calls = None if message is None or trajectory.success is False else _calls(message)
        return self._prompt(chat, asked, task, calls, _answers(task))

    def steps(self, trajectory: Trajectory, task: Task | None) -> Iterator[GrpoPrompt]:
        """What the model saw before each trained step."""
        for chat in chats_of(trajectory).chats:
            for index in chat.trained():
                message = chat.messages[index]
                # Only a step that answers is compared with the reference answers.
                answers = None if message.calls else _answers(task)
                asked = chat.messages[:index]
                prompt = self._prompt(chat, asked, task, _calls(message), answers)
                if prompt is not None:
                    yield prompt

    def of_task(self, task: Task) -> GrpoPrompt | None:
        """The instruction of a task that no trajectory tries."""
        asked = (Message("user", task.instruction or "", 0),)
        chat = Chat(task.task_id or "", 0, 0, asked)
        return self._prompt(chat, asked, task, None, _answers(task))

    def _prompt(
        self,
        chat: Chat,
        asked: tuple[Message, ...],
        task: Task | None,
        calls: str | None,
        answers: str | None,
    ) -> GrpoPrompt | None:
        left_out, template = self._tally.left_out, self._renderer.template
        if not any(message.role == "user" for message in asked):
            left_out["nothing is asked before the agent speaks"] += 1
            return None
        asked_only = replace(chat, messages=asked).weigh([])
        try:
            ready = prepare(asked_only, self._renderer.options, template.forms, self._tally.notes)
            text = template.render(template.plain(ready), plain_tools(ready), prompt=True)
        except TemplateRefusalError as error:
            left_out[f"refused: {error}"] += 1
            return None
        length = len(self._renderer.encoder.encode(text).ids)
        limit = self._options.max_prompt_length
        if limit is not None and length > limit:
            left_out["longer than max_prompt_length"] += 1
            return None
        if self._options.calls_from == "task":
            calls = None if task is None else task.expected_calls
        tools: Any = plain_tools(chat)
        return GrpoPrompt(
            chat.trajectory_id,
            None if task is None else task.task_id,
            text,
            length,
            answers,
            calls,
            json.dumps(tools, ensure_ascii=False) if tools else None,
        )


def _answers(task: Task | None) -> str | None:
    return None if task is None else task.answers


def _calls(message: Message) -> str | None:
    """The calls of a message as they are expected again; None for one that is not learnt from."""
    if not message.weight or not all(call.valid for call in message.calls):
        return None
    calls = [{"name": call.name, "arguments": call.arguments} for call in message.calls]
    return json.dumps(calls, ensure_ascii=False)
