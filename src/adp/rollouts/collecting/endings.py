"""How an episode ended, as columns of its trajectory."""

from __future__ import annotations

from typing import Any

from adp.rollouts.turns import Outcome, Turn

CUT = ("length", "max_tokens", "max_output_tokens")
"""Words of servers for a turn that ended because the limit of its tokens was reached."""


def cut(reason: str) -> dict[str, Any]:
    """The columns of an episode that a limit has cut."""
    return {"terminated": False, "truncated": True, "stop_reason": reason}


def ending(last: Turn, outcome: Outcome) -> dict[str, Any]:
    """How the environment ended the episode.

    An answer that the model's own limit of tokens cut is an answer that was not finished.
    """
    if last.stop_reason in CUT and not last.calls and not outcome.truncated:
        return cut("length")
    return {
        "terminated": outcome.terminated,
        "truncated": outcome.truncated,
        "stop_reason": outcome.stop_reason,
    }
