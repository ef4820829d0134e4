"""What passes between a policy and an environment: turns, results and outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

Message = Mapping[str, Any]
"""A message of a chat in the OpenAI shape: ``role``, ``content``, ``tool_calls``, ..."""

Tool = Mapping[str, Any]
"""A tool in the OpenAI shape: ``{"type": "function", "function": {name, description, ...}}``."""


NEAR = 1e-6
"""How near to 1 a reward is a success, as in tau-bench."""


def is_success(value: float) -> bool:
    """Whether a reward, or a truth as a number, is a success: within 1e-6 of 1."""
    return 1 - NEAR <= value <= 1 + NEAR


class ErrorType(StrEnum):
    """Why a call brought no result. It is told to the agent and stored with the observation."""

    PARSING = "parsing"
    """The turn, or the arguments of a call, cannot be read."""
    UNKNOWN_TOOL = "unknown_tool"
    """No tool of that name is on offer."""
    INVALID_ARGS = "invalid_args"
    """The arguments do not fit the schema of the tool."""
    EXECUTION = "execution"
    """The tool ran and failed."""
    TIMEOUT = "timeout"
    """The tool took too long and was stopped."""
    LIMIT = "limit"
    """A quota or a budget is used up, or the tool refuses for now."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool.

    Attributes:
        name: name of the tool.
        arguments: the arguments as JSON text, the characters that the model wrote. It may be no
            JSON at all; the environment says so.
        call_id: id, unique in the episode; empty: the rollout gives it one.
    """

    name: str
    arguments: str = "{}"
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a turn cost. None where the policy does not know.

    Attributes:
        tokens_in: prompt tokens, the cached ones included.
        tokens_out: tokens that the model wrote.
        tokens_cached: prompt tokens that came from a cache.
        tokens_reasoning: written tokens that were reasoning.
        cost_usd: cost in US dollars.
        raw: the usage record as the provider wrote it.
    """

    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    tokens_reasoning: int | None = None
    cost_usd: float | None = None
    raw: Mapping[str, Any] | None = None


USAGE_COLUMNS = ("tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning", "cost_usd")
"""What a step holds of a usage, under the same names."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a policy answers: text, calls, or both.

    Attributes:
        text: text of the answer, without reasoning and calls.
        calls: calls of tools, in order.
        reasoning: reasoning, where the model keeps it apart.
        malformed: why the model's output could not be read as a turn; None when it could. ``text``
            is then the output as it was, if it is known.
        model: model that wrote it.
        response_id: id of the response.
        stop_reason: why the model stopped: stop, tool_calls, length, ...
        usage: what it cost.
        prompt_token_ids: ids of the prompt's tokens, where the policy knows them.
        completion_token_ids: ids of the written tokens, where the policy knows them.
        logprobs: log probabilities of the written tokens, natural logarithm.
        entropies: of each written token the entropy over the likeliest ones, in nats, where the
            policy was asked for it; see `adp.rollouts.policies.entropy`.
        extra: everything else worth keeping; JSON.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str | None = None
    malformed: str | None = None
    model: str | None = None
    response_id: str | None = None
    stop_reason: str | None = None
    usage: Usage = field(default_factory=Usage)
    prompt_token_ids: tuple[int, ...] | None = None
    completion_token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    entropies: tuple[float, ...] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """What a call brought. An error is a result too, never an exception.

    Attributes:
        text: what the agent reads.
        call_id: the call that it answers; empty: it answers none, such as the note that a turn
            could not be read.
        name: name of the tool.
        error: why it failed; None when it did not.
        structured: the value behind the text, JSON, for scorers.
        exit_code: exit status of a command.
        duration_ms: how long the call took, in milliseconds.
    """

    text: str
    call_id: str = ""
    name: str | None = None
    error: ErrorType | None = None
    structured: Any = None
    exit_code: int | None = None
    duration_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an environment answers to a turn.

    Attributes:
        results: results of the calls, in the order of the calls.
        messages: what the user says next; empty when it is the agent's turn again.
        reward: reward of the turn; None is not scored, never 0.
        labels: labels of the turn, such as reward categories.
        terminated: whether the episode reached an end of its own.
        truncated: whether a limit of the environment cut it.
        stop_reason: why it ended, in a word or two.
        answer: the answer that the agent gave with this turn.
        context: when the environment rewrites the conversation: all messages that follow the
            system's from now on; None leaves it as it is.
        info: everything else; JSON.
    """

    results: tuple[Result, ...] = ()
    messages: tuple[str, ...] = ()
    reward: float | None = None
    labels: tuple[str, ...] = ()
    terminated: bool = False
    truncated: bool = False
    stop_reason: str | None = None
    answer: str | None = None
    context: tuple[Message, ...] | None = None
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether any result is an error."""
        return any(result.error for result in self.results)
