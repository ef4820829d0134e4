"""TRL's DistillationTrainer for rows that are tokens already, of the model's own and of the store.

TRL 1.16 distils on the model's own answers alone. Here a share of the steps takes the tokens of
the store, with their mask, in the place of an answer; loss and loop are TRL's. Only
`adp.trainers.distill` imports this module, inside a function.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import cycle, islice
from typing import Any

import numpy as np
import torch  # noqa: TID253 - this module subclasses TRL's trainer
from trl import DistillationTrainer  # noqa: TID253

from adp.trainers.trl_order import EpochSampler, KeptOrder
from adp_schema.errors import UsageError

Prompts = list[dict[str, list[int]]]

_TRIED = 32
"""Tokens on which TRL's loss is compared with the models' own logits."""


class FilledSampler(EpochSampler):
    """TRL's sampler, which would leave out the rows that do not fill the last step of an epoch.

    That step takes the first rows of the epoch once more.
    """

    def __iter__(self) -> Iterator[int]:
        """Row by row, each step as often as it is accumulated."""
        order = list(range(self.num_samples))
        if self.shuffle:
            order = torch.randperm(self.num_samples, generator=self.generator).tolist()
        order = list(islice(cycle(order), self._filled()))
        for first in range(0, len(order), self.batch_size):
            for _ in range(self.repeat_count):
                yield from order[first : first + self.batch_size]

    def __len__(self) -> int:
        return self._filled() * int(self.repeat_count)

    def _filled(self) -> int:
        count, batch = int(self.num_samples), int(self.batch_size)
        return -(-count // batch) * batch


class ExactDistillationTrainer(KeptOrder, DistillationTrainer):  # type: ignore[misc]
    """DistillationTrainer on rows of tokens with masks."""

    sampler = FilledSampler
    lmbda = 1.0
    """Share of the steps on the model's own answers."""

    def stop_at(self, stops: Collection[int]) -> None:
        """Let answers end at further tokens; TRL knows those of the generation config alone."""
        ends = sorted({*self.generation_config.eos_token_id, *stops})
        self.eos_token_ids = ends
        self.generation_config.eos_token_id = ends
        self.generation_kwargs["eos_token_id"] = ends

    def check_heads(self) -> None:
        """Check that TRL's loss is that of the logits which both models give.

        TRL computes logits from the last hidden states and the weights of the head, and knows
        what some architectures do to them afterwards.

        Raises:
            UsageError: it is not.
        """
        row = self.train_dataset[0]["prompt"]
        device = self.accelerator.device
        ids = torch.tensor([[*row["ids"], *row["answer"]][-_TRIED:]], device=device)
        first, rest = ids[:, :1], ids[:, 1:]
        inputs = {
            "prompt_ids": first, "prompt_mask": torch.ones_like(first),
            "completion_ids": rest, "completion_mask": torch.ones_like(rest),
        }  # fmt: skip
        student, teacher = map(self.accelerator.unwrap_model, (self.model, self.teacher_model))
        was_training = student.training
        student.eval()
        with torch.no_grad():
            computed = self._compute_loss(student, inputs, None)[0].item()
            logs = (self._logs_of(student, ids), self._logs_of(teacher, ids))
            wanted = _divergence(*logs, self.beta).mean().item()
        student.train(was_training)
        if not abs(computed - wanted) <= 0.05 + 0.1 * abs(wanted):
            raise UsageError(
                f"TRL computes a divergence of {computed:.3f} where the logits of the two models "
                f"give {wanted:.3f}: it does not know what their architecture does to logits; take "
                "other models for distill"
            )

    def _logs_of(self, model: Any, ids: torch.Tensor) -> torch.Tensor:
        logits = model(input_ids=ids, use_cache=False).logits[:, :-1].float()
        return torch.log_softmax(logits / self.temperature, -1)

    def _tokenize_prompts(self, prompts: Prompts) -> tuple[list[list[int]], None, dict[str, Any]]:
        return [list(prompt["ids"]) for prompt in prompts], None, {}

    def _generate(self, prompts: Prompts) -> Any:
        """What is learnt from: written by the model now, or as the store has it."""
        mode = "train" if self.model.training else "eval"
        writes = self._writes()
        self._metrics[mode]["on_policy"].append(float(writes))
        if writes:
            ids, answers, *_ = super()._generate(prompts)
            masks = [[1] * len(answer) for answer in answers]
        else:
            ids, answers, masks = ([list(prompt[name]) for prompt in prompts]
                                   for name in ("ids", "answer", "mask"))  # fmt: skip
        # Padding before a prompt would move the positions of its tokens: all but the first token
        # follow, outside the loss.
        joined = [[*prompt, *answer] for prompt, answer in zip(ids, answers, strict=True)]
        weights = [[0] * (len(prompt) - 1) + mask for prompt, mask in zip(ids, masks, strict=True)]
        return [row[:1] for row in joined], [row[1:] for row in joined], weights, None, []

    def _writes(self) -> bool:
        """Whether the model writes the answers of this step; held-out rows are as the store says.

        Drawn by seed and step, so all processes and a resumed training draw the same.
        """
        if not self.model.training or self.lmbda in (0, 1):
            return bool(self.model.training and self.lmbda)
        draw = np.random.default_rng([self.args.seed, self.state.global_step])
        return bool(draw.random() < self.lmbda)


def _divergence(student: torch.Tensor, teacher: torch.Tensor, beta: float) -> torch.Tensor:
    """The generalised Jensen-Shannon divergence of log-probabilities, a number for each token."""
    if beta == 0:
        return (teacher.exp() * (teacher - student)).sum(-1)
    if beta == 1:
        return (student.exp() * (student - teacher)).sum(-1)
    middle = torch.log(beta * teacher.exp() + (1 - beta) * student.exp())
    parts = beta * teacher.exp() * (teacher - middle)
    return (parts + (1 - beta) * student.exp() * (student - middle)).sum(-1)
