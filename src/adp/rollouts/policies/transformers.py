"""A model in this process, by transformers. Turns of many episodes are written together.

    transformers:model=Qwen/Qwen3-0.6B,max_tokens=512
    transformers:model=runs/sft,temperature=0.7
    transformers:model=tiny

A batch takes what is asked for while the one before is written, so nobody waits for an answer but
the episodes that asked for it. The model works in a thread of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from adp.rollouts.policies.generation import (
    GenerationJob,
    Generator,
    TurnGenerator,
    ends_of,
)
from adp.rollouts.policies.loading import load_for_generation
from adp.rollouts.policies.names import model_name
from adp.rollouts.policies.prompts import ModelPrompt, Prompter
from adp.rollouts.policies.settings import InProcessSettings, free
from adp.rollouts.policy import PolicyKind, Request
from adp.rollouts.turns import Turn
from adp_schema.model import Task


class TransformersSettings(InProcessSettings):
    """Settings of the policy ``transformers``."""

    batch_size: int = free(64, ge=1)
    """Turns that are written together, at most."""
    prefix_cache_mb: int = free(1024, ge=0)
    """Memory for what the model has read already, on its device; 0: each prompt is read from its
    beginning."""
    wait_ms: float = free(5.0, ge=0)
    """A batch waits as long as turns come within this time of each other."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A turn that somebody waits for."""

    request: Request
    prompt: ModelPrompt
    future: asyncio.Future[Turn]


class TransformersPolicy:
    """A model in this process.

    Args:
        settings: its settings.
        model: a loaded model; None loads the one that the settings name.
        tokenizer: of that model.
        generator: makes what writes in place of the model's own, given the ids of tokens that end
            a turn.

    Attributes:
        name: name of the model.
        vocabulary: how many tokens the tokenizer knows.

    Raises:
        UsageError: there is no such model, or a setting does not fit it.
        MissingExtraError: torch or transformers is not installed.
    """

    def __init__(
        self,
        settings: TransformersSettings,
        model: Any = None,
        tokenizer: Any = None,
        generator: Callable[[frozenset[int]], TurnGenerator] | None = None,
    ) -> None:
        if model is None:
            model, tokenizer = load_for_generation(settings)
        self.name = model_name(settings.model)
        self.vocabulary = len(tokenizer)
        self._settings = settings
        self._prompter = Prompter(tokenizer, settings, ends_of(model))
        self._generator: TurnGenerator
        if generator is not None:
            self._generator = generator(frozenset(self._prompter.ends))
        else:
            memory = settings.prefix_cache_mb << 20
            self._generator = Generator(
                model, self._prompter.ends, settings, memory, entropies=settings.entropies
            )
        if self._prompter.context is None:
            self._prompter.context = self._generator.context
        self._waiting: list[_Waiting] = []
        self._runner: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "adp-model")

    async def act(self, request: Request) -> Turn:
        """The model's turn.

        Raises:
            UsageError: the model's template cannot write tools.
            AgentLimitError: the conversation fills the model's context.
        """
        prompt = self._prompter.prompt(request)
        future: asyncio.Future[Turn] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(request, prompt, future))
        if self._runner is None or self._runner.done():
            # An event belongs to the loop that waited for it, and a policy may outlive a loop.
            self._news = asyncio.Event()
            self._runner = asyncio.create_task(self._run())
        self._news.set()
        return await future

    def remarks(self, tasks: Sequence[Task]) -> list[str]:
        """What the chat template dropped from prompts; see `Prompter.remarks`."""
        return self._prompter.remarks()

    async def close(self) -> None:
        """Free the thread; a batch that is being written is finished first."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        """Write batches until nobody waits."""
        while self._waiting:
            await self._gather()
            batch = self._next_batch()
            if not batch:
                continue
            jobs = [
                GenerationJob(
                    item.prompt.ids, item.request.seed, self._prompter.longest(item.prompt)
                )
                for item in batch
            ]
            try:
                loop = asyncio.get_running_loop()
                run = await loop.run_in_executor(self._thread, self._generator.generate, jobs)
            except Exception as error:
                for item in batch:
                    if not item.future.done():
                        item.future.set_exception(error)
                continue
            for item, written in zip(batch, run, strict=True):
                if not item.future.done():
                    turn = self._prompter.turn(item.request, item.prompt, written)
                    item.future.set_result(turn)

    async def _gather(self) -> None:
        """Wait for more, as long as more come soon."""
        while len(self._waiting) < self._settings.batch_size:
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), self._settings.wait_ms / 1000)
            except TimeoutError:
                return

    def _next_batch(self) -> Sequence[_Waiting]:
        """Take those that waited longest, without those that gave up."""
        count = self._settings.batch_size
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        return [item for item in batch if not item.future.done()]


KIND = PolicyKind(
    name="transformers",
    about="A model in this process, by transformers; turns of many episodes are written together.",
    settings=TransformersSettings,
    make=TransformersPolicy,
)
