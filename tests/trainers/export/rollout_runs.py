"""Real rollouts of a tiny model: its prompts, its tokens, its log probabilities, dictated words.

A tiny model writes noise, and noise calls no tool. So the words are dictated, and all else is real:
the prompts of the policy in process, the tokens of its tokenizer, the log probabilities that the
model gives them, and the environment.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from adp.rollouts.collecting.collect import collect_now
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.environments.calculator import KIND as CALCULATOR
from adp.rollouts.experts.spec import cast_of
from adp.rollouts.policies.loading import load_for_generation
from adp.rollouts.policies.prompts import Generated, Prompter
from adp.rollouts.policies.transformers import TransformersSettings
from adp.rollouts.policy import Request
from adp.rollouts.turns import Turn
from adp_schema.model import Task
from adp_schema.store import Store

TASKS = [
    Task(task_id="sum", dataset="sums", instruction="What is 16 + 28?", answers='["44"]'),
    Task(task_id="product", dataset="sums", instruction="What is 3 * 17?", answers='["51"]'),
]
EXPRESSIONS = {"sum": "16 + 28", "product": "3 * 17"}


def words(request: Request, space: str) -> str:
    """What the model says: a call, then its result; a wrong answer in every second attempt."""
    task = request.task
    assert task is not None
    if request.turn == 0:
        arguments = {"expression": EXPRESSIONS[str(task.task_id)]}
        call = json.dumps({"name": "calculator", "arguments": arguments})
        return f"<tool_call>{space}{call}{space}</tool_call>"
    answer = json.loads(task.answers or "[]")[0]
    return str(answer) if request.attempt % 2 == 0 else "I do not know"


class Dictated:
    """The policy: real prompts, tokens and log probabilities of the model ``tiny``.

    Args:
        token_ids: whether the tokens are kept.
        space: what stands around a call. With any, the template writes the call in another way
            than the model, so the next prompt rewrites history.
    """

    name = "dictated"

    def __init__(self, token_ids: bool = True, space: str = "") -> None:
        self.space = space
        settings = TransformersSettings(model="tiny", logprobs=token_ids, token_ids=token_ids)
        self.model, tokenizer = load_for_generation(settings)
        self.tokenizer = tokenizer
        self.prompter = Prompter(tokenizer, settings)

    async def act(self, request: Request) -> Turn:
        """The dictated turn."""
        prompt = self.prompter.prompt(request)
        ids = self.tokenizer(words(request, self.space), add_special_tokens=False)["input_ids"]
        ids = [*ids, self.tokenizer.eos_token_id]
        written = Generated(ids, self.logprobs([*prompt.ids, *ids])[-len(ids) :], ended=True)
        return self.prompter.turn(request, prompt, written)

    def logprobs(self, ids: list[int]) -> list[float]:
        """The log probability of each token but the first one."""
        import torch

        with torch.no_grad():
            logits = self.model(torch.tensor([ids])).logits[0, :-1]
        chosen = logits.log_softmax(-1).gather(1, torch.tensor(ids[1:])[:, None])
        return [float(value) for value in chosen[:, 0]]

    async def close(self) -> None:
        """Nothing to free."""


def rollout_store(folder: Path, policy: Any = None, n: int = 2) -> Store:
    """A store of rollouts in the calculator: right and wrong attempts at two tasks.

    Args:
        folder: where to.
        policy: who acts; None: the dictated model.
        n: attempts at each task.
    """
    cast = cast_of(policy or Dictated())
    settings = CollectSettings(
        environment="calculator", policy="dictated", dataset="rollouts", n=n, timed=False
    )
    collect_now(
        str(folder),
        lambda: CALCULATOR.make(CALCULATOR.settings()),
        cast.actors,
        TASKS,
        settings,
        policies=cast.policies,
    )
    return Store.open(str(folder))


def written_by_hand(trajectory: Any) -> tuple[list[int], list[bool], list[float]]:
    """All tokens of an episode, which of them the model wrote, and how probable: from its steps.

    For episodes whose every prompt begins with all that came before.
    """
    turns = [step for step in trajectory.steps if step.completion_token_ids]
    ids: list[int] = []
    mask: list[bool] = []
    logprobs: list[float] = []
    for step in turns:
        prompt, written = list(step.prompt_token_ids), list(step.completion_token_ids)
        assert prompt[: len(ids)] == ids
        mask += [False] * (len(prompt) - len(ids)) + [True] * len(written)
        logprobs += [0.0] * (len(prompt) - len(ids)) + list(step.logprobs)
        ids = prompt + written
    return ids, mask, logprobs
