"""TRL's GRPOTrainer for a model that acts in an environment.

TRL's ``rollout_func`` is the door: it hands over the prompts of a batch and takes rows of tokens
with a mask. In it the episodes are played as by `adp collect`, with the model that is trained. What
TRL does with rows, rewards and advantages is unchanged.
Only `adp.trainers.grpo_environment` imports this module, inside a function.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch  # noqa: TID253 - this module subclasses TRL's trainer
from trl import GRPOTrainer  # noqa: TID253
from trl.models import unwrap_model_for_generation  # noqa: TID253

from adp.rollouts.policies.generation import Generator, TurnGenerator
from adp.rollouts.policies.transformers import TransformersPolicy, TransformersSettings
from adp.trainers.rollouts.batch import PlayedBatch, RolloutMaker
from adp.trainers.rollouts.reward import RewardStage
from adp.trainers.rollouts.rollout_store import RolloutStore, TrainedRollout
from adp.trainers.rollouts.vllm_turns import VllmTurns
from adp.trainers.trl_order import KeptOrder
from adp.trainers.trl_preference import Exact


class EnvironmentGRPOTrainer(Exact, KeptOrder, GRPOTrainer):  # type: ignore[misc]
    """GRPOTrainer whose rows are episodes in an environment.

    Args:
        maker: plays the episodes.
        acting: how the model acts, and the tokenizer that its prompts are written with.
        kept: where the episodes are kept; None: nowhere.
        **given: arguments of GRPOTrainer.
    """

    def __init__(
        self,
        *,
        maker: RolloutMaker,
        acting: tuple[TransformersSettings, Any],
        kept: RolloutStore | None,
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self._maker, self._kept = maker, kept
        self._acting, self._prompt_tokenizer = acting
        self._batch: PlayedBatch | None = None
        self._inputs: Sequence[dict[str, Any]] = ()
        self._fault: Exception | None = None
        self._loaded = -1
        # Given to TRL's __init__ it would only warn that it may change.
        self.rollout_func = _play

    def play(self) -> dict[str, Any]:
        """Play the episodes of the batch that TRL is at; what a ``rollout_func`` returns."""
        step, training = self.state.global_step, self.model.training
        with self._ready_to_act() as model:
            batch = self._maker.play(
                self._inputs, step, lambda: self._policy(model), training=training
            )
        self._batch = batch
        for name, values in batch.metrics().items():
            for value in values:
                self._log_metric(name, value)
        rows = batch.rows
        return {
            "prompt_ids": [row.prompt_ids for row in rows],
            "completion_ids": [row.completion_ids for row in rows],
            "logprobs": [row.logprobs for row in rows],
            "env_mask": [row.mask for row in rows],
            "rollout": batch.rollouts,
            "stage": RewardStage(step, self.state.max_steps, training),
        }

    def _policy(self, model: Any) -> TransformersPolicy:
        """The model as it is now: nothing is kept of what it read with other weights."""

        def writer(ends: frozenset[int]) -> TurnGenerator:
            if self.use_vllm:
                context = self._acting.context_length
                return VllmTurns(self.vllm_generation, ends, context, self._fault)
            memory = self._acting.prefix_cache_mb << 20
            # TRL compares with log probabilities at the temperature.
            return Generator(
                model, ends, self._acting, memory, tempered=True, entropies=self._acting.entropies
            )

        return TransformersPolicy(self._acting, model, self._prompt_tokenizer, writer)

    @contextmanager
    def _ready_to_act(self) -> Iterator[Any]:
        """The model without what training puts around it, and without dropout."""
        with (
            unwrap_model_for_generation(
                self.model_wrapped,
                self.accelerator,
                gather_deepspeed3_params=self.args.ds3_gather_for_generation,
                gradient_checkpointing_kwargs=self.args.gradient_checkpointing_kwargs,
            ) as model,
            torch.no_grad(),
            self._dist.summon_full_params(self.model_wrapped, recurse=False),
        ):
            training = model.training
            model.eval()
            try:
                yield model
            finally:
                model.train(training)

    # ---- what TRL calls ---------------------------------------------------------------------

    def _generate(self, prompts: list[Any]) -> Any:
        if self.use_vllm:
            step = self.state.global_step
            if step != self._loaded:
                self._fault = _fault_of(self.vllm_generation.sync_weights)
                self._loaded = step if self._fault is None else -1
            # TRL would do it again, and end the training when the server does not answer.
            self._last_loaded_step = step
        return super()._generate(prompts)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Any:
        self._inputs = inputs
        output = super()._generate_and_score_completions(inputs)
        self._weigh(output)
        self._keep(output["advantages"])
        return output

    def _weigh(self, output: dict[str, Any]) -> None:
        """Let tokens that several rows have in common count as is asked for."""
        if self._batch is None or self._batch.weights is None:
            return
        mask = output["tool_mask"].float()
        for row, weights in zip(mask, self._batch.weights, strict=True):
            row[: len(weights)] = torch.tensor(weights, device=mask.device)
        output["tool_mask"] = mask
        count = (output["completion_mask"] * mask).sum()
        output["num_items_in_batch"] = self.accelerator.gather(count).sum()

    def _calculate_rewards(self, *given: Any) -> Any:
        # TRL warns of each row without a reward; those that broke are counted.
        log = logging.getLogger("trl.trainer.grpo_trainer")
        level = log.level
        log.setLevel(logging.ERROR)
        try:
            self._rewards = super()._calculate_rewards(*given)
        finally:
            log.setLevel(level)
        return self._rewards

    def _keep(self, advantages: torch.Tensor) -> None:
        """Keep the episodes of this process, with their rewards and advantages."""
        batch = self._batch
        if self._kept is None or batch is None:
            return
        first = self.accelerator.process_index * len(batch.rows)
        rewards = self._rewards[first : first + len(batch.rows)].tolist()
        weights = self.reward_weights.tolist()
        self._kept.keep(
            TrainedRollout(
                rollout.trajectory,
                {**batch.facts(place), "reward": _weighed(_known(rewards[place]), weights)},
                dict(zip(self.reward_func_names, _known(rewards[place]), strict=True)),
                float(advantages[place]),
            )
            for place, rollout in enumerate(batch.rollouts)
        )
        self._batch = None


def _play(prompts: list[Any], trainer: EnvironmentGRPOTrainer) -> dict[str, Any]:
    """TRL's ``rollout_func``; the prompts stand for the rows that the trainer knows."""
    return trainer.play()


def _known(values: Sequence[float]) -> list[float | None]:
    """Rewards without what does not apply."""
    return [None if value != value else value for value in values]


def _weighed(rewards: Sequence[float | None], weights: Sequence[float]) -> float | None:
    """The sum of rewards by their weights, as TRL takes it; None where none applies."""
    known = [
        reward * weight
        for reward, weight in zip(rewards, weights, strict=True)
        if reward is not None
    ]
    return sum(known) if known else None


def _fault_of(call: Callable[[], Any]) -> Exception | None:
    """What a call raises."""
    try:
        call()
    except Exception as error:  # of a server, an engine, or a network
        return error
    return None
