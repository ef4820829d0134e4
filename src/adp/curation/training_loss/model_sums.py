"""Asking a model: sums of the training loss of sequences, batch by batch, cached by content.

Sequences of like length go together, the longest first. A batch is made from all sequences that are
wanted and then asked for those alone that are not in the cache, so a run that was stopped goes on
with the batches that it would have had. Logits become log-probabilities in float32 and are added in
float64, a sequence on its own; what is left of the batch is the order in which the matrix products
of its shape add, which shows in the seventh digit in float32 and is rounded away by those who
report.
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adp.core.progress import Progress
from adp.curation.training_loss.sequences import AskedTokens
from adp.rendering.run import cache_folder
from adp.rollouts.policies.loading import load_for_generation
from adp.rollouts.policies.model_facts import model_hash
from adp.rollouts.policies.settings import ModelSettings
from adp.rollouts.searching.cache import TextCache
from adp_schema.errors import OutputExistsError, UsageError

Array = np.ndarray[Any, Any]
Sums = list[tuple[int, float, float]]
"""Of each step of a sequence that has trained tokens, in order: these tokens, the sum of their
weights times their losses, and the sum of their losses."""

VERSION = 1
"""Raised when the same sequence gives other sums, so that caches are made anew."""

_PLACES = 256
"""Tokens of a row whose logits are turned into float32 at a time."""


@dataclass(frozen=True)
class SequencePlace:
    """A sequence whose tokens are fetched when they are needed.

    Attributes:
        key: its name, by content.
        length: its tokens.
        load: fetches it.
    """

    key: str
    length: int
    load: Callable[[], AskedTokens]


@dataclass
class Effort:
    """What it took.

    Attributes:
        known: sequences that were in the cache.
        asked: sequences that the model was asked about.
        tokens: their tokens.
        cpu_seconds: time of the processor for them, all threads together.
    """

    known: int = 0
    asked: int = 0
    tokens: int = 0
    cpu_seconds: float = 0.0

    def words(self) -> str:
        """As a person reads it."""
        text = f"{self.tokens:,} tokens of {self.asked:,} sequences asked of the model"
        if self.asked:
            rate = self.tokens / max(self.cpu_seconds, 1e-9)
            text += f", {rate:,.0f} tokens per CPU-second"
        return f"{text}; {self.known:,} sequences were in the cache"


def losses_cache(settings: ModelSettings) -> TextCache:
    """The cache of a model, in ``$ADP_CACHE`` or the user's cache.

    Args:
        settings: which model.

    Raises:
        OutputExistsError: nothing can be written there.
    """
    folder = cache_folder().with_name("training-loss")
    path = folder / f"{model_hash(settings)}-{VERSION}.sqlite"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputExistsError(f"cannot write to {folder}: {error.strerror}") from error
    return TextCache(Path(path))


def model_sums(
    places: Sequence[SequencePlace],
    settings: ModelSettings,
    batch_tokens: int,
    progress: Progress,
) -> tuple[dict[str, Sums], Effort]:
    """Ask a model for the sums of sequences; it is loaded when the cache lacks one.

    Args:
        places: the sequences; those of one content are asked about once.
        settings: which model.
        batch_tokens: tokens of a batch, padding included; a longer sequence goes alone.
        progress: told how far it is, in tokens.

    Returns:
        The sums by key, and what it took.

    Raises:
        UsageError: the model cannot be loaded, or memory does not suffice.
    """
    cache = losses_cache(settings)
    unique = {place.key: place for place in places}
    known = {key: _parsed(text) for key, text in cache.some(unique).items()}
    effort = Effort(known=len(known))
    missing = sum(place.length for key, place in unique.items() if key not in known)
    if not missing:
        return known, effort
    progress.status("loading the model")
    model, _ = load_for_generation(settings)
    progress.total(missing)
    for batch in batches(list(unique.values()), batch_tokens):
        wanted = [place for place in batch if place.key not in known]
        if not wanted:
            continue
        began = time.process_time()
        results = _asked(model, [place.load() for place in wanted])
        effort.cpu_seconds += time.process_time() - began
        new = {place.key: sums for place, sums in zip(wanted, results, strict=True)}
        cache.put_all({key: json.dumps(sums) for key, sums in new.items()})
        known |= new
        size = sum(place.length for place in wanted)
        effort.asked += len(wanted)
        effort.tokens += size
        progress.advance(size)
    return known, effort


def batches(places: Sequence[SequencePlace], batch_tokens: int) -> Iterator[list[SequencePlace]]:
    """Sequences of like length together, the longest first; their order does not matter.

    Args:
        places: the sequences, each content once.
        batch_tokens: tokens of a batch, padding included.
    """
    batch: list[SequencePlace] = []
    for place in sorted(places, key=lambda item: (-item.length, item.key)):
        if batch and (len(batch) + 1) * batch[0].length > batch_tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _parsed(text: str) -> Sums:
    return [(int(tokens), float(loss), float(plain)) for tokens, loss, plain in json.loads(text)]


def _asked(model: Any, sequences: Sequence[AskedTokens]) -> list[Sums]:
    import torch

    highest = max(int(sequence.ids.max()) for sequence in sequences)
    if highest >= (size := model.get_input_embeddings().weight.shape[0]):
        raise UsageError(
            f"the tokenizer gives token {highest:,} and the model knows {size:,}; name the "
            "tokenizer of the model"
        )
    try:
        losses = token_losses(model, sequences)
    except torch.OutOfMemoryError as error:
        longest = max(len(sequence.ids) for sequence in sequences)
        raise UsageError(
            f"the memory of the device is full at {len(sequences)} sequences of {longest:,} "
            "tokens; use a smaller batch_tokens or render.max_length"
        ) from error
    return [_sums(*pair) for pair in zip(sequences, losses, strict=True)]


def _sums(sequence: AskedTokens, losses: Array) -> Sums:
    steps, groups = sequence.groups()
    weighted = losses * sequence.weights[sequence.places()].astype(np.float64)
    count = len(steps)
    columns = (
        np.bincount(groups, minlength=count).tolist(),
        np.bincount(groups, weighted, count).tolist(),
        np.bincount(groups, losses, count).tolist(),
    )
    return list(zip(*columns, strict=True))


def token_losses(model: Any, sequences: Sequence[AskedTokens]) -> list[Array]:
    """Cross entropy of the trained tokens of sequences, by one forward pass.

    Args:
        model: a causal model of transformers, in evaluation mode.
        sequences: not empty; they are filled up at their ends.

    Returns:
        Of each sequence the loss of each token of `AskedTokens.places`, float64.
    """
    import torch

    width = max(len(sequence.ids) for sequence in sequences)
    ids = torch.zeros((len(sequences), width), dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence.ids)] = torch.tensor(sequence.ids, dtype=torch.long)
        mask[row, : len(sequence.ids)] = 1
    wanted = [sequence.places() - 1 for sequence in sequences]
    given: Mapping[str, Any] = {}
    kept = np.arange(width)
    if "logits_to_keep" in inspect.signature(model.forward).parameters:
        # Logits are most of the memory, and most tokens of a row are not trained.
        kept = np.unique(np.concatenate(wanted))
        given = {"logits_to_keep": torch.tensor(kept, device=model.device)}
    results: list[Array] = []
    with torch.inference_mode():
        logits = model(
            input_ids=ids.to(model.device),
            attention_mask=mask.to(model.device),
            use_cache=False,
            **given,
        ).logits
        for row, places in enumerate(wanted):
            losses = [np.zeros(0)]
            for first in range(0, len(places), _PLACES):
                part = places[first : first + _PLACES]
                at = torch.tensor(np.searchsorted(kept, part), device=model.device)
                targets = ids[row, torch.tensor(part + 1)].to(model.device)
                chosen = logits[row, at].float()
                losses.append(
                    torch.nn.functional.cross_entropy(chosen, targets, reduction="none")
                    .double()
                    .cpu()
                    .numpy()
                )
            results.append(np.concatenate(losses))
    return results


__all__ = ["Effort", "SequencePlace", "Sums", "batches", "model_sums", "token_losses"]
