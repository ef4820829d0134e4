"""What a policy is: it answers for the agent.

    turn = await policy.act(request)

One policy serves many episodes at once, so it keeps nothing about an episode; all that it may
know is in the request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from adp.core.registry import Registry
from adp.rollouts.environment import Settings
from adp.rollouts.turns import Message, Tool, Turn
from adp_schema.errors import AdpError
from adp_schema.model import Task


class InfrastructureError(AdpError):
    """A turn could not be had, and the agent is not to blame: a server or a network failed.

    Args:
        kind: what failed, in a word: ``http_500``, ``timeout``, ``rate_limit``, ``connection``.
        message: one sentence.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class AgentLimitError(AdpError):
    """The agent reached a limit of its own, such as the context of its model.

    The episode is truncated: nothing is broken, and the agent gets no further.

    Args:
        reason: which limit, in a word: ``context_length``.
        message: one sentence.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Request:
    """All that a policy knows when it is asked for a turn.

    Attributes:
        messages: the conversation so far, in the OpenAI shape. The rollout goes on to append to
            the list behind it: read it, do not keep it, do not change it.
        tools: tools on offer now.
        task: the task.
        attempt: number of this attempt at the task, from 0.
        turn: number of the agent's turn, from 0.
        seed: seed of this turn, different for each (task, attempt, turn).
    """

    messages: Sequence[Message]
    tools: Sequence[Tool]
    task: Task | None = None
    attempt: int = 0
    turn: int = 0
    seed: int = 0


class Policy(Protocol):
    """Answers for the agent.

    Attributes:
        name: what to call it in reports, such as the name of the model.
    """

    name: str

    async def act(self, request: Request) -> Turn:
        """The next turn of the agent.

        A model's output that cannot be read is a turn with ``malformed``, not an exception.

        Raises:
            InfrastructureError: no answer could be had.
            AgentLimitError: the agent is at a limit of its own; the episode is truncated.
        """
        ...

    async def close(self) -> None:
        """Free what it holds. It may be called twice."""
        ...


@dataclass(frozen=True)
class PolicyKind:
    """A policy that can be named on the command line.

    Attributes:
        name: its name.
        about: what it is, one sentence.
        settings: its settings, a class with defaults.
        make: makes one; it serves all episodes of a run.
    """

    name: str
    about: str
    settings: type[Settings]
    make: Callable[[Any], Policy]


POLICIES: Registry[PolicyKind] = Registry(
    "policy",
    "adp.policies",
    {
        "expert": "adp.rollouts.policies.expert:KIND",
        "openai": "adp.rollouts.policies.openai:KIND",
        "replay": "adp.rollouts.policies.replay:KIND",
        "scripted": "adp.rollouts.policies.scripted:KIND",
        "transformers": "adp.rollouts.policies.transformers:KIND",
        "vllm": "adp.rollouts.policies.vllm:KIND",
    },
    made_by="adp.rollouts.wrapped_code:policy_kind",
)
