"""The sections of a training configuration that belong to one method: DPO, KTO, GRPO.

Names and meanings are those of TRL's ``DPOConfig``, ``KTOConfig`` and ``GRPOConfig``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

DpoLoss = Literal[
    "sigmoid", "hinge", "ipo", "exo_pair", "nca_pair", "robust", "bco_pair", "sppo_hard", "aot",
    "aot_unpaired", "apo_zero", "apo_down", "discopop", "sft", "sigmoid_norm",
]  # fmt: skip

Divergence = Literal["reverse_kl", "forward_kl", "js_divergence", "alpha_divergence"]


class Section(BaseModel):
    """A section of the configuration: unknown names are errors, and nothing changes later."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


Made = TypeVar("Made", bound=BaseModel)


def made(kind: type[Made]) -> Callable[[], Made]:
    """What makes a section with all its defaults."""
    return lambda: kind.model_validate({})


class DpoSection(Section):
    """Direct preference optimisation."""

    loss_type: tuple[DpoLoss, ...] = Field(
        ("sigmoid",), min_length=1, description="Losses that are added up, by their names in TRL."
    )
    loss_weights: tuple[float, ...] | None = Field(
        None, description="Weight of each loss; null: 1 each."
    )
    beta: float = Field(0.1, ge=0, description="How strongly the policy is held to the reference.")
    label_smoothing: float = Field(
        0.0, ge=0, lt=0.5, description="Chance that a pair is the wrong way round."
    )
    ld_alpha: float | None = Field(
        None,
        ge=0,
        le=1,
        description="LD-DPO: weight of the tokens by which one side is longer than the other.",
    )
    f_divergence_type: Divergence = Field("reverse_kl", description="Divergence to the reference.")
    f_alpha_divergence_coef: float = Field(0.5, description="Alpha of alpha_divergence.")
    discopop_tau: float = Field(0.05, gt=0, description="Temperature of discopop.")
    use_weighting: bool = Field(False, description="Weigh pairs by the policy (WPO).")
    disable_dropout: bool = Field(True, description="Train without dropout.")
    precompute_ref_log_probs: bool = Field(
        False, description="Compute the reference's probabilities once, before the training."
    )
    precompute_ref_batch_size: int | None = Field(
        None, ge=1, description="Batch size of that; null: the batch size of training."
    )
    ref_model_name_or_path: str | None = Field(
        None,
        description="A model as the reference. null: the model as it is before this training, "
        "with the adapter that the training begins with.",
    )
    sync_ref_model: bool = Field(False, description="Move the reference towards the policy.")
    ref_model_mixup_alpha: float = Field(0.6, ge=0, le=1, description="Share of that move.")
    ref_model_sync_steps: int = Field(512, ge=1, description="Steps between two moves.")


class KtoSection(Section):
    """Kahneman-Tversky optimisation: single trajectories that are good or bad."""

    loss_type: Literal["kto", "apo_zero_unpaired"] = Field("kto", description="The loss.")
    beta: float = Field(0.1, ge=0, description="How strongly the policy is held to the reference.")
    desirable_weight: float = Field(1.0, ge=0, description="Weight of good ones.")
    undesirable_weight: float = Field(1.0, ge=0, description="Weight of bad ones.")
    disable_dropout: bool = Field(True, description="Train without dropout.")
    precompute_ref_log_probs: bool = Field(
        False, description="Compute the reference's probabilities once, before the training."
    )
    ref_model_name_or_path: str | None = Field(
        None,
        description="A model as the reference. null: the model as it is before this training, "
        "with the adapter that the training begins with.",
    )


class GrpoSection(Section):
    """Group relative policy optimisation: the model answers, rewards say how well."""

    rewards: tuple[str, ...] = Field(
        (), description="Names of the rewards that are added up; empty: those of the tasks."
    )
    reward_weights: tuple[float, ...] | None = Field(
        None, description="Weight of each reward; null: 1 each."
    )
    num_generations: int = Field(8, ge=2, description="Answers to a prompt.")
    max_prompt_length: int | None = Field(
        None, ge=1, description="Longer prompts are left out and counted; null: no limit."
    )
    max_completion_length: int = Field(512, ge=1, description="Tokens of an answer at most.")
    temperature: float = Field(1.0, gt=0, description="Temperature of sampling.")
    top_p: float = Field(1.0, gt=0, le=1, description="Share of the probability sampled from.")
    top_k: int = Field(0, ge=0, description="Number of tokens sampled from; 0: all.")
    beta: float = Field(0.0, ge=0, description="Weight of the divergence to the reference.")
    num_iterations: int = Field(1, ge=1, description="Steps on one batch of answers.")
    epsilon: float = Field(0.2, ge=0, description="Clipping of the ratio, downwards.")
    epsilon_high: float | None = Field(
        None, ge=0, description="Clipping upwards; null: the same as downwards."
    )
    loss_type: Literal[
        "grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo"
    ] = Field("dapo", description="How the loss of tokens is averaged.")  # fmt: skip
    scale_rewards: Literal["group", "batch", "none"] = Field(
        "group", description="What the advantages are divided by."
    )
    importance_sampling_level: Literal["token", "sequence"] = Field(
        "token", description="sequence: GSPO."
    )
    mask_truncated_completions: bool = Field(
        False, description="Leave answers that were cut off out of the loss."
    )
    use_vllm: bool = Field(False, description="Generate with vLLM; needs the extra vllm.")
    vllm_mode: Literal["colocate", "server"] = Field("colocate", description="Where vLLM runs.")
