"""What a run has to do: the places in the buffers of its tasks that are empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from adp.rollouts.evolving.buffer import Buffer, BufferEntry
from adp.rollouts.evolving.operator import BUILTIN, OPERATORS, Operator
from adp.rollouts.evolving.settings import EvolveSettings
from adp.rollouts.evolving.sources import TaskJob


def chosen_operators(names: Sequence[str]) -> list[Operator]:
    """The operators of some names, in the order of a round; without names those of adp.

    Raises:
        UsageError: there is no operator of a name.
    """
    wanted = dict.fromkeys(names or BUILTIN)
    order = [
        *(name for name in BUILTIN if name in wanted),
        *sorted(set(wanted).difference(BUILTIN)),
    ]
    return [OPERATORS.get(name) for name in order]


@dataclass
class BufferPlan:
    """The buffers of a run and their places.

    A buffer begins with the trajectories of the source. Each round has as many places after them as
    the operators for right or for wrong trajectories need, whichever are more; so a place depends
    on round and operator alone.

    Attributes:
        settings: settings of the run.
        operators: the operators, in the order of a round.
        entries: what the store holds, by task.
    """

    settings: EvolveSettings
    operators: Sequence[Operator]
    entries: Mapping[str, Sequence[tuple[BufferEntry, int]]] = field(default_factory=dict)

    def buffer(self, job: TaskJob) -> tuple[Buffer, dict[int, int]]:
        """What the store holds of a task, and the number of the last try at each place."""
        buffer = Buffer(first_is_used=self.settings.first_is_used)
        tries: dict[int, int] = {}
        for entry, number in self.entries.get(str(job.task.task_id), ()):
            buffer.add(entry)
            tries[entry.attempt] = number
        return buffer, tries

    def missing(self, job: TaskJob, buffer: Buffer, number: int) -> list[tuple[int, Operator]]:
        """What a round lacks: places in the buffer, and the operators that they are for."""
        parent = buffer.parent(number)
        if parent is None:
            return []
        right, wrong = self._of("correct"), self._of("incorrect")
        first = len(job.initial) + (number - 1) * max(len(right), len(wrong))
        slots = enumerate(right if parent.is_correct else wrong, first)
        return [(place, operator) for place, operator in slots if self.lacks(buffer, place)]

    def lacks(self, buffer: Buffer, place: int) -> bool:
        """Whether a place is empty, or holds what is to be made again."""
        entry = buffer.entries.get(place)
        return entry is None or (self.settings.retry_failed and entry.is_failed)

    def is_done(self, job: TaskJob) -> bool:
        """Whether no place of a task is empty."""
        buffer, _ = self.buffer(job)
        if any(place not in buffer.entries for place in range(len(job.initial))):
            return False
        rounds = range(1, self.settings.rounds + 1)
        return not any(
            place not in buffer.entries
            for number in rounds
            for place, _ in self.missing(job, buffer, number)
        )

    def _of(self, kind: str) -> list[Operator]:
        return [operator for operator in self.operators if operator.applies_to == kind]
