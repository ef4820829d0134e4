"""Supervised fine-tuning with weights between 0 and 1: TRL's trainer, and 20 lines.

Only imported when such weights are there. The loss is the sum of weight times loss of each trained
token, over the number of trained tokens: a weight of 0.5 halves the pull of a token and of nothing
else. TRL 1.16 has no weights (its issue 5761), so this leans on two things that it does not
promise: the columns that it keeps, and the log-probabilities that its fused head gives.
"""

from __future__ import annotations

from typing import Any

import torch  # noqa: TID253 - this module is only imported by a run that has loaded it
from trl import SFTTrainer  # noqa: TID253
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling  # noqa: TID253
from trl.trainer.utils import pad  # noqa: TID253


class WeightedCollator(DataCollatorForLanguageModeling):  # type: ignore[misc]
    """TRL's collator, with the column ``loss_weights``."""

    def torch_call(self, examples: list[dict[str, Any]]) -> dict[str, Any]:
        """Make a batch."""
        batch: dict[str, Any] = super().torch_call(examples)
        weights = [
            torch.tensor(example["loss_weights"], dtype=torch.float32) for example in examples
        ]
        if self.padding_free:
            weights = [torch.cat(weights)]
        batch["loss_weights"] = pad(
            weights,
            padding_value=0.0,
            padding_side="right",
            pad_to_multiple_of=self.pad_to_multiple_of,
        )
        return batch


class WeightedTrainer(SFTTrainer):  # type: ignore[misc]
    """TRL's trainer, in which each token's log-probability counts by its weight."""

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        if "loss_weights" not in self._signature_columns:
            self._signature_columns.append("loss_weights")

    def compute_loss(
        self,
        model: Any,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Any = None,
    ) -> Any:
        """TRL's loss, of log-probabilities that are multiplied with the weights."""
        weights = inputs.pop("loss_weights")[:, 1:]

        def weighing(**given: Any) -> Any:
            result = model(**given)
            result.log_probs = result.log_probs * weights
            return result

        return super().compute_loss(weighing, inputs, return_outputs, num_items_in_batch)
