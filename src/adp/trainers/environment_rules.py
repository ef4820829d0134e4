"""What does not go with a model that acts in an environment, each refused in one sentence."""

from __future__ import annotations

from collections.abc import Iterator

from adp.rollouts.collecting.branching.settings import read_branching
from adp.trainers.config import TrainConfig
from adp_schema.errors import UsageError

_IGNORED = ("min_p", "repetition_penalty", "generation_kwargs", "cache_implementation",
            "use_transformers_continuous_batching", "num_generations_eval")  # fmt: skip
"""Fields of TRL that say how it writes answers; the model acts by our own code."""


def environment_faults(config: TrainConfig) -> Iterator[str]:
    """All faults of a configuration with ``grpo.environment``, one sentence each.

    Args:
        config: the run.
    """
    grpo, training = config.grpo, config.training
    if config.method != "grpo" or grpo.environment is None:
        return
    if config.evaluates:
        yield (
            "data.eval_store, eval_splits and eval_share measure a loss, and an environment has "
            "none; leave them out, and judge the model with adp eval"
        )
    if grpo.max_prompt_length is not None:
        yield (
            "grpo.max_prompt_length is for single answers; in an environment render.max_length "
            "bounds what the model reads and writes"
        )
    if grpo.mask_truncated_completions:
        yield (
            "grpo.mask_truncated_completions is for single answers; set grpo.environment.truncated "
            "to mask"
        )
    if training.dataloader_num_workers:
        yield "training.dataloader_num_workers reads rows ahead, and there are none; leave it out"
    yield from _branching(config)
    ignored = [name for name in _IGNORED if name in training.other]
    if ignored and not grpo.use_vllm:
        yield f"training.other.{ignored[0]} is not for a model that acts; leave it out"
    yield from _processes(config)


def _branching(config: TrainConfig) -> Iterator[str]:
    section = config.grpo.environment
    if section is None or section.branching is None:
        return
    try:
        read_branching(section.branching)
    except UsageError as error:
        yield str(error).replace("--branching", "grpo.environment.branching")
    if config.grpo.use_vllm:
        yield (
            "grpo.environment.branching asks how likely other tokens were, and the trainer's vLLM "
            "hands over that of the chosen one alone; set grpo.use_vllm: false"
        )


def _processes(config: TrainConfig) -> Iterator[str]:
    grpo, training = config.grpo, config.training
    count = config.launch.processes
    if grpo.use_vllm and grpo.vllm_mode == "server" and count > 1:
        yield (
            "a vLLM server answers all processes together, and episodes ask at different times; "
            "use one process, or grpo.vllm_mode: colocate"
        )
    if grpo.use_vllm and training.other.get("vllm_tensor_parallel_size", 1) > 1:
        yield (
            "with vllm_tensor_parallel_size all processes ask vLLM together, and episodes ask at "
            "different times; leave it out"
        )
    accumulated = training.gradient_accumulation_steps
    rounds = training.other.get("steps_per_generation") or accumulated
    together = training.per_device_train_batch_size * rounds
    if count > 1 and together % grpo.num_generations:
        yield (
            f"a group of {grpo.num_generations} episodes does not fit into the {together} of a "
            "process (per_device_train_batch_size * gradient_accumulation_steps), so one world "
            "would be split over processes; change one of them"
        )
