"""M3's categories of rewards, as labels without braces, for what an environment answered.

Source: m3-train-eval, the categories of ``envs``. Of M3's errors of tools, ``parsing`` is the
category of unreadable turns; a quota that is used up is no fault of the agent's; anything else that
went wrong is a bad call. An answer has a category only when it was judged.
"""

from __future__ import annotations

from collections.abc import Iterable

from adp.rollouts.turns import ErrorType, Outcome
from adp.stores.step_labels import SUBOPTIMAL

PARSING_ERROR = "REWARD_PARSING_ERROR"
BAD_TOOL_CALL = "REWARD_BAD_TOOL_CALL"
NO_PENALTY = "REWARD_NO_PENALTY"
ERROR_NO_CATEGORY = "REWARD_ERROR_NO_CATEGORY"
SUCCESS_TOOL_CALL = "REWARD_SUCCESS_TOOL_CALL"
MATCH = "REWARD_FINAL_ANSWER_MATCH"
NO_MATCH = "REWARD_FINAL_ANSWER_NO_MATCH"
STUCK = "REWARD_AGENT_STUCK"

_OF_ERROR = {ErrorType.PARSING: PARSING_ERROR, ErrorType.LIMIT: NO_PENALTY}
_WORST_FIRST = (PARSING_ERROR, BAD_TOOL_CALL, NO_PENALTY, SUCCESS_TOOL_CALL)


def category(outcome: Outcome) -> str | None:
    """The category of a turn from the types of its errors; None for an answer.

    A turn with several calls has the worst of their categories.
    """
    results = {
        SUCCESS_TOOL_CALL if result.error is None else _OF_ERROR.get(result.error, BAD_TOOL_CALL)
        for result in outcome.results
    }
    return next((name for name in _WORST_FIRST if name in results), None)


def added(outcome: Outcome) -> tuple[str, ...]:
    """Labels to add where the environment gives no category of its own."""
    if any(label.startswith("REWARD_") for label in outcome.labels):
        return ()
    result = category(outcome)
    return () if result is None else (result,)


def erroneous(labels: Iterable[str]) -> bool:
    """Whether a label holds one of M3's erroneous categories."""
    return any(name in label for label in labels for name in SUBOPTIMAL)
