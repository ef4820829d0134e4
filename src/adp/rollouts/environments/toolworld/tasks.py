"""Tasks of toolworld. A task alone is enough to play its episode again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any, Literal

from pydantic import Field, field_validator

from adp.rollouts.environment import Settings
from adp.rollouts.environments.toolworld.questions import (
    KIND_PATTERN,
    Endings,
    PlannedAction,
    draw,
    split_of_pair,
)
from adp.rollouts.environments.toolworld.toolset import DISTRACTORS, draw_tools, rename_tools
from adp.rollouts.environments.toolworld.world import Split, World
from adp_schema.errors import UsageError
from adp_schema.model import Task

DEFAULT_COUNT = 100
UNSEEN_TOOLS, LONGER_PATHS = "unseen_tools", "longer_paths"
SPLITS: dict[str, Split] = {
    "train": "train",
    "test": "test",
    UNSEEN_TOOLS: "test",
    LONGER_PATHS: "test",
}
"""Splits of tasks, and the split whose names and compositions they have.

``unseen_tools`` is ``test`` in which two of the tools have other names and arguments, one of them
at least needed. ``longer_paths`` has paths that are longer by one or two keys than any in ``train``
with the same settings, and of sums those with a side that is longer by one.
"""


class ToolworldSettings(Settings):
    """Settings of the environment ``toolworld``. They shape new tasks; a task keeps its own."""

    kinds: tuple[str, ...] = ("c1", "c2", "c3", "sum", "cmp")
    """Kinds of questions, in turn: c1 to c9 (so many hops), sum, cmp."""
    max_hops: int = Field(default=3, ge=1, le=9)
    """Longest path in hops; longer kinds are left out."""
    endings: Endings = "attribute"
    """What paths end in: an attribute, or (any) an attribute or a relation."""
    failures: float = Field(default=0.12, ge=0, lt=1)
    """Share of calls that fail for once: busy, try again."""
    distractors: int = Field(default=2, ge=0, le=len(DISTRACTORS))
    """Tools that no question needs."""
    tool_names: Literal["fixed", "random"] = "fixed"
    """Whether tools have names that say what they do."""
    budget: int = Field(default=4, ge=0)
    """Actions beyond the fewest; calls that were busy are free."""

    @field_validator("kinds")
    @classmethod
    def _known(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        if not kinds or not all(KIND_PATTERN.fullmatch(kind) for kind in kinds):
            raise ValueError("kinds are c1 to c9, sum and cmp")
        return kinds

    def kinds_in_reach(self) -> list[str]:
        """Kinds whose paths are no longer than ``max_hops``.

        Raises:
            UsageError: there is none.
        """
        kinds = [
            kind for kind in self.kinds if not kind[1:].isdigit() or int(kind[1:]) <= self.max_hops
        ]
        if not kinds:
            raise UsageError(f"no kind of toolworld has {self.max_hops} hops or fewer; add c1")
        return kinds

    def longer_kinds(self) -> list[str]:
        """Kinds of ``longer_paths``: chains beyond the longest one, and sums if there are any.

        Raises:
            UsageError: none of them can be longer.
        """
        kinds = self.kinds_in_reach()
        hops = [int(kind[1:]) for kind in kinds if kind[1:].isdigit()]
        longer = [f"c{max(hops) + more}" for more in (1, 2)] if hops else []
        longer = [kind for kind in longer if KIND_PATTERN.fullmatch(kind)]
        longer += ["sum"] if "sum" in kinds else []
        if not longer:
            raise UsageError("the split longer_paths needs a kind from c1 to c8, or sum")
        return longer


def make_tasks(
    settings: ToolworldSettings, split: str = "train", count: int | None = None, seed: int = 0
) -> Sequence[Task]:
    """Make tasks. The kinds take turns; the first tasks of a longer list are the same.

    Args:
        settings: what they are like.
        split: ``train``, ``test``, ``unseen_tools`` or ``longer_paths``.
        count: how many; None: 100.
        seed: other seeds give other tasks.

    Raises:
        UsageError: there is no such split, or no kind is short enough.
    """
    if split not in SPLITS:
        *others, last = SPLITS
        raise UsageError(f"toolworld has the splits {', '.join(others)} and {last}, not '{split}'")
    kinds = settings.longer_kinds() if split == LONGER_PATHS else settings.kinds_in_reach()
    number = DEFAULT_COUNT if count is None else count
    return [
        make_task(settings, split, kinds[index % len(kinds)], f"{seed}-{index}")
        for index in range(number)
    ]


def make_task(settings: ToolworldSettings, split: str, kind: str, name: str) -> Task:
    """Make one task.

    Args:
        settings: what it is like.
        split: its split, one of `SPLITS`.
        kind: its kind.
        name: what is drawn depends on it; the end of the task's id.
    """
    task_id = f"toolworld-{split}-{name}"
    random, known = Random(f"{task_id}/{kind}"), SPLITS[split]
    longer = split == LONGER_PATHS
    while True:
        world = World(random.getrandbits(48), known)
        question = draw(kind, known, settings.max_hops, settings.endings, random, longer=longer)
        plan, answer = question.solve(world)
        if len({action.key for action in plan}) == len(plan) and _decided(plan[-1], world):
            break
    tools = draw_tools(known, settings.distractors, settings.tool_names, random)
    config = {
        "world": world.seed,
        "split": known,
        "question": question.as_json(),
        "tools": [list(pair) for pair in tools],
        "failures": settings.failures,
        "budget": settings.budget,
    }
    if split == UNSEEN_TOOLS:
        tools, arguments = rename_tools(tools, [action.role for action in plan], random)
        config |= {"tools": [list(pair) for pair in tools], "arguments": arguments}
    calls = [_call(action, dict(tools), config) for action in plan]
    pairs = [pair for path in question.pairs() for pair in path]
    unseen = sum(split_of_pair(*pair) == "test" for pair in pairs)
    return Task(
        task_id=task_id,
        dataset="toolworld",
        split=split,
        instruction=question.text,
        answers=json.dumps([answer]),
        expected_calls=json.dumps(calls),
        environment="toolworld",
        environment_config=json.dumps(config),
        difficulty=kind,
        extra=json.dumps({"calls": len(plan), "unseen_pairs": unseen}),
    )


def _call(action: PlannedAction, names: dict[str, str], config: dict[str, Any]) -> dict[str, Any]:
    """A planned action as a call, under the names of its tool and arguments."""
    name = names[action.role]
    renamed = config.get("arguments", {}).get(name, {})
    shown = {known: argument for argument, known in renamed.items()}
    arguments = {shown.get(key, key): value for key, value in action.arguments.items()}
    return {"name": name, "arguments": arguments}


def _decided(last: Any, world: World) -> bool:
    """Whether a comparison has one right answer."""
    if last.role != "compare":
        return True
    first, second, attribute = last.arguments.values()
    return first != second and world.value(first, attribute) != world.value(second, attribute)
