"""The configuration of a training run: what stands in ``train.yaml``, checked word by word.

    method: sft
    model: {model_name_or_path: Qwen/Qwen3-8B}
    data: {store: dataset/train, eval_store: dataset/eval}
    render: {max_length: 16384, window: sliding}
    lora: {r: 64, lora_alpha: 32}
    training: {num_train_epochs: 2, per_device_train_batch_size: 1, packing: true}

Names are those of TRL, PEFT and transformers. `adp.trainers.config_file` reads it,
`adp.trainers.readers` reads the files of other systems, `adp.trainers.incompatible` refuses what
does not fit together.
"""

from __future__ import annotations

import copy
import json
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from adp.rendering.options import RenderOptions
from adp.trainers.config_data import DataSection
from adp.trainers.config_methods import (
    DistillSection,
    DpoSection,
    GrpoSection,
    KtoSection,
    RewardSection,
)
from adp.trainers.config_run import (
    EvaluateSection,
    LaunchSection,
    ReportSection,
    StoppingSection,
)
from adp.trainers.config_section import ConfigSection, made
from adp_schema.ids import digest

Method = Literal["sft", "dpo", "kto", "grpo", "reward", "distill"]
Dtype = Literal["auto", "float32", "bfloat16", "float16"]

ABSENT = {
    "ppo": "TRL 1.16 has no PPO any more, also not among its experiments; grpo learns from rewards "
    "without a model of values",
    "rm": "a reward model is method: reward",
    "rloo": "RLOO differs from GRPO in how advantages are made: grpo with grpo.scale_rewards: none",
    "gkd": "it is method: distill, on TRL's DistillationTrainer, with the same lmbda and beta",
    "opd": "on-policy distillation is method: distill with distill.lmbda: 1",
    "distillation": "it is method: distill",
    "online_dpo": "TRL 1.16 has online DPO among its experiments, which change without notice",
}
"""Methods that people ask for and that there are not -> why, and what there is."""

TINY = "tiny"
"""The model that is built on the spot."""


class TinySection(ConfigSection):
    """Shape of the model ``tiny``, which is built on the spot with random weights."""

    architecture: Literal["qwen3", "llama"] = "qwen3"
    """Its architecture."""
    hidden_size: int = Field(default=64, ge=8)
    """Width."""
    intermediate_size: int = Field(default=128, ge=8)
    """Width inside a layer."""
    num_hidden_layers: int = Field(default=2, ge=1)
    """Layers."""
    num_attention_heads: int = Field(default=4, ge=1)
    """Heads."""
    num_key_value_heads: int = Field(default=2, ge=1)
    """Heads of keys and values."""
    max_position_embeddings: int = Field(default=32768, ge=16)
    """Longest row."""
    tie_word_embeddings: bool = False
    """One matrix for input and output."""
    seed: int = Field(default=0, ge=0)
    """Seed of the weights."""


class ModelSection(ConfigSection):
    """The model that is trained."""

    model_name_or_path: str = TINY
    """A folder, a name on the Hub, or tiny: a small one made on the spot."""
    model_revision: str | None = None
    """Revision on the Hub."""
    adapter_name_or_path: str | None = None
    """A LoRA adapter to go on with. It is trained further; DPO and KTO take the adapter as it
    was for their reference."""
    tokenizer_name_or_path: str | None = None
    """Another tokenizer; null: the model's own."""
    trust_remote_code: bool = False
    """Run code that lies beside the model."""
    dtype: Dtype | None = None
    """Type of the weights. null: as they are stored; float32 for full fine-tuning without ZeRO,
    because small steps vanish in weights of 16 bits."""
    attn_implementation: str | None = None
    """sdpa, eager, flash_attention_2, ...; null: what transformers chooses."""
    load_in_4bit: bool = False
    """Load the weights in 4 bits (QLoRA)."""
    load_in_8bit: bool = False
    """Load the weights in 8 bits."""
    bnb_4bit_quant_type: Literal["nf4", "fp4"] = "nf4"
    """Form of 4 bits."""
    bnb_4bit_compute_dtype: Dtype = "bfloat16"
    """Type of the computation."""
    use_bnb_nested_quant: bool = True
    """Quantise the constants, too."""
    device_map: str | None = None
    """How layers are spread over devices."""
    tiny: TinySection = Field(default_factory=made(TinySection))
    """Shape of tiny."""


