"""Whether policies and environments answer what they must; what is wrong is one sentence.

Texts and lists are checked: an episode cannot go on without them. Numbers are not: the one that
does not fit is dropped by `adp.rollouts.collecting.storable_values`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from types import NoneType
from typing import Any

from adp.rollouts.environment import Start, Verdict
from adp.rollouts.turns import Call, Outcome, Result, Turn, Usage

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})


class WrongAnswerError(TypeError):
    """A policy or an environment answered something that is none of its answers."""


def checked_turn(given: Any) -> Turn:
    """What a policy answered.

    Raises:
        WrongAnswerError: it is no turn.
    """
    turn: Turn = _is("the policy's answer", given, Turn)
    _is("text of the turn", turn.text, str)
    for name in ("reasoning", "malformed", "model", "response_id", "stop_reason"):
        _is(f"{name} of the turn", getattr(turn, name), str, NoneType)
    _is("usage of the turn", turn.usage, Usage)
    _is("extra of the turn", turn.extra, Mapping)
    for call in _is("calls of the turn", turn.calls, list, tuple):
        _is("a call of the turn", call, Call)
        _is("name of a call", call.name, str)
        _is("arguments of a call (JSON text)", call.arguments, str)
        _is("call_id of a call", call.call_id, str, NoneType)
    if type(turn.calls) is not tuple:
        turn = replace(turn, calls=tuple(turn.calls))
    return turn


def checked_start(given: Any) -> Start:
    """How an environment begins an episode.

    Raises:
        WrongAnswerError: it is no start.
    """
    start: Start = _is("the answer of reset", given, Start)
    _check_messages(start.messages)
    _is("info of the start", start.info, Mapping)
    _is("policies of the start", start.policies, Mapping)
    return start


def checked_outcome(given: Any, turn: Turn) -> Outcome:
    """What an environment answered to a turn.

    Raises:
        WrongAnswerError: it is no outcome, a result answers no call of the turn, or a call has no
            result though the episode goes on.
    """
    outcome: Outcome = _is("the answer of step", given, Outcome)
    for result in _is("results of the outcome", outcome.results, list, tuple):
        _is("a result", result, Result)
        _is("text of a result", result.text, str)
        _is("call_id of a result", result.call_id, str)
        _is("name of a result", result.name, str, NoneType)
    for text in _is("messages of the outcome", outcome.messages, list, tuple):
        _is("a message of the outcome", text, str)
    for name in ("stop_reason", "answer"):
        _is(f"{name} of the outcome", getattr(outcome, name), str, NoneType)
    _is("labels of the outcome", outcome.labels, list, tuple, set, frozenset)
    _is("info of the outcome", outcome.info, Mapping)
    if outcome.context is not None:
        _check_messages(outcome.context)
    _check_answered(outcome, turn)
    return outcome


def checked_verdict(given: Any) -> Verdict:
    """How an environment judged an episode.

    Raises:
        WrongAnswerError: it is no verdict.
    """
    verdict: Verdict = _is("the answer of score", given, Verdict)
    _is("success of the verdict", verdict.success, bool, NoneType)
    _is("reward of the verdict", verdict.reward, Real, NoneType)
    for value in _is("rewards of the verdict", verdict.rewards, Mapping).values():
        _is("a reward of the verdict", value, Real)
    return verdict


def _check_answered(outcome: Outcome, turn: Turn) -> None:
    calls = {call.call_id for call in turn.calls}
    answered = {result.call_id for result in outcome.results if result.call_id}
    if answered - calls:
        raise WrongAnswerError(
            f"a result answers the call {sorted(answered - calls)[0]!r}, which is not in the turn"
        )
    ended = outcome.terminated or outcome.truncated
    if calls - answered and not ended and turn.malformed is None and outcome.context is None:
        raise WrongAnswerError(
            f"{len(calls - answered)} of {len(calls)} calls of the turn have no result; "
            "give one for each"
        )


def _check_messages(given: Any) -> None:
    for message in _is("messages", given, list, tuple):
        _is("a message", message, Mapping)
        role = message.get("role", "user")
        if role not in _ROLES:
            raise WrongAnswerError(
                f"the role of a message is {role!r}, not one of {', '.join(sorted(_ROLES))}"
            )
        _is("content of a message", message.get("content"), str, list, tuple, NoneType)


def _is(what: str, value: Any, *kinds: type) -> Any:
    """The value, when it is of one of some types."""
    if isinstance(value, kinds):
        return value
    wanted = " or ".join(_NAMES.get(kind, kind.__name__) for kind in kinds)
    given = "None" if value is None else f"of the type {type(value).__name__}"
    raise WrongAnswerError(f"{what} is {given}; give {wanted}")


_NAMES: dict[type, str] = {
    str: "a text",
    list: "a list",
    tuple: "a tuple",
    bool: "true or false",
    Real: "a number",
    Mapping: "an object",
    NoneType: "None",
}
