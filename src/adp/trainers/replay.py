"""Replay inside a training: in which order new rows and those of a replay store are trained.

All follows from the seed, the epoch and the number of the step, so a training that goes on from a
checkpoint has the order of one that was never stopped. A step of T rows holds N new ones and R
replayed ones: N is the largest number with N + max(1, int(N * ratio)) <= T. Each step draws its R
rows anew; new rows come once an epoch. As SAGE's `OnlineContinualLearner.mix_with_replay`, with the
rows of an optimiser step, over all processes, as the batch.
"""

from __future__ import annotations

import csv
import functools
import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adp.core.reservoir import reservoir
from adp.stores.replay_buffer import offered_before
from adp.trainers.config import TrainConfig
from adp_schema.manifest import write_atomic
from adp_schema.store import Store

PLAN, BUFFER = "replay.json", "replay_buffer.csv"
"""Files: the plan beside the rows, and the reservoir beside the model."""


def step_rows(config: TrainConfig) -> int:
    """Rows of one step of the optimiser, over all processes."""
    training = config.training
    batch = training.per_device_train_batch_size * training.gradient_accumulation_steps
    return batch * config.launch.processes


def replayed(new: int, ratio: float) -> int:
    """Replayed rows beside so many new ones."""
    return max(1, int(new * ratio))


def new_rows(total: int, ratio: float) -> int:
    """The most new rows of a step that leave room for the replayed ones; 0 when there are none."""
    return max((new for new in range(total) if new + replayed(new, ratio) <= total), default=0)


@dataclass(frozen=True)
class ReplayPlan:
    """What the order follows from.

    Attributes:
        new: new rows; they have the numbers from 0.
        held: rows of the replay store; they have the numbers from ``new``.
        total: rows of a step.
        ratio: replayed rows for each new one.
        seed: the seed.
        shuffle: whether new rows are shuffled.
        reservoir: most rows of the reservoir; None: rows of the replay store alone are replayed.
        offered: rows that were offered to the reservoir before.
    """

    new: int
    held: int
    total: int
    ratio: float
    seed: int
    shuffle: bool = True
    reservoir: int | None = None
    offered: int = 0

    @property
    def new_a_step(self) -> int:
        """New rows of a whole step."""
        most = new_rows(self.total, self.ratio)
        return max(most, self.total - self._start)

    @property
    def _start(self) -> int:
        """Rows that may be replayed in the first step."""
        return self.held if self.reservoir is None else min(self.held, self.reservoir)

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return -(-self.new // self.new_a_step)

    def length(self) -> int:
        """Rows of an epoch, those that are replayed each time they are."""
        return self.new + sum(self._replayed(step) for step in range(self.steps))

    def _replayed(self, step: int) -> int:
        rest = min(self.new_a_step, self.new - step * self.new_a_step)
        whole = self.total - self.new_a_step
        if rest == self.new_a_step:
            return whole
        return min(replayed(rest, self.ratio), whole)

    def epoch(self, number: int) -> Iterator[list[int]]:
        """The rows of each step of an epoch, from 0."""
        buffer = self.buffer(0 if number == 0 else self.steps)
        for step in range(self.steps):
            new = self._new(number, step)
            taken = set(new)
            free = [row for row in buffer if row not in taken]
            random = np.random.default_rng([self.seed, 1, number, step])
            count = self._replayed(step)
            # In a later epoch a small reservoir may hold little but the rows of the step itself.
            free = free if len(free) >= count else buffer
            chosen = random.choice(len(free), count, replace=False)
            yield _spread(new, [free[int(place)] for place in chosen])
            if number == 0:
                buffer = self._offered(buffer, step)

    def buffer(self, steps: int) -> list[int]:
        """The rows that may be replayed after so many steps of the training.

        Only the first epoch offers: later ones have the same rows.
        """
        kept = list(range(self.new, self.new + self.held))
        if self.reservoir is not None and len(kept) > self.reservoir:
            kept = self._reservoir(kept, [], self.offered)
        for step in range(min(steps, self.steps)):
            kept = self._offered(kept, step)
        return kept

    def _offered(self, buffer: list[int], step: int) -> list[int]:
        """The buffer after the new rows of a step of the first epoch were offered to it."""
        if self.reservoir is None:
            return buffer
        return self._reservoir(buffer, self._new(0, step), self.offered + step * self.new_a_step)

    def _reservoir(self, held: list[int], new: list[int], seen: int) -> list[int]:
        assert self.reservoir is not None
        items = [[(row, str(row)) for row in rows] for rows in (held, new)]
        return reservoir(items[0], items[1], seen, self.reservoir, self.seed)

    def _new(self, epoch: int, step: int) -> list[int]:
        """The new rows of a step."""
        order = _order(self.new, self.seed if self.shuffle else None, epoch)
        first = step * self.new_a_step
        return [int(row) for row in order[first : first + self.new_a_step]]


@functools.lru_cache(4)
def _order(count: int, seed: int | None, epoch: int) -> np.ndarray[Any, Any]:
    """The order of the new rows in an epoch; without a seed they stay in order."""
    rows = np.arange(count)
    return rows if seed is None else np.random.default_rng([seed, 0, epoch]).permutation(rows)


def _spread(new: Sequence[int], old: Sequence[int]) -> list[int]:
    """Both together, the replayed rows evenly among the new ones."""
    total = len(new) + len(old)
    places = {(2 * number + 1) * total // (2 * len(old)) for number in range(len(old))}
    rows = {True: iter(old), False: iter(new)}
    return [next(rows[place in places]) for place in range(total)]


def make_plan(config: TrainConfig, new: int, held: int) -> ReplayPlan:
    """The plan of a run.

    Args:
        config: a run with a replay store.
        new: its rows.
        held: rows of the replay store.
    """
    section = config.data.replay
    assert section is not None
    return ReplayPlan(
        new=new,
        held=held,
        total=step_rows(config),
        ratio=section.ratio,
        seed=config.training.seed,
        shuffle=config.training.train_sampling_strategy == "random",
        reservoir=(section.size or held) if section.reservoir else None,
        offered=offered_before(Store.open(section.store), held),
    )


def write_plan(plan: ReplayPlan, folder: Path, names: Sequence[str]) -> None:
    """Write a plan beside the rows.

    Args:
        plan: the plan.
        folder: the folder of the rows.
        names: the trajectory of each row that a reservoir may hold; empty without one.
    """
    write_atomic(folder / PLAN, json.dumps({"plan": asdict(plan), "names": list(names)}) + "\n")


def read_plan(folder: Path) -> tuple[ReplayPlan, list[str]]:
    """The inverse of `write_plan`."""
    plain = json.loads((folder / PLAN).read_text(encoding="utf-8"))
    return ReplayPlan(**plain["plan"]), plain["names"]


def write_buffer(folder: Path, out: Path, steps: int) -> None:
    """Write which trajectories the reservoir holds after a training: id, and how many rows of it.

    Args:
        folder: the folder of the rows; without a plan with a reservoir nothing is written.
        out: folder of the run.
        steps: steps that were trained.
    """
    if not (folder / PLAN).exists():
        return
    plan, names = read_plan(folder)
    if plan.reservoir is None:
        return
    held = Counter(names[row] for row in plan.buffer(steps))
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("trajectory_id", "held_rows"))
    table.writerows(sorted(held.items()))
    write_atomic(out / BUFFER, text.getvalue())
