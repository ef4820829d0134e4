"""Numbers of steps before and after some of them were taken out, put in or cut."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adp_schema.model import Columns

_BORDERS = ("edit_from", "edit_to")


@dataclass(slots=True)
class StepNumbers:
    """The new numbers of the steps of a trajectory.

    Attributes:
        old: old numbers of the steps that were looked at, upwards.
        new: for each, the number that its first new step has, or that the next one gets when it is
            no step any more.
        kept: for each, whether it still is a step.
        end: number after the last new step.
    """

    old: list[int] = field(default_factory=list)
    new: list[int] = field(default_factory=list)
    kept: list[bool] = field(default_factory=list)
    end: int = 0

    def add(self, old: int, new: int, *, kept: bool) -> None:
        """Note the next step."""
        self.old.append(old)
        self.new.append(new)
        self.kept.append(kept)

    def border(self, number: int) -> int:
        """The new number of a border: the number of steps before it, or where a range ends."""
        place = bisect_left(self.old, number)
        return self.new[place] if place < len(self.old) else self.end

    def step(self, number: int) -> int:
        """The new number of a step; of one that is none any more, that of the step before."""
        place = bisect_left(self.old, number)
        if place == len(self.old) or self.old[place] != number:
            return self.border(number)
        return self.new[place] - (0 if self.kept[place] else 1)

    def change_step(self, step: Columns) -> None:
        """Put new numbers into what a step says of other steps."""
        for name in _BORDERS:
            if step.get(name) is not None:
                step[name] = self.border(step[name])
        if step.get("parent_step") is not None:
            step["parent_step"] = self.step(step["parent_step"])

    def change_link(self, link: Columns) -> None:
        """Put the new number into a link."""
        if link.get("step") is not None:
            link["step"] = self.step(link["step"])


_SIDES = {
    "context_id": ("context_up_to",),
    "chosen_id": ("chosen_from", "chosen_to"),
    "rejected_id": ("rejected_from", "rejected_to"),
}


def pair_changes(pair: Mapping[str, Any], numbers: Mapping[str, StepNumbers]) -> Columns:
    """The columns of a preference pair that get new numbers.

    Args:
        pair: its columns.
        numbers: trajectory id -> new numbers of its steps.
    """
    changes: Columns = {}
    for name, columns in _SIDES.items():
        side = numbers.get(pair.get(name) or "")
        if side is not None:
            numbered = {column: pair.get(column) for column in columns}
            changes |= {it: side.border(old) for it, old in numbered.items() if old is not None}
    return changes


def number_turns(steps: list[Columns], *, removed: bool) -> None:
    """Number the turns of the user anew, as the builder does, when some were none."""
    turn, last = -1, None
    for step in steps:
        source = step["source"]
        if source == "user" and last != "user":
            turn += 1
        last = source
        if removed or step.get("turn") is None:
            step["turn"] = max(turn, 0)
