"""Writing answers with a causal language model, many at once.

Rows are padded on the left. Each one has its own source of random numbers, so what it draws does
not depend on the rows beside it; only rounding does, as everywhere in batched arithmetic. A row
that has ended leaves the batch.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from adp.rollouts.policies.entropy import top_entropy
from adp.rollouts.policies.prefixes import BLOCK, Known, Prefixes, growing_layer
from adp.rollouts.policies.prompts import Generated
from adp.rollouts.policies.settings import SamplingSettings

_LEAVE = 4
"""The batch is made smaller when one of so many of its rows has ended: that costs a copy."""

_LARGEST_MASK = 1 << 26
"""Rows times tokens to be read times tokens that they see, in one forward pass."""


@dataclass(frozen=True, slots=True)
class GenerationJob:
    """One answer to be written.

    Attributes:
        ids: token ids of the prompt.
        seed: of its random numbers.
        longest: tokens that it may have.
    """

    ids: Sequence[int]
    seed: int
    longest: int


def ends_of(model: Any) -> frozenset[int]:
    """Ids of the tokens at which the generation config of a model says to stop."""
    end_ids = getattr(model.generation_config, "eos_token_id", None)
    more = end_ids if isinstance(end_ids, list) else [end_ids]
    return frozenset(end for end in more if end is not None)


class TurnGenerator(Protocol):
    """Writes answers to prompts, many at once."""

    @property
    def context(self) -> int | None:
        """Tokens of prompt and answer; None: there is no limit."""
        ...

    def generate(self, jobs: Sequence[GenerationJob]) -> list[Generated]:
        """Write answers, in the order of the jobs.

        Raises:
            InfrastructureError: none could be had, and no prompt is to blame.
        """
        ...


class Generator:
    """Writes with one model.

    Args:
        model: a causal language model of transformers.
        ends: ids of the tokens that end an answer.
        sampling: how tokens are chosen.
        memory: bytes for what was read already; 0 reads every prompt from its beginning.
        tempered: keep log probabilities at the temperature, from which tokens are drawn; else
            those of the model, at 1.
        entropies: tokens over which the entropy of each place is taken; 0: it is not.
    """

    def __init__(
        self,
        model: Any,
        ends: Collection[int],
        sampling: SamplingSettings,
        memory: int = 0,
        *,
        tempered: bool = False,
        entropies: int = 0,
    ) -> None:
        self.model = model
        self.entropies = entropies
        self.sampling = sampling
        self.scale = sampling.temperature if tempered and sampling.temperature else 1.0
        self.ends = frozenset(ends) | ends_of(model)
        # Layers of other kinds, such as sliding windows, do not keep all that was read.
        self._plain = all(kind.__name__ == "DynamicLayer" for kind in self._kinds())
        self.prefixes = Prefixes(memory) if memory and self._plain else None

    def _kinds(self) -> list[type]:
        from transformers import DynamicCache

        return [type(layer) for layer in DynamicCache(config=self.model.config).layers]

    def new_cache(self) -> Any:
        """An empty cache of keys and values."""
        from transformers import Cache, DynamicCache

        if not self._plain:
            return DynamicCache(config=self.model.config)
        return Cache(layers=[growing_layer()() for _ in self._kinds()])

    @property
    def context(self) -> int | None:
        """Tokens that the model was made for; None when it does not say."""
        config = self.model.config.get_text_config()
        length = getattr(config, "max_position_embeddings", None)
        return length if isinstance(length, int) and length > 0 else None

    def generate(self, jobs: Sequence[GenerationJob]) -> list[Generated]:
        """Write answers, those of similar length together.

        Returns:
            The answers, in the order of the jobs.
        """
        import torch

        with torch.inference_mode():
            self._read_common(jobs)
            rows = [_Row(number, job, self._known(job)) for number, job in enumerate(jobs)]
            rows.sort(key=lambda row: (len(row.new), len(row.job.ids)))
            answers = [row.ended for row in sorted(rows, key=lambda row: row.number)]
            for group in _groups(rows):
                _Batch(self, group).run()
        return answers

    def _known(self, job: GenerationJob) -> tuple[int, Known | None]:
        return self.prefixes.find(job.ids) if self.prefixes is not None else (0, None)

    def _read_common(self, jobs: Sequence[GenerationJob]) -> None:
        """Read what all prompts begin with once, before they are read side by side."""
        if self.prefixes is None or len(jobs) < 2:
            return
        ids = [tuple(job.ids) for job in jobs]
        first, last = min(ids), max(ids)
        length = next(
            (i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b),
            min(len(first), len(last)),
        )
        length -= length % BLOCK
        if length - self.prefixes.find([*first[:length], 0])[0] >= BLOCK:
            job = GenerationJob(first[:length], seed=0, longest=1)
            _Batch(self, [_Row(0, job, self._known(job))]).run()


@dataclass(slots=True)
class _Row:
    """A job that is carried out, and the beginning of its prompt that was read already."""

    number: int
    job: GenerationJob
    known: tuple[int, Known | None]
    ended: Generated = field(default_factory=Generated)
    draw: random.Random = field(init=False)
    open: bool = True

    def __post_init__(self) -> None:
        self.draw = random.Random(self.job.seed)

    @property
    def new(self) -> Sequence[int]:
        """What of the prompt has to be read."""
        return self.job.ids[self.known[0] :]


def _groups(rows: Sequence[_Row]) -> Iterator[list[_Row]]:
    """Rows that fit into one forward pass; what bounds it is the mask of the attention."""
    group: list[_Row] = []
    for row in rows:
        widths = [(len(item.new), len(item.job.ids)) for item in (*group, row)]
        size = len(widths) * max(w for w, _ in widths) * max(w for _, w in widths)
        if group and size > _LARGEST_MASK:
            yield group
            group = []
        group.append(row)
    yield group


class _Batch:
    """Rows that are written side by side."""

    def __init__(self, generator: Generator, rows: Sequence[_Row]) -> None:
        self._generator = generator
        self._rows = list(rows)
        self._cache = generator.new_cache()

    def run(self) -> None:
        import torch

        logits, mask = self._read()
        positions = mask.sum(1, keepdim=True)
        while True:
            tokens = self._choose(logits)
            self._take(tokens.tolist(), logits)
            places = range(len(self._rows))
            still = [place for place in places if self._rows[place].open]
            if not still:
                self._remember(list(places), mask)
                return
            if len(self._rows) - len(still) >= max(1, len(self._rows) // _LEAVE):
                self._remember([place for place in places if not self._rows[place].open], mask)
                kept = torch.tensor(still, device=mask.device)
                self._cache.batch_select_indices(kept)
                tokens, mask, positions = tokens[kept], mask[kept], positions[kept]
                self._rows = [self._rows[place] for place in still]
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], 1)
            logits = self._forward(tokens[:, None], mask, positions)
            positions = positions + 1

    def _read(self) -> tuple[Any, Any]:
        """Read the prompts; return the logits after them, and which tokens are no padding."""
        import torch

        device = self._generator.model.device
        past = self._load()
        width = max(len(row.new) for row in self._rows)
        ids = torch.zeros(len(self._rows), width, dtype=torch.long)
        mask = torch.zeros(len(self._rows), past + width, dtype=torch.long)
        positions = torch.zeros_like(ids)
        for place, row in enumerate(self._rows):
            count, known = len(row.new), row.known[0]
            ids[place, width - count :] = torch.tensor(row.new)
            positions[place, width - count :] = torch.arange(known, known + count)
            mask[place, past - known : past] = 1
            mask[place, past + width - count :] = 1
        mask = mask.to(device)
        return self._forward(ids.to(device), mask, positions.to(device)), mask

    def _load(self) -> int:
        """Put what was read already into the cache, at its right side; return its width."""
        width = max(row.known[0] for row in self._rows)
        first = next((row.known[1] for row in self._rows if row.known[1] is not None), None)
        if first is None:
            return 0
        for number, pair in enumerate(first.layers):
            both = []
            for side, part in enumerate(pair):
                padded = part.new_zeros(len(self._rows), part.shape[0], width, part.shape[2])
                for place, row in enumerate(self._rows):
                    count, known = row.known
                    if known is not None:
                        padded[place, :, width - count :] = known.layers[number][side][:, :count]
                both.append(padded)
            self._cache.update(both[0], both[1], number)
        return width

    def _remember(self, places: Sequence[int], mask: Any) -> None:
        """Keep what was read and written of rows that leave."""
        prefixes = self._generator.prefixes
        if prefixes is None:
            return
        for place in places:
            row = self._rows[place]
            # Of rows that ended earlier, what was written after their end is no part of them.
            ids = [*row.job.ids, *row.ended.ids[:-1]]
            real = mask[place].nonzero()[: len(ids), 0]
            layers = [
                (layer.keys[place][:, real], layer.values[place][:, real])
                for layer in self._cache.layers
            ]
            prefixes.keep(ids, layers)

    def _forward(self, ids: Any, mask: Any, positions: Any) -> Any:
        model = self._generator.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return model.logits[:, -1].float()

    def _choose(self, logits: Any) -> Any:
        import torch

        sampling = self._generator.sampling
        if sampling.temperature == 0:
            return logits.argmax(-1)
        values, order = (logits / sampling.temperature).sort(dim=-1, descending=True, stable=True)
        if sampling.top_k:
            values, order = values[:, : sampling.top_k], order[:, : sampling.top_k]
        shares = values.softmax(-1, dtype=torch.float64)
        sums = shares.cumsum(-1)
        if sampling.top_p < 1:
            shares = shares.masked_fill(sums - shares >= sampling.top_p, 0.0)
            sums = shares.cumsum(-1)
        drawn = [row.draw.random() for row in self._rows]
        point = torch.tensor(drawn, dtype=sums.dtype, device=sums.device)[:, None]
        place = torch.searchsorted(sums, point * sums[:, -1:], right=True)
        return order.gather(-1, place.clamp(max=order.shape[-1] - 1))[:, 0]

    def _take(self, tokens: list[int], logits: Any) -> None:
        """Write the tokens down, and note which rows have ended."""
        import torch

        chosen = torch.tensor(tokens, device=logits.device)[:, None]
        count = min(self._generator.entropies, logits.shape[-1])
        likeliest = logits.log_softmax(-1).topk(count).values.tolist() if count else None
        if self._generator.scale != 1:
            logits = logits / self._generator.scale
        logprobs = logits.gather(-1, chosen)[:, 0] - logits.logsumexp(-1)
        for place, (token, logprob) in enumerate(zip(tokens, logprobs.tolist(), strict=True)):
            row = self._rows[place]
            if not row.open:
                continue
            if likeliest is not None:
                row.ended.entropies.append(top_entropy(likeliest[place], count))
            row.ended.ids.append(token)
            row.ended.logprobs.append(logprob)
            row.ended.ended = token in self._generator.ends
            row.open = not row.ended.ended and len(row.ended.ids) < row.job.longest
