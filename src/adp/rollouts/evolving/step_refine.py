"""The first flawed step of a wrong trajectory is analysed and written anew by the analyser.

The refiner says which step it is. The steps before it are carried out again, then the new step; the
policy goes on from there.
"""

from __future__ import annotations

import random

from adp.rollouts.evolving.asking import ANALYSER, REFINER, Asking
from adp.rollouts.evolving.operator import Change, ParentRun, UnchangedError
from adp.rollouts.evolving.written_steps import read_number, read_turn, read_words, written_turn


class StepRefine:
    """The operator ``step_refine``."""

    name = "step_refine"
    about = "Let the analyser write the first flawed step anew, and go on from there."
    applies_to = "incorrect"
    asks = (REFINER, ANALYSER)

    async def change(self, parent: ParentRun, asking: Asking, rng: random.Random) -> Change:
        """Ask for the step, its flaw, and a better one.

        Raises:
            UnchangedError: there is no step.
            GaveUpError: refiner or analyser gave no answer that can be used.
        """
        number = await flawed_step(parent, asking)
        before = parent.facts(number - 1)
        flawed = written_turn(parent.steps[number - 1].turn)
        results = "\n".join(parent.steps[number - 1].results)
        about = (
            f"{before}\n\n# The flawed step\n{flawed}\n\n# What it brought\n{results or 'nothing'}"
            f"\n\n# What the reviewer says\n{asking.words['flawed_step']}"
        )
        analysis = await asking.ask(ANALYSER, "analyse_step", about, read_words)
        facts = f"{before}\n\n# The flawed step\n{flawed}\n\n# Analysis\n{analysis}"
        turn = await asking.ask(
            ANALYSER, "rewrite_step", facts, lambda text: read_turn(text, parent.tools)
        )
        return Change((*parent.turns[: number - 1], turn), number - 1, number)


async def flawed_step(parent: ParentRun, asking: Asking) -> int:
    """Number of the first flawed step, as the refiner says.

    Raises:
        UnchangedError: there is no step.
        GaveUpError: the refiner gave no answer that can be used.
    """
    if not parent.steps:
        raise UnchangedError("there is no step")

    def read(text: str) -> int:
        number = read_number(text, len(parent.steps))
        assert number is not None
        return number

    return await asking.ask(REFINER, "flawed_step", parent.facts(), read)


OPERATOR = StepRefine()
