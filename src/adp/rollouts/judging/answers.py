"""The answer of a model to one question, and why there is none that can be used."""

from __future__ import annotations

from adp.rollouts.plugin_errors import error_text, stops
from adp.rollouts.policy import AgentLimitError, InfrastructureError, Policy, Request
from adp.rollouts.turns import Turn
from adp_schema.errors import MissingExtraError, UsageError
from adp_schema.ids import digest


class UnreadableError(ValueError):
    """An answer cannot be used; the message says why, in a few words."""


class NoAnswerError(UnreadableError):
    """No answer came; the message says why, in a few words.

    Args:
        reason: the few words.
        detail: why, in a sentence.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        self.detail = detail
        super().__init__(reason)


def seed_of(*parts: object) -> int:
    """A seed of 31 bits from what it is for: a hash, so that neighbours have nothing in common."""
    text = "/".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return int(digest(text)[:8], 16) >> 1


async def answer_of(policy: Policy, request: Request) -> Turn:
    """The turn of a model that is asked something and calls no tool.

    Raises:
        NoAnswerError: no answer came.
        UnreadableError: it cannot be read.
        UsageError: the model cannot be called like this.
    """
    try:
        turn = await policy.act(request)
    except (UsageError, MissingExtraError):
        raise
    except (InfrastructureError, AgentLimitError) as error:
        raise NoAnswerError(no_answer(error), str(error)) from error
    except BaseException as error:
        if stops(error):
            raise
        raise NoAnswerError(no_answer(error)) from error
    if turn.malformed is not None:
        raise UnreadableError("no answer: malformed")
    return turn


def no_answer(error: BaseException) -> str:
    """Why no answer came, in a few words that are the same for the same cause."""
    if isinstance(error, InfrastructureError):
        return f"no answer: {error.kind}"
    if isinstance(error, AgentLimitError):
        return f"no answer: {error.reason}"
    return f"no answer: {error_text(error)[:80]}"
