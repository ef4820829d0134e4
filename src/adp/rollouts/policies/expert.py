"""The policy ``expert``: it does what the reference run of the task does.

As an actor (`ExpertPolicy.actors`) it is the mode ``ground_truth`` of
`adp.rollouts.experts.modes`, which also knows environments with ``expert_turn()``. Asked like
any other policy, it knows the messages alone, and follows the reference run of the task: for each
turn of the user its calls in order and its answer.
"""

from __future__ import annotations

from typing import Literal

from adp.rollouts.environment import Settings
from adp.rollouts.experts.expert import no_expert
from adp.rollouts.experts.modes import Assistance
from adp.rollouts.experts.reference_run import gold_of
from adp.rollouts.experts.settings import AssistSettings
from adp.rollouts.policy import PolicyKind, Request
from adp.rollouts.turns import Turn
from adp_schema.errors import UsageError

SILENT = Turn(stop_reason="expert_silent")
"""What is answered when the reference run has no turn left."""


class ExpertPolicySettings(Settings):
    """Settings of the policy ``expert``."""

    source: Literal["auto", "gold", "environment"] = "auto"
    """Where its turns come from; auto: the environment, else the task."""


class ExpertPolicy:
    """The expert alone.

    Args:
        settings: where its turns come from.

    Attributes:
        name: ``expert``.
        actors: makes the actor of an episode; rollouts use it instead of `act`.
    """

    name = "expert"

    def __init__(self, settings: ExpertPolicySettings | None = None) -> None:
        source = (settings or ExpertPolicySettings()).source
        self.actors = Assistance(AssistSettings(mode="ground_truth", expert=source))

    async def act(self, request: Request) -> Turn:
        """The turn of the reference run at this place of the conversation.

        Raises:
            UsageError: the task has no reference run.
        """
        gold = gold_of(request.task)
        if not gold:
            raise UsageError(no_expert("ground_truth"))
        roles = [message.get("role") for message in request.messages]
        number = max(roles.count("user") - 1, 0)
        count = 0
        for role in reversed(roles):
            if role == "user":
                break
            count += role == "assistant"
        steps = gold[number].steps if number < len(gold) else ()
        return steps[count].turn if count < len(steps) else SILENT

    async def close(self) -> None:
        """Nothing to free."""


KIND = PolicyKind(
    name="expert",
    about="What the reference run of the task does, or what the environment knows to be next.",
    settings=ExpertPolicySettings,
    make=ExpertPolicy,
)
