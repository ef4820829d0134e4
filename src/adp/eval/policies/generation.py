"""Writing answers with a causal language model, many at once.

Rows are padded on the left. Each one has its own source of random numbers, so what it draws does
not depend on the rows beside it; only rounding does, as everywhere in batched arithmetic. A row
that has ended leaves the batch.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from adp.eval.environment import Settings

_LEAVE = 4
"""The batch is made smaller when one of so many of its rows has ended: that costs a copy."""


class SamplingSettings(Settings):
    """How tokens are chosen."""

    temperature: float = Field(0.0, ge=0, description="0 takes the likeliest token.")
    top_p: float = Field(1.0, gt=0, le=1, description="Share of the probability that is kept.")
    top_k: int = Field(0, ge=0, description="Tokens that are kept; 0: all.")
    max_tokens: int = Field(1024, ge=1, description="Tokens that a turn may have.")


@dataclass(frozen=True, slots=True)
class Job:
    """One answer to be written.

    Attributes:
        ids: token ids of the prompt.
        seed: of its random numbers.
        longest: tokens that it may have.
    """

    ids: Sequence[int]
    seed: int
    longest: int


@dataclass(slots=True)
class Generated:
    """What was written.

    Attributes:
        ids: token ids, the one that ended it included.
        logprobs: their log probabilities before temperature and cuts.
        ended: whether it ended by itself.
    """

    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    ended: bool = False


class Generator:
    """Writes with one model.

    Args:
        model: a causal language model of transformers.
        ends: ids of the tokens that end an answer.
        sampling: how tokens are chosen.
    """

    def __init__(self, model: Any, ends: Collection[int], sampling: SamplingSettings) -> None:
        self._model = model
        own = getattr(model.generation_config, "eos_token_id", None)
        more = own if isinstance(own, list) else [own]
        self._ends = frozenset(ends) | {end for end in more if end is not None}
        self._sampling = sampling
        self._pad = min(self._ends, default=0)

    @property
    def context(self) -> int | None:
        """Tokens that the model was made for; None when it does not say."""
        config = self._model.config.get_text_config()
        length = getattr(config, "max_position_embeddings", None)
        return length if isinstance(length, int) and length > 0 else None

    def generate(self, jobs: Sequence[Job]) -> list[Generated]:
        """Write the answers of one batch."""
        import torch

        with torch.inference_mode():
            return _Batch(self._model, jobs, self._ends, self._sampling, self._pad).run()


class _Batch:
    """Rows that are written together."""

    def __init__(
        self,
        model: Any,
        jobs: Sequence[Job],
        ends: frozenset[int],
        sampling: SamplingSettings,
        pad: int,
    ) -> None:
        from transformers import DynamicCache

        self._model, self._jobs, self._ends, self._sampling = model, jobs, ends, sampling
        self._pad = pad
        self._found = [Generated() for _ in jobs]
        self._draws = [random.Random(job.seed) for job in jobs]
        self._rows = list(range(len(jobs)))
        self._open = [True] * len(jobs)
        self._cache = DynamicCache(config=model.config)

    def run(self) -> list[Generated]:
        import torch

        logits, mask = self._read()
        positions = mask.sum(1, keepdim=True)
        while True:
            tokens = self._choose(logits)
            self._take(tokens.tolist(), logits)
            still = [place for place, row in enumerate(self._rows) if self._open[row]]
            if not still:
                return self._found
            if len(self._rows) - len(still) >= max(1, len(self._rows) // _LEAVE):
                kept = torch.tensor(still, device=mask.device)
                self._cache.batch_select_indices(kept)
                tokens, mask, positions = tokens[kept], mask[kept], positions[kept]
                self._rows = [self._rows[place] for place in still]
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], 1)
            logits = self._forward(tokens[:, None], mask, positions)
            positions = positions + 1

    def _read(self) -> tuple[Any, Any]:
        """The prompts: the logits after them, and their mask."""
        import torch

        width = max(len(job.ids) for job in self._jobs)
        ids = torch.full((len(self._jobs), width), self._pad)
        mask = torch.zeros_like(ids)
        for row, job in enumerate(self._jobs):
            ids[row, width - len(job.ids) :] = torch.tensor(job.ids)
            mask[row, width - len(job.ids) :] = 1
        ids, mask = ids.to(self._model.device), mask.to(self._model.device)
        return self._forward(ids, mask, (mask.cumsum(1) - 1).clamp(min=0)), mask

    def _forward(self, ids: Any, mask: Any, positions: Any) -> Any:
        found = self._model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return found.logits[:, -1].float()

    def _choose(self, logits: Any) -> Any:
        import torch

        sampling = self._sampling
        if sampling.temperature == 0:
            return logits.argmax(-1)
        values, order = (logits / sampling.temperature).sort(-1, descending=True, stable=True)
        if sampling.top_k:
            values, order = values[:, : sampling.top_k], order[:, : sampling.top_k]
        shares = values.softmax(-1, dtype=torch.float64)
        sums = shares.cumsum(-1)
        if sampling.top_p < 1:
            shares = shares.masked_fill(sums - shares >= sampling.top_p, 0.0)
            sums = shares.cumsum(-1)
        drawn = [self._draws[row].random() for row in self._rows]
        point = torch.tensor(drawn, dtype=sums.dtype, device=sums.device)[:, None]
        place = torch.searchsorted(sums, point * sums[:, -1:], right=True)
        return order.gather(-1, place.clamp(max=order.shape[-1] - 1))[:, 0]

    def _take(self, tokens: list[int], logits: Any) -> None:
        """Write the tokens down, and note which rows have ended."""
        import torch

        chosen = torch.tensor(tokens, device=logits.device)[:, None]
        logprobs = logits.gather(-1, chosen)[:, 0] - logits.logsumexp(-1)
        for row, token, logprob in zip(self._rows, tokens, logprobs.tolist(), strict=True):
            if not self._open[row]:
                continue
            found = self._found[row]
            found.ids.append(token)
            found.logprobs.append(logprob)
            found.ended = token in self._ends
            self._open[row] = not found.ended and len(found.ids) < self._jobs[row].longest
