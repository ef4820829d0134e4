"""Tasks that an environment makes up: the same for the same seed, and no task in two splits."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence

from adp_schema.errors import UsageError
from adp_schema.ids import digest
from adp_schema.model import Task

SPLITS = ("train", "validation", "test")
USUAL_COUNT = 100
"""Tasks that are made when no count is given."""

Question = tuple[str, Sequence[str], str]
"""An instruction, the answers that are right, and a word for how hard it is."""


def split_of(instruction: str) -> str:
    """The split that a question belongs to, by its hash: 80, 10 and 10 of a hundred."""
    place = int(digest(instruction.encode())[:8], 16) % 10
    return SPLITS[max(0, place - 7)]


def generated(
    environment: str,
    make: Callable[[random.Random], Question],
    split: str,
    count: int | None,
    seed: int,
) -> list[Task]:
    """Tasks with answers.

    The first ``n`` tasks are the same whatever the count.

    Args:
        environment: name of the environment; ids begin with it.
        make: makes a question out of random numbers.
        split: ``train``, ``validation`` or ``test``; they have no question in common.
        count: number of tasks; None: 100.
        seed: fixes the questions.

    Raises:
        UsageError: there is no such split, or there are not as many questions.
    """
    if split not in SPLITS:
        raise UsageError(f"there is no split '{split}'; splits: {', '.join(SPLITS)}")
    wanted = USUAL_COUNT if count is None else count
    rng = random.Random(f"{environment}/{split}/{seed}")
    results: dict[str, Task] = {}
    for _ in range(100 * wanted + 1000):
        if len(results) >= wanted:
            return list(results.values())
        instruction, answers, difficulty = make(rng)
        if instruction in results or split_of(instruction) != split:
            continue
        results[instruction] = Task(
            task_id=f"{environment}-{split}-{seed}-{len(results)}",
            split=split,
            instruction=instruction,
            answers=json.dumps(list(answers)),
            environment=environment,
            difficulty=difficulty,
        )
    raise UsageError(f"'{environment}' has only {len(results)} tasks like these; ask for fewer")