class LoraSection(ConfigSection):
    """A LoRA adapter, under PEFT's names. ``lora: null`` trains all weights."""

    r: int = Field(default=16, ge=1)
    """Rank."""
    lora_alpha: int = Field(default=32, ge=1)
    """Scale: alpha / r, with rsLoRA alpha / sqrt(r)."""
    lora_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout before the adapter."""
    target_modules: str | tuple[str, ...] = "all-linear"
    """Names of modules, a regular expression, or all-linear."""
    exclude_modules: tuple[str, ...] | None = None
    """Names of modules that get no adapter."""
    modules_to_save: tuple[str, ...] | None = None
    """Modules that are trained as a whole and saved with the adapter."""
    bias: Literal["none", "all", "lora_only"] = "none"
    """Biases to train."""
    use_dora: bool = False
    """DoRA: direction and size apart."""
    use_rslora: bool = False
    """rsLoRA: the scale is alpha / sqrt(r)."""
    init_lora_weights: str | bool = True
    """true, gaussian, pissa, pissa_niter_16, olora, orthogonal. pissa and olora change the base;
    the adapter is converted on saving, so that it fits the original."""
    loraplus_lr_ratio: float | None = Field(default=None, gt=0)
    """LoRA+: learning rate of B over that of A, such as 16."""
    loraplus_lr_embedding: float = Field(default=1e-6, gt=0)
    """LoRA+: learning rate of embeddings."""

    @field_validator("init_lora_weights")
    @classmethod
    def _known(cls, value: str | bool) -> str | bool:
        known = ("gaussian", "pissa", "olora", "orthogonal")
        good = isinstance(value, bool) or value in known
        if not good and not str(value).removeprefix("pissa_niter_").isdigit():
            raise ValueError(f"takes true, {', '.join(known)} or pissa_niter_N, not {value!r}")
        return value

    @property
    def changes_base(self) -> bool:
        """Whether the base model's weights are changed before the training."""
        return str(self.init_lora_weights).startswith(("pissa", "olora"))


class TrainingSection(ConfigSection):
    """How it is trained, under the names of TRL's configurations."""

    num_train_epochs: float = Field(default=1.0, gt=0)
    """Passes over the data."""
    max_steps: int = Field(default=-1, ge=-1)
    """Steps instead of epochs; -1: by epochs."""
    per_device_train_batch_size: int = Field(default=1, ge=1)
    """Rows of a process at once."""
    per_device_eval_batch_size: int = Field(default=1, ge=1)
    """The same while measuring."""
    gradient_accumulation_steps: int = Field(default=8, ge=1)
    """Batches for one step."""
    learning_rate: float | None = Field(default=None, gt=0)
    """null: 2e-4 for SFT with LoRA and 2e-5 without, 1e-4 and 1e-5 for reward models, 5e-6 and
    1e-6 for the other methods."""
    lr_scheduler_type: str = "cosine"
    """How the learning rate falls."""
    warmup_steps: float = Field(default=0.03, ge=0)
    """Steps to warm up; below 1 it is a share of all steps."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Weight decay."""
    max_grad_norm: float = Field(default=1.0, ge=0)
    """Gradients are cut to this norm."""
    optim: str = "adamw_torch"
    """Optimiser, by its name in transformers."""
    adam_beta1: float = Field(default=0.9, ge=0, lt=1)
    """Beta 1 of Adam."""
    adam_beta2: float = Field(default=0.999, ge=0, lt=1)
    """Beta 2 of Adam."""
    adam_epsilon: float = Field(default=1e-8, gt=0)
    """Epsilon of Adam."""
    bf16: bool | Literal["auto"] = "auto"
    """Compute in bfloat16. auto: where the GPU or the processor has instructions for it, else in
    float32; true: also where it is emulated, with a warning; null is auto."""
    fp16: bool = False
    """Compute in float16."""
    tf32: bool | None = None
    """Let float32 products use TF32; null: torch's."""
    gradient_checkpointing: bool = True
    """Compute activations twice to save memory."""
    packing: bool = False
    """SFT: put several rows into one, none of which sees another."""
    packing_strategy: Literal["bfd", "bfd_split", "wrapped"] = "bfd"
    """bfd: best fit decreasing; the others cut rows and are refused."""
    train_sampling_strategy: Literal["random", "sequential", "group_by_length"] = "random"
    """Order of the rows; KTO takes them as they are."""
    loss_type: Literal["nll", "dft"] = "nll"
    """SFT: the loss."""
    seed: int = Field(default=42, ge=0, lt=1 << 32)
    """Seed of all that is random."""
    logging_steps: int = Field(default=1, ge=1)
    """Steps between two lines of the log."""
    save_strategy: Literal["no", "steps", "epoch"] = "steps"
    """When a checkpoint to go on from is written."""
    save_steps: int = Field(default=100, ge=1)
    """Steps between two checkpoints."""
    save_total_limit: int | None = Field(default=2, ge=1)
    """Checkpoints that are kept."""
    save_only_model: bool = False
    """Checkpoints without optimiser: smaller, but none can be resumed."""
    eval_strategy: Literal["no", "steps", "epoch"] | None = None
    """When the loss is measured; null: after each epoch, if there is data."""
    eval_steps: int | None = Field(default=None, ge=1)
    """Steps between two measurements."""
    use_cpu: bool = False
    """Train on the CPU also where there is a GPU."""
    full_determinism: bool = False
    """Only kernels that give the same bits each time; slower on a GPU."""
    dataloader_num_workers: int = Field(default=0, ge=0)
    """Processes that read rows."""
    other: dict[str, Any] = Field(default_factory=dict)
    """Further fields of TRL's configuration, by name."""

    @field_validator("bf16", mode="before")
    @classmethod
    def _auto(cls, value: Any) -> Any:
        # Files of other systems, and of earlier versions, say null.
        return "auto" if value is None else value

    @field_validator("save_strategy", "eval_strategy", mode="before")
    @classmethod
    def _no(cls, value: Any) -> Any:
        # YAML reads a bare no as false.
        return "no" if value is False else value


