"""What does not go with a distillation, each refused in one sentence."""

from __future__ import annotations

from collections.abc import Iterator

from adp.trainers.config import TINY, TrainConfig
from adp.trainers.config_methods import DistillSection

_IGNORED = ("chat_template_kwargs", "max_tool_calling_iterations", "teacher_model_init_kwargs",
            "shuffle_dataset", "label_smoothing_factor", "log_completions",
            "num_completions_to_print", "log_unique_prompts")  # fmt: skip
"""Fields that TRL's trainer takes no notice of, or that are about prompts as texts."""


def distill_faults(config: TrainConfig) -> Iterator[str]:
    """All faults of a configuration of the method ``distill``, one sentence each.

    Args:
        config: the run.
    """
    if config.method != "distill":
        return
    teacher = config.distill.teacher_model_name_or_path
    if teacher is None:
        yield (
            "say whose probabilities are learnt: --teacher MODEL, a folder or a name on the Hub "
            "(distill.teacher_model_name_or_path)"
        )
    if teacher == TINY:
        yield (
            "the teacher tiny has random weights and nothing to teach; train one first (adp train "
            "sft STORE --model tiny -o TEACHER), and give its folder"
        )
    if config.training.train_sampling_strategy == "group_by_length":
        yield (
            "TRL's DistillationTrainer takes no notice of train_sampling_strategy: "
            "group_by_length; use random or sequential"
        )
    if config.launch.zero:
        yield (
            "distill was not tried with ZeRO, which would have to split the teacher, too; use "
            "--launch alone"
        )
    yield from _other(config)


def _other(config: TrainConfig) -> Iterator[str]:
    """Fields of ``training.other`` that have another place, or no effect."""
    for name in config.training.other:
        if name in DistillSection.model_fields:
            yield (f"training.other does not take {name}: it has its own place, distill.{name}")
        elif name in _IGNORED:
            yield (
                f"training.other.{name} would have no effect: rows are tokens already, and TRL's "
                "DistillationTrainer does not ask for it; leave it out"
            )
        elif name == "use_vllm" or name.startswith("vllm_"):
            yield (
                f"training.other.{name}: the model writes with transformers here, where it stops "
                "at all of its end tokens; leave it out"
            )
