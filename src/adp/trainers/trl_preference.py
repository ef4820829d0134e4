"""TRL's trainers for rows that are tokens already.

TRL 1.16 tokenises preference data itself, and puts all that follows the prompt under the loss, the
results of tools too. Here its preparation is passed over, and a collator hands over the exact mask.
Only `adp.trainers.dpo` and `adp.trainers.kto` import this module, inside functions.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch  # noqa: TID253 - this module subclasses TRL's trainers
import torch.nn.functional as F  # noqa: TID253
from accelerate.utils import is_peft_model  # noqa: TID253
from trl import DPOTrainer, KTOTrainer  # noqa: TID253

REF_ADAPTER = "ref"
"""TRL's name of the frozen copy of the adapter that a training begins with."""

Row = Mapping[str, Any]
Batch = dict[str, "torch.Tensor"]


def _padded(rows: Sequence[Sequence[int]], value: int, multiple: int | None) -> torch.Tensor:
    longest = max(map(len, rows))
    if multiple:
        longest = -(-longest // multiple) * multiple
    values = torch.full((len(rows), longest), value, dtype=torch.long)
    for index, row in enumerate(rows):
        values[index, : len(row)] = torch.as_tensor(row, dtype=torch.long)
    return values


def _sequences(
    sides: Sequence[tuple[Sequence[int], Sequence[int], Sequence[int]]],
    pad: int,
    multiple: int | None,
    limit: int | None = None,
) -> Batch:
    """Prompts with what follows them, padded on the right.

    Args:
        sides: prompt, ids and mask of each.
        pad: id of the padding token.
        multiple: pad to a multiple of it.
        limit: cut what is longer.
    """
    ids = [[*prompt, *answer_ids][:limit] for prompt, answer_ids, _ in sides]
    masks = [[*[0] * len(prompt), *map(int, mask)][:limit] for prompt, _, mask in sides]
    return {
        "input_ids": _padded(ids, pad, multiple),
        "attention_mask": _padded([[1] * len(row) for row in ids], 0, multiple),
        "completion_mask": _padded(masks, 0, multiple),
    }


def _floats(rows: Sequence[Row], *names: str) -> Batch:
    return {name: torch.tensor([row[name] for row in rows]) for name in names if name in rows[0]}


@dataclass
class PairCollator:
    """A batch as DPOTrainer wants it: chosen sides first, then the rejected ones.

    Attributes:
        pad_token_id: id of the padding token.
        pad_to_multiple_of: pad to a multiple of it.
    """

    pad_token_id: int
    pad_to_multiple_of: int | None = None

    def __call__(self, rows: Sequence[Row]) -> Batch:
        """Put rows together."""
        sides = [
            (row["prompt_ids"], row[f"{side}_ids"], row[f"{side}_mask"])
            for side in ("chosen", "rejected")
            for row in rows
        ]
        batch = _sequences(sides, self.pad_token_id, self.pad_to_multiple_of)
        return batch | _floats(rows, "ref_chosen_logps", "ref_rejected_logps")


@dataclass
class KtoCollator:
    """A batch as KTOTrainer wants it: rows, and the same prompts with others' completions.

    Attributes:
        pad_token_id: id of the padding token.
        pad_to_multiple_of: pad to a multiple of it.
        max_length: cut prompts with others' completions to it; the rows themselves fit.
    """

    pad_token_id: int
    pad_to_multiple_of: int | None = None
    max_length: int | None = None

    def __call__(self, rows: Sequence[Row]) -> Batch:
        """Put rows together."""
        answers = [
            (row["prompt_ids"], row["completion_ids"], row["completion_mask"]) for row in rows
        ]
        batch = _sequences(answers, self.pad_token_id, self.pad_to_multiple_of)
        if "KL_completion_ids" in rows[0]:
            others = [
                (row["prompt_ids"], row["KL_completion_ids"], row["KL_completion_mask"])
                for row in rows
            ]
            sequences = _sequences(
                others, self.pad_token_id, self.pad_to_multiple_of, limit=self.max_length
            )
            batch |= {f"KL_{name}": value for name, value in sequences.items()}
        batch["label"] = torch.tensor([bool(row["label"]) for row in rows])
        return batch | _floats(rows, "ref_logps", "ref_KL_logps")


class Exact:
    """What both trainers share: rows as they are, and only the trained adapter on disk."""

    base_is_reference = False
    """Compare with the model without any adapter."""

    def _prepare_dataset(self, dataset: Any, *_args: Any, **_kwargs: Any) -> Any:
        return dataset

    def drop_ref_adapter(self) -> None:
        """Forget the copy of the adapter, so that TRL takes the model without one."""
        model: Any = self.model  # type: ignore[attr-defined]
        if is_peft_model(model) and REF_ADAPTER in model.peft_config:
            model.delete_adapter(REF_ADAPTER)

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        """Save the adapter without the copy that is the reference."""
        super()._save(output_dir, state_dict=state_dict)  # type: ignore[misc]
        folder = Path(output_dir or self.args.output_dir) / REF_ADAPTER  # type: ignore[attr-defined]
        if folder.is_dir():
            shutil.rmtree(folder)


class ExactDPOTrainer(Exact, DPOTrainer):  # type: ignore[misc]
    """TRL's DPOTrainer on rows of tokens with masks."""

    def _precompute_ref_logps(self, dataset: Any, name: str, batch_size: int) -> Any:
        if self.base_is_reference:
            self.drop_ref_adapter()
        return super()._precompute_ref_logps(dataset, name, batch_size)


class ExactKTOTrainer(Exact, KTOTrainer):  # type: ignore[misc]
    """TRL's KTOTrainer on rows of tokens with masks."""

    def _precompute_ref_logps(self, dataset: Any, name: str, batch_size: int) -> Any:
        if self.base_is_reference:
            self.drop_ref_adapter()
        return super()._precompute_ref_logps(dataset, name, batch_size)


def orpo_loss(chosen: torch.Tensor, rejected: torch.Tensor, beta: float) -> torch.Tensor:
    """ORPO, eq. 6 and 7 of Hong, Lee and Thorne 2024 (arXiv 2403.07691), a loss for each pair.

    Args:
        chosen: average log-probability of a token of the better sides; shape (pairs,).
        rejected: the same of the worse sides.
        beta: weight of the odds ratio.
    """
    odds = (chosen - rejected) - (_log1mexp(chosen) - _log1mexp(rejected))
    return -chosen - beta * F.logsigmoid(odds)


def simpo_loss(
    chosen: torch.Tensor, rejected: torch.Tensor, beta: float, gamma: float
) -> torch.Tensor:
    """SimPO, eq. 6 of Meng, Xia and Chen 2024 (arXiv 2405.14734), a loss for each pair.

    Args:
        chosen: average log-probability of a token of the better sides; shape (pairs,).
        rejected: the same of the worse sides.
        beta: scale.
        gamma: the margin that is wanted.
    """
    return -F.logsigmoid(beta * (chosen - rejected) - gamma)


def _log1mexp(values: torch.Tensor) -> torch.Tensor:
    """log(1 - exp(x)) for x < 0, exact near 0 as well (Maechler 2012)."""
    small = values.clamp(max=-torch.finfo(values.dtype).tiny)
    near = torch.log(-torch.expm1(small.clamp(min=-0.6931472)))
    far = torch.log1p(-torch.exp(small.clamp(max=-0.6931472)))
    return torch.where(small > -0.6931472, near, far)


class ReferenceFreeTrainer(ExactDPOTrainer):
    """DPOTrainer with a loss that compares with no reference: ORPO or SimPO.

    TRL keeps both in its experimental part, with another preparation of the data. Here batches,
    model and log-probabilities are DPOTrainer's own, and only the loss is another.
    """

    simpo_gamma = 0.5

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.drop_ref_adapter()

    def _precompute_ref_logps(self, dataset: Any, name: str, batch_size: int) -> Any:
        return dataset

    def _compute_loss(self, model: Any, inputs: Batch, return_outputs: bool) -> Any:
        masks = inputs["completion_mask"]
        outputs = model(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            labels=inputs["input_ids"].masked_fill(masks == 0, -100),
            use_cache=False,
            fused_lm_head=True,
        )
        length = masks.size(1) - 1
        counts = masks[:, 1:].sum(dim=1).clamp(min=1)
        average = outputs.log_probs[:, -length:].float().sum(dim=1) / counts
        chosen, rejected = average.chunk(2)
        loss = torch.zeros_like(chosen)
        for name, weight in zip(self.loss_types, self.loss_weights, strict=True):
            loss = loss + weight * self._single_side(name, chosen, rejected)
        self._measure(inputs, chosen.detach(), rejected.detach())
        return (loss.mean(), outputs) if return_outputs else loss.mean()

    def _single_side(self, name: str, chosen: torch.Tensor, rejected: torch.Tensor) -> torch.Tensor:
        if name == "orpo":
            return orpo_loss(chosen, rejected, self.beta)
        if name == "simpo":
            return simpo_loss(chosen, rejected, self.beta, self.simpo_gamma)
        return -chosen

    def _measure(self, inputs: Batch, chosen: torch.Tensor, rejected: torch.Tensor) -> None:
        metrics = self._metrics["train" if self.model.training else "eval"]
        gather = self.accelerator.gather
        if self.model.training:
            self._total_train_tokens += int(gather(inputs["attention_mask"].sum()).sum().item())
        metrics["num_tokens"] = [self._total_train_tokens]
        for name, value in (
            ("rewards/chosen", self.beta * chosen),
            ("rewards/rejected", self.beta * rejected),
            ("rewards/accuracies", (chosen > rejected).float()),
            ("rewards/margins", self.beta * (chosen - rejected)),
            ("logps/chosen", chosen),
            ("logps/rejected", rejected),
        ):
            metrics[name].append(gather(value).mean().item())
