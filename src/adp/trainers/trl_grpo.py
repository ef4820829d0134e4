"""TRL's GRPOTrainer for prompts that are rendered already.

Only `adp.trainers.grpo` imports this module, inside a function.
"""

from __future__ import annotations

from typing import Any

from trl import GRPOTrainer  # noqa: TID253 - this module subclasses TRL's trainer

from adp.trainers.trl_order import KeptOrder
from adp.trainers.trl_preference import Exact


class ExactGRPOTrainer(Exact, KeptOrder, GRPOTrainer):  # type: ignore[misc]
    """GRPOTrainer whose prompts hold their special tokens.

    TRL tokenises a prompt that is text with the tokenizer's own additions, so the template's
    beginning-of-text token would stand there twice.
    """

    def _tokenize_prompts(self, prompts: list[str]) -> tuple[list[list[int]], None, dict[str, Any]]:
        processing_class = self.processing_class(text=prompts, add_special_tokens=False)
        return processing_class["input_ids"], None, {}
