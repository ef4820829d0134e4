"""Ids of the calls of a chat, by which results name what they answer."""

from __future__ import annotations

from adp_schema.model import Observation, ToolCall, Trajectory


class ChatCallIds:
    """Ids of calls: those of the source, and made-up ones where it had none.

    Args:
        trajectory: its calls get ids.
    """

    def __init__(self, trajectory: Trajectory) -> None:
        self._names: dict[tuple[int | None, int | None], tuple[str, str | None]] = {}
        taken = {call.call_id for step in trajectory.steps for call in step.calls}
        number = 0
        for position, step in enumerate(trajectory.steps):
            index = position if step.step is None else step.step
            for call in step.calls:
                name = call.call_id
                while name is None or (call.call_id is None and name in taken):
                    number += 1
                    name = f"call_{number:06d}"
                self._names[index, call.call] = (name, call.name)

    def of_call(self, call: ToolCall, index: int) -> str:
        """The id of a call of the step with this index."""
        return self._names[index, call.call][0]

    def answered(self, item: Observation) -> tuple[str, str | None] | None:
        """Id and tool of the call that a result answers; None when it answers none."""
        return self._names.get((item.call_step, item.call))
