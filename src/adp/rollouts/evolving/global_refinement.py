"""The refiner writes all thoughts of a right trajectory anew.

Calls, results and the answer stay as they are, letter by letter, so nothing is carried out again.
What is known of the tokens of the old thoughts goes.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from adp.rollouts.evolving.asking import REFINER, Asking
from adp.rollouts.evolving.operator import Change, ParentRun, UnchangedError
from adp.rollouts.evolving.recorded import agent_steps
from adp.rollouts.evolving.written_steps import read_thoughts, thought_of
from adp_schema.model import Step, ToolCall, Trajectory

_OF_TOKENS = (
    *("prompt_token_ids", "completion_token_ids", "logprobs", "token_mask", "usage"),
    *("tokens_in", "tokens_out", "tokens_cached", "tokens_cache_write", "tokens_reasoning"),
    *("cost_usd", "response_id"),
)


class GlobalRefinement:
    """The operator ``global_refinement``."""

    name = "global_refinement"
    about = "Let the refiner write all thoughts anew; calls, results and answer stay."
    applies_to = "correct"
    asks = (REFINER,)

    async def change(self, parent: ParentRun, asking: Asking, rng: random.Random) -> Change:
        """Ask for the thoughts.

        Raises:
            UnchangedError: there is no thought.
            GaveUpError: the refiner gave no answer that can be used.
        """
        numbers = [n for n, step in enumerate(parent.steps, 1) if thought_of(step.turn)]
        if not numbers:
            raise UnchangedError("there is no thought")
        thoughts = await asking.ask(
            REFINER, "global_refinement", parent.facts(), lambda text: read_thoughts(text, numbers)
        )
        return Change(step=numbers[0], rewritten=_rewritten(parent, thoughts))


def _rewritten(parent: ParentRun, thoughts: Mapping[int, str]) -> Trajectory:
    numbers = {step.step: number for number, step in enumerate(agent_steps(parent.trajectory), 1)}
    steps = []
    for step in parent.trajectory.steps:
        number = numbers.get(step.step)
        thought = None if number is None else thoughts.get(number)
        steps.append(step if number is None else _with_thought(step, thought))
    return parent.trajectory.model_copy(update={"steps": steps})


def _with_thought(step: Step, thought: str | None) -> Step:
    """A step of the agent with another thought, and without what is known of its tokens."""
    text = step.prose if step.prose is not None else step.text
    changed: dict[str, object] = dict.fromkeys(_OF_TOKENS)
    changed |= {"text": text, "prose": None, "content": None, "observations": step.observations}
    changed["calls"] = [_without_span(call) for call in step.calls]
    if thought is not None:
        in_text = not step.reasoning and bool(step.calls)
        changed |= {"text": thought} if in_text else {"reasoning": thought}
        changed["made_by"] = "global_refinement"
    return step.model_copy(update=changed)


def _without_span(call: ToolCall) -> ToolCall:
    return call.model_copy(update={"span_start": None, "span_end": None})


OPERATOR = GlobalRefinement()
