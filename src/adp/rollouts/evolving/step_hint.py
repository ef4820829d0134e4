"""A hint opens the thought that follows the first flawed step of a wrong trajectory.

The refiner says which step it is. The steps up to it are carried out again, and the policy goes on
from the hint. An answer is not kept, since it would end the run.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from adp.rollouts.evolving.asking import REFINER, Asking
from adp.rollouts.evolving.operator import Change, ParentRun, is_answer
from adp.rollouts.evolving.prompts import hints
from adp.rollouts.evolving.step_refine import flawed_step
from adp.rollouts.turns import Tool

_KINDS = {
    "search": ("search", "retrieve", "retrieval", "lookup", "browse"),
    "python": ("python", "code", "calc"),
}


class StepHint:
    """The operator ``step_hint``."""

    name = "step_hint"
    about = "Open the thought after the first flawed step with a hint, and go on from there."
    applies_to = "incorrect"
    asks = (REFINER,)

    async def change(self, parent: ParentRun, asking: Asking, rng: random.Random) -> Change:
        """Ask for the step, and draw a hint.

        Raises:
            UnchangedError: there is no step.
            GaveUpError: the refiner gave no answer that can be used.
        """
        kept = await flawed_step(parent, asking)
        while kept and is_answer(parent.steps[kept - 1].turn):
            kept -= 1
        return Change(parent.turns[:kept], kept, kept + 1, opening=draw_hint(parent.tools, rng))


def draw_hint(tools: Sequence[Tool], rng: random.Random) -> str:
    """A hint that fits the tools on offer: a whole sentence."""
    return rng.choice(hints(hint_kind(tools)))


def hint_kind(tools: Sequence[Tool]) -> str:
    """The kind of hints that fits tools: of searches, of computations, or of neither alone."""
    names = [str(tool.get("function", tool).get("name", "")).lower() for tool in tools]
    kinds = [
        kind
        for kind, words in _KINDS.items()
        if any(word in name for name in names for word in words)
    ]
    return kinds[0] if len(kinds) == 1 else "general"


OPERATOR = StepHint()
