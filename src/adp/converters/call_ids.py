"""The ids under which calls are written in a format that is not the one they were read from."""

from __future__ import annotations

from adp.converters.unwritten_columns import RENUMBERED
from adp_schema.extra_column import Extra, original
from adp_schema.losses import Losses
from adp_schema.model import Observation, ToolCall, Trajectory
from adp_schema.pairing import CallIndex

Ids = dict[tuple[int | None, int | None], str]
"""Step and index of a call -> its id."""


def written_ids(run: Trajectory) -> Ids:
    """The ids of calls that are not written under their ``call_id``.

    A call without an id gets a new one. One whose id the source used before, and that the store
    therefore numbered, gets the source's own id back, if every result still finds its call.
    """
    calls = [call for step in run.steps for call in step.calls]
    ids = _made(run) if any(call.call_id is None for call in calls) else {}
    if all(call.native_id is None for call in calls):
        return ids
    native_ids = {(c.step, c.call): c.native_id for c in calls if c.native_id is not None}
    return {**ids, **native_ids} if _finds(run, {**ids, **native_ids}) else ids


def answered_id(row: Observation, ids: Ids) -> str | None:
    """The written id of the call that a result answers; None when it answers none."""
    if row.call_step is None:
        return None
    return ids.get((row.call_step, row.call), row.call_id)


class CallIds:
    """The ids under which the calls of a run and their results are written.

    Args:
        run: the run.
        losses: takes ids that are not kept.
        native: whether it was read from the format that is written: ids are those of the source.
    """

    def __init__(self, run: Trajectory, losses: Losses, *, native: bool) -> None:
        self._losses = losses
        self._native = native
        self._ids = {} if native else written_ids(run)

    def of(self, call: ToolCall, extra: Extra, path: str) -> str | None:
        """The id of a call; None when its source has none.

        Args:
            call: the call.
            extra: its unpacked column ``extra``.
            path: where it is.
        """
        made = self._ids.get((call.step, call.call))
        name = call.native_id if self._native else made
        if name is not None and name == call.native_id:
            made = original(call, "native_id", extra)
        elif made is None:
            made = original(call, "call_id", extra)
        if call.native_id is not None and name != call.native_id:
            self._losses.add(f"{path}.native_id", RENUMBERED)
        return made

    def answered(self, row: Observation, extra: Extra, path: str) -> str | None:
        """The id of the call that a result answers; None when it says none.

        Args:
            row: the result.
            extra: its unpacked column ``extra``.
            path: where it is.
        """
        name = row.native_call_id
        if not self._native:
            name = self._ids.get((row.call_step, row.call))
            if row.call_step is not None and row.native_call_id not in (None, name):
                self._losses.add(f"{path}.native_call_id", RENUMBERED)
            if name is not None and name != row.native_call_id:
                return name
        known = row.call_id is not None and name is None
        result: str | None = original(row, "call_id" if known else "native_call_id", extra)
        return result


def _made(run: Trajectory) -> Ids:
    calls = [call for step in run.steps for call in step.calls]
    taken = {name for call in calls for name in (call.call_id, call.native_id)}
    for row in [*run.early_observations, *(row for s in run.steps for row in s.observations)]:
        taken |= {row.call_id, row.native_call_id}
    ids: Ids = {}
    number = 0
    for call in calls:
        if call.call_id is None:
            number += 1
            while f"call_{number:06d}" in taken:
                number += 1
            ids[call.step, call.call] = f"call_{number:06d}"
    return ids


def _finds(run: Trajectory, ids: Ids) -> bool:
    """Whether a reader pairs each result with its call, and no step uses an id twice."""
    index = CallIndex()
    for step in run.steps:
        names = [ids.get((call.step, call.call), call.call_id) for call in step.calls]
        if len(set(names)) < len(names):
            return False
        for call, name in zip(step.calls, names, strict=True):
            index.add(call.step or 0, call.call or 0, {"call_id": name})
        for row in step.observations:
            name = answered_id(row, ids)
            by_id = None if name is None else index.by_id(name)
            if by_id is None:
                continue
            if (by_id.step, by_id.index) != (row.call_step, row.call):
                return False
            by_id.answered = True
    return True
