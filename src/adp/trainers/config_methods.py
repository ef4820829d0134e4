"""The sections of a training configuration for single methods: DPO, KTO, GRPO and others.

Names and meanings are those of TRL's ``DPOConfig``, ``KTOConfig``, ``GRPOConfig`` and
``DistillationConfig``; ``lmbda`` is that of its ``GKDConfig``.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from adp.trainers.config_environment import EnvironmentSection
from adp.trainers.config_section import ConfigSection
from adp.trainers.losses import terms
from adp_schema.errors import UsageError

DpoLoss = Literal[
    "sigmoid", "hinge", "ipo", "exo_pair", "nca_pair", "robust", "bco_pair", "sppo_hard", "aot",
    "aot_unpaired", "apo_zero", "apo_down", "discopop", "sft", "sigmoid_norm", "orpo", "simpo",
]  # fmt: skip

Reference = Literal["start", "base"]
"""start: the model as it is before this training, with its adapter. base: without the adapter."""

Divergence = Literal["reverse_kl", "forward_kl", "js_divergence", "alpha_divergence"]


class DpoSection(ConfigSection):
    """Direct preference optimisation."""

    loss_type: tuple[DpoLoss, ...] = Field(default=("sigmoid",), min_length=1)
    """Losses that are added up, by their names in TRL; also orpo and simpo. M3's names stand in
    docs/dpo-losses.md."""
    loss_weights: tuple[float, ...] | None = None
    """Weight of each loss; null: 1 each."""
    beta: float = Field(default=0.1, ge=0)
    """How strongly the policy is held to the reference."""
    label_smoothing: float = Field(default=0.0, ge=0, lt=0.5)
    """Chance that a pair is the wrong way round."""
    ld_alpha: float | None = Field(default=None, ge=0, le=1)
    """LD-DPO: weight of the tokens by which one side is longer than the other."""
    f_divergence_type: Divergence = "reverse_kl"
    """Divergence to the reference."""
    f_alpha_divergence_coef: float = 0.5
    """Alpha of alpha_divergence."""
    discopop_tau: float = Field(default=0.05, gt=0)
    """Temperature of discopop."""
    simpo_gamma: float = Field(default=0.5, ge=0)
    """Margin of simpo."""
    use_weighting: bool = False
    """Weigh pairs by the policy (WPO)."""
    disable_dropout: bool = True
    """Train without dropout."""
    precompute_ref_log_probs: bool = False
    """Compute the reference's probabilities once, before the training."""
    precompute_ref_batch_size: int | None = Field(default=None, ge=1)
    """Batch size of that; null: the batch size of training."""
    reference: Reference = "start"
    """What the policy is compared with. start: the model as it is before this training, with the
    adapter that the training begins with; base: the model without it."""
    ref_model_name_or_path: str | None = None
    """Another model as the reference; null: as `reference` says."""
    sync_ref_model: bool = False
    """Move the reference towards the policy."""
    ref_model_mixup_alpha: float = Field(default=0.6, ge=0, le=1)
    """Share of that move."""
    ref_model_sync_steps: int = Field(default=512, ge=1)
    """Steps between two moves."""

    @field_validator("loss_type", mode="before")
    @classmethod
    def _single(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _terms(self) -> DpoSection:
        try:
            result = terms(self.loss_type, self.loss_weights, self.label_smoothing)
        except UsageError as error:
            raise ValueError(str(error)) from error
        _divergence(self.f_divergence_type, result.loss_type)
        return self

    @property
    def is_reference_free(self) -> bool:
        """Whether the loss compares with no reference."""
        return bool({"orpo", "simpo"} & set(self.loss_type))


def _divergence(kind: str, losses: tuple[str, ...]) -> None:
    other = set(losses) - {
        "sigmoid", "sigmoid_norm", "hinge", "ipo", "exo_pair", "robust", "discopop", "sft",
    }  # fmt: skip
    if kind != "reverse_kl" and other:
        raise ValueError(
            f"f_divergence_type: {kind} is not defined for {min(other)}; use reverse_kl"
        )


class KtoSection(ConfigSection):
    """Kahneman-Tversky optimisation: single trajectories that are good or bad."""

    rows: Literal["success", "reward", "pairs"] = "success"
    """What says which trajectories are good: their success, their reward and reward_threshold,
    or the side of a pair that they stand on."""
    reward_threshold: float = Field(default=0.5, allow_inf_nan=False)
    """rows: reward: good from this reward on."""
    loss_type: Literal["kto", "apo_zero_unpaired"] = "kto"
    """The loss."""
    beta: float = Field(default=0.1, ge=0)
    """How strongly the policy is held to the reference."""
    desirable_weight: float = Field(default=1.0, ge=0)
    """Weight of good ones."""
    undesirable_weight: float = Field(default=1.0, ge=0)
    """Weight of bad ones."""
    disable_dropout: bool = True
    """Train without dropout."""
    precompute_ref_log_probs: bool = False
    """Compute the reference's probabilities once, before the training."""
    precompute_ref_batch_size: int | None = Field(default=None, ge=1)
    """Batch size of that; null: the batch size of training."""
    reference: Reference = "start"
    """What the policy is compared with. start: the model as it is before this training, with the
    adapter that the training begins with; base: the model without it."""
    ref_model_name_or_path: str | None = None
    """Another model as the reference; null: as `reference` says."""


class RewardSection(ConfigSection):
    """A reward model: pairs teach it a number for a whole conversation."""

    center_rewards_coefficient: float | None = Field(default=None, ge=0)
    """Weight of the squared sum of both rewards, which holds them around 0 (Eisenstein et al.
    2023, eq. 2), such as 0.01."""
    disable_dropout: bool = True
    """Train without dropout."""


class DistillSection(ConfigSection):
    """Distillation: the model learns the probabilities of a teacher, token by token (GKD)."""

    teacher_model_name_or_path: str | None = None
    """The teacher: a folder of a model, of an adapter or of a run, or a name on the Hub. It has
    the vocabulary of the model. --teacher wins."""
    teacher_model_revision: str | None = None
    """Revision on the Hub."""
    teacher_dtype: Literal["auto", "float32", "bfloat16", "float16"] | None = None
    """Type of the teacher's weights; auto: as they are stored; null: model.dtype, else auto."""
    lmbda: float = Field(default=1.0, ge=0, le=1)
    """Share of the steps that train on what the model writes itself where a step of the store
    begins (on-policy). The others train on the step as the store has it. 0: whole rows of the
    store, as SFT has them."""
    beta: float = Field(default=1.0, ge=0, le=1)
    """The divergence: 0 is the forward KL(teacher || model), 1 the reverse KL(model || teacher),
    between them the generalised Jensen-Shannon divergence; 0.5 is the symmetric one."""
    temperature: float = Field(default=1.0, gt=0)
    """Temperature of sampling, and of both sides in the divergence."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Share of the probability sampled from."""
    top_k: int = Field(default=0, ge=0)
    """Number of tokens sampled from; 0: all."""
    max_completion_length: int = Field(default=512, ge=1)
    """Tokens that the model writes at most; what is cut off there is trained up to there."""
    disable_dropout: bool = False
    """Train without dropout."""


class GrpoSection(ConfigSection):
    """Group relative policy optimisation: the model answers, rewards say how well."""

    prompts: Literal["first", "steps"] = "first"
    """What is asked: the first messages of each task, or what the model saw before every trained
    step."""
    calls_from: Literal["logged", "task"] = "logged"
    """Calls that calls and calls_exact expect: those that the run made there, or those that the
    task names."""
    environment: EnvironmentSection | None = None
    """Where the model acts; null: it answers once, and no tool is called."""
    rewards: tuple[str, ...] = ()
    """Rewards that are added up. Of single answers: answer, calls, calls_exact, format, json,
    length. With an environment: environment (the default), scorer:NAME, and others of the
    registry, with settings as NAME:key=value,.... Of both: module:function of your own, which
    needs --allow-python."""
    length_buffer: int = Field(default=64, ge=1)
    """length: tokens before max_completion_length that cost reward."""
    reward_weights: tuple[float, ...] | None = None
    """Weight of each reward; null: 1 each."""
    num_generations: int = Field(default=8, ge=2)
    """Answers to a prompt; with an environment episodes of a task, all of them on one world."""
    max_prompt_length: int | None = Field(default=None, ge=1)
    """Longer prompts are left out and counted; null: no limit."""
    max_completion_length: int = Field(default=512, ge=1)
    """Tokens of an answer at most; with an environment of a turn."""
    temperature: float = Field(default=1.0, gt=0)
    """Temperature of sampling."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Share of the probability sampled from."""
    top_k: int = Field(default=0, ge=0)
    """Number of tokens sampled from; 0: all."""
    beta: float = Field(default=0.0, ge=0)
    """Weight of the divergence to the reference."""
    num_iterations: int = Field(default=1, ge=1)
    """Steps on one batch of answers."""
    epsilon: float = Field(default=0.2, ge=0)
    """Clipping of the ratio, downwards."""
    epsilon_high: float | None = Field(default=None, ge=0)
    """Clipping upwards; null: the same as downwards."""
    loss_type: Literal[
        "grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo"
    ] = Field(default="dapo", description="How the loss of tokens is averaged.")  # fmt: skip
    scale_rewards: Literal["group", "batch", "none"] = "group"
    """What the advantages are divided by."""
    importance_sampling_level: Literal["token", "sequence"] = "token"
    """sequence: GSPO."""
    mask_truncated_completions: bool = False
    """Leave answers that were cut off out of the loss; with an environment it is
    environment.truncated that says so."""
    use_vllm: bool = False
    """Generate with vLLM; needs the extra vllm, and is not tested."""
    vllm_mode: Literal["colocate", "server"] = "colocate"
    """Where vLLM runs."""