class TrainConfig(ConfigSection):
    """A training run."""

    method: Method = "sft"
    """sft, dpo, kto, grpo, reward or distill."""
    output_dir: str | None = None
    """Where the result goes; relative to the configuration. -o wins."""
    model: ModelSection = Field(default_factory=made(ModelSection))
    """The model."""
    data: DataSection = Field(default_factory=made(DataSection))
    """What is trained on."""
    render: RenderOptions = Field(default_factory=made(RenderOptions))
    """How trajectories become tokens, and how long a row may be."""
    lora: LoraSection | None = Field(default_factory=made(LoraSection))
    """The adapter; null: train all weights."""
    training: TrainingSection = Field(default_factory=made(TrainingSection))
    """How it is trained."""
    dpo: DpoSection = Field(default_factory=made(DpoSection))
    """Only for method dpo."""
    kto: KtoSection = Field(default_factory=made(KtoSection))
    """Only for method kto."""
    grpo: GrpoSection = Field(default_factory=made(GrpoSection))
    """Only for method grpo."""
    reward: RewardSection = Field(default_factory=made(RewardSection))
    """Only for method reward."""
    distill: DistillSection = Field(default_factory=made(DistillSection))
    """Only for method distill."""
    launch: LaunchSection = Field(default_factory=made(LaunchSection))
    """Processes."""
    report: ReportSection = Field(default_factory=made(ReportSection))
    """What is written."""
    evaluate: EvaluateSection | None = None
    """Tasks that the model is tried on during the training; null: none."""
    early_stopping: StoppingSection | None = None
    """When to stop early; null: never."""

    @field_validator("method", mode="before")
    @classmethod
    def _absent(cls, value: Any) -> Any:
        if isinstance(value, str) and value.lower() in ABSENT:
            raise ValueError(f"there is no {value} here: {ABSENT[value.lower()]}")
        return value

    @field_validator("model", mode="before")
    @classmethod
    def _short_model(cls, value: Any) -> Any:
        return {"model_name_or_path": value} if isinstance(value, str) else value

    @field_validator("data", mode="before")
    @classmethod
    def _short_data(cls, value: Any) -> Any:
        return {"store": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _fits(self) -> TrainConfig:
        data = self.data
        if data.eval_share and (data.eval_store or data.eval_splits):
            raise ValueError("give data.eval_share, or data.eval_store and eval_splits, not both")
        if data.eval_splits and not data.eval_store and data.splits is None:
            raise ValueError("with data.eval_splits say by data.splits what is trained on")
        return self

    @property
    def evaluates(self) -> bool:
        """Whether there is something to measure the loss on."""
        data = self.data
        return bool(data.eval_store or data.eval_splits or data.eval_share)

    @property
    def learning_rate(self) -> float:
        """The learning rate, with the default of the method."""
        if self.training.learning_rate is not None:
            return self.training.learning_rate
        if self.method == "sft":
            return 2e-5 if self.lora is None else 2e-4
        if self.method == "reward":
            return 1e-5 if self.lora is None else 1e-4
        return 1e-6 if self.lora is None else 5e-6

    @property
    def is_tiny(self) -> bool:
        """Whether the model is built on the spot."""
        return self.model.model_name_or_path == TINY

    def resolved(self) -> TrainConfig:
        """The same with what one section takes from another: rows for tiny fit into it."""
        given: dict[str, Any] = {}
        if self.is_tiny and self.render.max_length is None:
            given["max_length"] = self.model.tiny.max_position_embeddings
        if self.model.trust_remote_code:
            given["trust_remote_code"] = True
        render = self.render.model_copy(update=given)
        return self.model_copy(update={"render": render}) if given else self

    def plain(self) -> dict[str, Any]:
        """As it stands in a file, with all options; without the sections of other methods."""
        fields = self.model_dump(mode="json")
        for name in ("dpo", "kto", "grpo", "reward", "distill"):
            if name != self.method:
                del fields[name]
        return fields

    def hash(self) -> str:
        """Hash of what decides the result: not where it is read from and written to."""
        plain = self.plain()
        for section, names in {"data": ("store", "eval_store", "workers")}.items():
            for name in names:
                del plain[section][name]
        if plain["data"]["make"] is None:
            del plain["data"]["make"]  # runs of earlier versions keep their hash
        replay = plain["data"].pop("replay")
        if replay is not None:
            plain["replay"] = {**replay, "store": None}
        del plain["output_dir"], plain["report"]
        # Machines of one run differ in their number alone.
        del plain["launch"]["machine_rank"]
        return digest(json.dumps(plain, sort_keys=True, ensure_ascii=False).encode())


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the configuration, for editors."""
    schema = copy.deepcopy(TrainConfig.model_json_schema())
    for name in ("model", "data"):
        child = schema["properties"][name]
        text = child.pop("description", "")
        schema["properties"][name] = {
            "description": text,
            "anyOf": [{"type": "string"}, child],
        }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
