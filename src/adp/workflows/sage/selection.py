"""Choosing samples to train on: the ops ``score`` and ``coreset``, on samples in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from os import PathLike, fspath
from typing import Any, Literal, TypeVar

import numpy as np

from adp.curation.apply import apply
from adp.curation.inputs import open_inputs
from adp.curation.load import load
from adp.curation.ops.coreset.sage import SHARE, TokenShares, features
from adp.curation.training_loss.trajectory_losses import trajectory_losses
from adp.workflows.sage.samples import sample_id, store_of
from adp_schema.errors import UsageError
from adp_schema.scratch import ScratchFolder

_Sample = TypeVar("_Sample")
Strategy = Literal["loss_topk", "diversity", "hybrid", "random"]
STRATEGIES: tuple[Strategy, ...] = ("loss_topk", "diversity", "hybrid", "random")


class CoresetSelector:
    """Keeps a part of samples that stands for the whole.

    Args:
        strategy: loss_topk keeps what has the highest training loss; diversity what is least like
            the rest in its words; hybrid a share by loss and the rest by diversity; random draws.
        target_size: how many are kept.
        loss_ratio: hybrid: the share by loss.
        seed: random: seed of the draw.

    Raises:
        UsageError: there is no such strategy, or the ratio is none.
    """

    def __init__(
        self,
        strategy: Strategy = "hybrid",
        target_size: int | None = 1000,
        loss_ratio: float = SHARE,
        *,
        seed: int = 13,
    ) -> None:
        if strategy not in STRATEGIES:
            raise UsageError(f"strategy {strategy!r}: choose one of {', '.join(STRATEGIES)}")
        if not 0 <= loss_ratio <= 1:
            raise UsageError(f"loss_ratio {loss_ratio!r}: give a share from 0 to 1")
        self.strategy, self.target_size = strategy, target_size
        self.loss_ratio, self.seed = loss_ratio, seed

    def select(
        self,
        samples: Sequence[_Sample],
        model: Any = None,
        *,
        target_size: int | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> list[_Sample]:
        """Select.

        Args:
            samples: records that `adp convert` reads, or items with a ``text``.
            model: whose loss counts; see `compute_losses`.
            target_size: how many, in place of that of the selector.
            metrics: id of a sample -> its loss, in place of a model. Without both, SAGE's stand-in
                is taken, which is made of the length and the words of the text.

        Returns:
            The selected samples, in the order of selection. When there are not more than asked
            for, all of them, in their own order.
        """
        size = self.target_size if target_size is None else target_size
        if size is None or not 0 < size < len(samples):
            return list(samples)
        words = model is None and metrics is None and self.loss_ratio == SHARE
        if words or self.strategy in ("random", "diversity"):
            places = self._by_op(samples, self.strategy, size)
        else:
            places = self._by_loss(samples, self._losses(samples, model, metrics), size)
        return [samples[place] for place in places]

    def compute_losses(self, samples: Sequence[Any], model: Any) -> list[float]:
        """The training loss of each sample, a token; NaN where nothing of it is trained.

        Args:
            samples: as for `select`.
            model: a folder, a name on the Hub, or ``"tiny"``; or a pair of a model and its
                tokenizer in memory.
        """
        if not samples:
            return []
        with store_of(samples) as given, ExitStack() as stack:
            losses = trajectory_losses(given.store, _saved(model, stack))
        return [float("nan") if item.loss is None else item.loss for item in losses]

    def compute_diversity(self, samples: Sequence[Any]) -> np.ndarray[Any, Any]:
        """The distances between samples: 1 less the product of their shares of words.

        Returns:
            Array of n x n; 1 where two samples share no word.
        """
        count = len(samples)
        if not count:
            return np.zeros((0, 0))
        with store_of(samples) as given, ScratchFolder("diversity") as scratch:
            inputs = open_inputs({"samples": given.store.root})
            pool = load(inputs, scratch).pool(scratch, workers=1)
            try:
                shares = TokenShares(pool.map(features, True, name="sage"))
            finally:
                pool.close()
        rows = np.zeros((count, shares.vocabulary))
        rows[shares.owner, shares.token] = shares.share
        return np.asarray(1.0 - rows @ rows.T)

    def _by_op(self, samples: Sequence[Any], method: str, size: int) -> list[int]:
        with store_of(samples) as given:
            result = apply(
                "coreset", given.store, workers=1, method=method, size=size, compat="sage",
                random_seed=self.seed, coverage=False,
            )  # fmt: skip
            assert result.columns is not None
            ranked = result.columns.sort("coreset_rank")["seq"].to_list()
            return [given.places[seq] for seq in ranked]

    def _losses(
        self, samples: Sequence[Any], model: Any, metrics: Mapping[str, float] | None
    ) -> np.ndarray[Any, Any]:
        if metrics is not None:
            return np.array([metrics.get(sample_id(sample) or "", 0.0) for sample in samples])
        if model is None:
            raise UsageError("a loss_ratio of your own needs a model or metrics; give one")
        losses = np.array(self.compute_losses(samples, model))
        return np.asarray(np.nan_to_num(losses))

    def _by_loss(
        self, samples: Sequence[Any], losses: np.ndarray[Any, Any], size: int
    ) -> list[int]:
        first = size if self.strategy == "loss_topk" else int(self.loss_ratio * size)
        order = [int(place) for place in np.argsort(-losses, kind="stable")]
        top, rest = order[: first or 1], sorted(order[first or 1 :])
        wanted = size - len(top)
        if wanted <= 0:
            return top[:size]
        more = self._by_op([samples[place] for place in rest], "diversity", wanted)
        return top + [rest[place] for place in more]


def _saved(model: Any, stack: ExitStack) -> str:
    """The folder or name of a model; one in memory is saved to a folder for as long as needed."""
    if isinstance(model, str | PathLike):
        return fspath(model)
    try:
        network, tokenizer = model
        folder = str(stack.enter_context(ScratchFolder("model")))
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    except (TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"a {type(model).__name__} is no model to ask: give its folder or name, or a pair of "
            "model and tokenizer"
        ) from error
    return folder
