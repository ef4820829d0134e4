"""The teacher of a distillation: whether it fits, and loading it."""

from __future__ import annotations

from typing import Any

from adp.rendering.model import load_tokenizer
from adp.rollouts.policies.loading import load_for_generation, load_tokenizer_of, places
from adp.rollouts.policies.settings import ModelSettings
from adp.trainers.config import TrainConfig
from adp_schema.errors import UsageError


def teacher_settings(config: TrainConfig) -> ModelSettings:
    """Which model the teacher is, and how it is loaded.

    Args:
        config: a run with a teacher.
    """
    section, model = config.distill, config.model
    assert section.teacher_model_name_or_path is not None
    return ModelSettings(
        model=section.teacher_model_name_or_path,
        revision=section.teacher_model_revision,
        dtype=section.teacher_dtype or model.dtype or "auto",
        device="cpu" if config.training.use_cpu else None,
        attn_implementation=model.attn_implementation,
        trust_remote_code=model.trust_remote_code,
    )


def load_teacher(config: TrainConfig) -> Any:
    """Load the teacher, with its adapter merged into it; none of its weights is trained.

    Args:
        config: a run with a teacher.

    Raises:
        UsageError: there is no such model, or it cannot be loaded.
    """
    model, _ = load_for_generation(teacher_settings(config))
    return model.requires_grad_(False)


def check_teacher(config: TrainConfig) -> list[str]:
    """Check that teacher and model have one vocabulary; no model is loaded.

    Args:
        config: a run with a teacher.

    Returns:
        Warnings, one sentence each.

    Raises:
        UsageError: they have not, or the teacher has no tokenizer.
    """
    settings, model = teacher_settings(config), config.model
    teacher = load_tokenizer_of(settings)
    student = load_tokenizer(
        model.tokenizer_name_or_path or model.model_name_or_path,
        trust_remote_code=model.trust_remote_code,
    )
    theirs, ours = teacher.get_vocab(), student.get_vocab()
    other = min(theirs.items() ^ ours.items(), key=lambda item: (item[1], item[0]), default=None)
    if other is not None:
        raise UsageError(
            f"the teacher has another vocabulary ({len(theirs):,} tokens) than the model "
            f"({len(ours):,}): they differ from the id {other[1]:,} on, and distillation compares "
            "probabilities of the same tokens; take a teacher of the same family, or train on what "
            "the teacher writes: adp collect with it, then adp train sft"
        )
    _check_width(config, settings)
    if teacher.chat_template != student.chat_template:
        return [
            "the teacher has another chat template than the model, in whose template the rows are: "
            "it judges conversations in a form that it may not know"
        ]
    return []


def _check_width(config: TrainConfig, settings: ModelSettings) -> None:
    """Check that both heads have as many rows: they may be more than the tokens."""
    theirs = _width(places(settings)[0], settings.revision, settings.trust_remote_code)
    model = config.model
    ours = None
    if not config.is_tiny:
        ours = _width(model.model_name_or_path, model.model_revision, model.trust_remote_code)
    if theirs is not None and ours is not None and theirs != ours:
        raise UsageError(
            f"the head of the teacher has {theirs:,} rows and that of the model {ours:,}, although "
            "their tokens are the same: TRL compares row by row; resize the embeddings of one of "
            "them (resize_token_embeddings of transformers), or take another teacher"
        )


def _width(name: str, revision: str | None, trust_remote_code: bool) -> int | None:
    """Rows of a model's head, by its configuration; None when that is not at hand."""
    from transformers import AutoConfig

    try:
        shape = AutoConfig.from_pretrained(
            name, revision=revision, trust_remote_code=trust_remote_code
        )
    except (OSError, ValueError):
        return None  # loading the model will say what is wrong
    size = getattr(shape.get_text_config(), "vocab_size", None)
    return size if isinstance(size, int) else None
