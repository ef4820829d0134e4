"""When the expert of the mode ``informed`` acts next: M3's rules, in their order.

Source: m3-train-eval, ``is_expert_help_needed``. They look at what happened since the user last
spoke.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from adp.rollouts.collecting.actor import Past
from adp.rollouts.experts.history import EXPERT, ErrorRule, action_key, is_error

Why = Literal["errors", "repeats", "overseer"]
"""Which rule asks for the expert."""


async def help_needed(
    history: Sequence[Past],
    *,
    init_limit: int,
    recent_limit: int,
    overseer: Callable[[], Awaitable[bool]] | None = None,
    errors: ErrorRule = "typed",
) -> Why | None:
    """Why the expert has to act next; None when the agent goes on.

    1. Fewer than ``init_limit`` steps: no.
    2. The last step was the expert's: no. So no two interventions follow each other.
    3. Each of the last ``recent_limit`` steps brought an error: yes.
    4. The last ``recent_limit`` actions are the same: yes.
    5. Else the overseer says; without one: no.

    Args:
        history: steps since the user last spoke.
        init_limit: at least 1.
        recent_limit: at least 1; when fewer steps are there, all of them count, as in M3.
        overseer: whether the agent is stuck.
        errors: what an error is.
    """
    if len(history) < init_limit:
        return None
    if history[-1].acted.actor == EXPERT:
        return None
    recent = history[-recent_limit:]
    if all(failed(item, errors) for item in recent):
        return "errors"
    if len({action_key(item.acted.turn) for item in recent}) == 1:
        return "repeats"
    if overseer is not None and await overseer():
        return "overseer"
    return None


def failed(past: Past, errors: ErrorRule) -> bool:
    """Whether a step brought errors only."""
    results = past.outcome.results
    return bool(results) and all(is_error(result, errors) for result in results)
