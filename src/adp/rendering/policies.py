"""What was laid down for a run, beside its messages."""

from __future__ import annotations

from dataclasses import dataclass

from adp_schema.model import Trajectory


@dataclass(frozen=True, slots=True)
class Policies:
    """What was laid down for a run; see M3's scenarios.

    Attributes:
        availability: which tools are on offer.
        usage: what is said about the use of tools.
        final_answer: what is said about the final answer.
    """

    availability: str | None = None
    usage: str | None = None
    final_answer: str | None = None

    @classmethod
    def of(cls, trajectory: Trajectory) -> Policies:
        """Those of a trajectory."""
        return cls(
            trajectory.policy_tool_availability,
            trajectory.policy_tool_usage,
            trajectory.policy_final_answer,
        )
