"""Trajectories into the records of a format, with all that the store holds of them accounted for.

A converter writes one trajectory and reports what of its rows it does not carry. What is beside a
trajectory is the same for every format, so it is accounted for here: preference pairs, and
branches that the format does not write in their run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from adp.converters.branches import LEFT_OUT, count, report_parent, with_branches
from adp.converters.pairs import RecordPairs, is_rejected
from adp.converters.programs import PROGRAMS
from adp.converters.text_calls.restore import restore
from adp.converters.unwritten_columns import report_columns
from adp.converters.via_atif import ATIF, as_foreign, without_made
from adp.core.tool_names.runs import ToolNaming, rename_tools
from adp_schema.losses import Losses
from adp_schema.model import Pair, Step, Trajectory
from adp_schema.protocols import Converter

NOTHING = "$: nobody says anything in it, so there is no session to write; it is left out"
"""The loss of a run of another format that would make a session without messages."""

_ASK = "it is left out; --branches rows writes it as a record of its own"


class RecordWriter:
    """Writes records of a format.

    Args:
        converter: the format.
        losses: takes what is not carried.
        flavour: way to write it; None means the first.
        pairs: the preference pairs of the store.
        rows: whether branches and rejected sides that make no sense by themselves become records
            of their own, too. By default they are left out, and reported.
        naming: names that tools get. None leaves those of the store, but gives the format that a
            trajectory came from the names that it had.
        structured: whether calls that stood in texts are written as calls of the format, also by
            the format that they were read from.

    Attributes:
        left_out: trajectories that no record holds.
    """

    def __init__(
        self,
        converter: Converter,
        losses: Losses,
        *,
        flavour: str | None = None,
        pairs: RecordPairs | None = None,
        rows: bool = False,
        naming: ToolNaming | None = None,
        structured: bool = False,
    ) -> None:
        self._converter = converter
        self._losses = losses
        self._words = () if flavour is None else (flavour,)
        self._pairs = RecordPairs() if pairs is None else pairs
        self._rows = rows
        self._naming = naming
        self._structured = structured
        self._gone: set[str | None] = set()
        self._places: dict[str | None, int] = {}
        self._siblings: Counter[str | None] = Counter()
        self.left_out = 0

    def records(self, trajectories: Iterable[Trajectory]) -> Iterator[tuple[Trajectory, Any]]:
        """Each trajectory with its record; None for one that is left out.

        Args:
            trajectories: in the order of a store, without branches in them.
        """
        joins = getattr(self._converter, "joins", None)
        numbered = self._numbered(trajectories)
        for trajectory in with_branches(numbered, self._converter.embeds, joins):
            if self._converter.name != ATIF:
                without_made(trajectory)
            self._pairs.hang(trajectory)
            self._restore(trajectory)
            reason = None if self._rows else self._no_row(trajectory)
            if reason is None and self._is_empty(trajectory):
                record = None
                self._losses.add("$", NOTHING.removeprefix("$: "))
            elif reason is None:
                record = self._converter.write(trajectory, self._losses, *self._words)
                report_parent(trajectory, self._losses)
                self._report_pairs(trajectory, "$")
            else:
                record = None
                self._leave_out(trajectory, reason)
            yield trajectory, record

    def _restore(self, trajectory: Trajectory) -> None:
        """Give a trajectory back the texts and the names of tools that its source had."""
        if trajectory.source_format == self._converter.name:
            rename_tools(trajectory, "source")
            if not (self._structured and as_foreign(trajectory)):
                restore(trajectory, self._losses)
        if self._naming is not None:
            rename_tools(trajectory, self._naming)

    def _numbered(self, trajectories: Iterable[Trajectory]) -> Iterator[Trajectory]:
        """Note which of its parent's branches each one is."""
        for trajectory in trajectories:
            if trajectory.parent_id is not None:
                self._places[trajectory.trajectory_id] = self._siblings[trajectory.parent_id]
                self._siblings[trajectory.parent_id] += 1
            yield trajectory

    def finish(self) -> None:
        """Report the pairs of which nothing was written."""
        for index in range(self._pairs.left()):
            self._losses.add(f"$.pairs[{index}]", "none of its trajectories is written")

    def _is_empty(self, trajectory: Trajectory) -> bool:
        """Whether a program would find no message in the session of a run of another format."""
        if self._converter.name not in PROGRAMS or trajectory.branches:
            return False
        if trajectory.source_format == self._converter.name or trajectory.early_observations:
            return False
        return not any(_is_written(step) for step in trajectory.steps)

    def _no_row(self, trajectory: Trajectory) -> str | None:
        """Why a trajectory is no record of its own; None when it is one."""
        if trajectory.parent_id is not None:
            if trajectory.parent_id in self._gone:
                return f"the run that it starts from is left out; {_ASK}"
            kind = trajectory.branch_kind
            if kind is None or kind in LEFT_OUT:
                what = "a branch of no known kind" if kind is None else f"a branch of kind {kind}"
                return f"{what} is no run of its own; {_ASK}"
        elif trajectory.source_format == self._converter.name or trajectory.branches:
            return None
        return f"preference pairs reject it; {_ASK}" if is_rejected(trajectory) else None

    def _leave_out(self, trajectory: Trajectory, reason: str) -> None:
        self._gone.add(trajectory.trajectory_id)
        self.left_out += count(trajectory)
        place = self._places.get(trajectory.trajectory_id)
        path = "$" if place is None else f"$.branches[{place}]"
        self._losses.add(path, reason)

    def _report_pairs(self, trajectory: Trajectory, path: str) -> None:
        """Report each pair once: what of it the record does not say."""
        for index, pair in self._pairs.settle(trajectory):
            place = f"{path}.pairs[{index}]"
            carried = self._carried(trajectory, pair)
            if carried:
                report_columns(pair, carried, place, self._losses)
            else:
                reason = "the format does not say which of two answers is preferred"
                self._losses.add(place, reason)
        for number, branch in enumerate(trajectory.branches):
            self._report_pairs(branch, f"{path}.branches[{number}]")

    def _carried(self, trajectory: Trajectory, pair: Pair) -> frozenset[str]:
        """The columns of a pair that the record of a trajectory says."""
        carried = getattr(self._converter, "pair_columns", None)
        return frozenset() if carried is None else frozenset(carried(trajectory, pair))


def _is_written(step: Step) -> bool:
    """Whether a session of a program has something of a step of another format."""
    is_message = step.kind not in ("event", "context_edit")
    return is_message or bool(step.observations) or step.edit_summary is not None
