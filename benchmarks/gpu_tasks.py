"""One measurement of gpu_train.py, in a process of its own: ``python gpu_tasks.py TASK '{...}'``.

Each task prints one line of JSON, after what the libraries say.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen3-8b": (
        "Qwen3Config",
        {"hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36,
         "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
         "vocab_size": 151936, "max_position_embeddings": 40960},
    ),
    "llama3.1-8b": (
        "LlamaConfig",
        {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
         "vocab_size": 128256, "max_position_embeddings": 131072},
    ),
    "qwen2.5-0.5b": (
        "Qwen2Config",
        {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
         "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936,
         "max_position_embeddings": 32768},
    ),
    "tiny": (
        "Qwen3Config",
        {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
         "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
         "vocab_size": 32768, "max_position_embeddings": 32768},
    ),
}  # fmt: skip
"""Configurations of models: their public shape, with random weights."""

RANK = 16


def number_format(device: str) -> str:
    """What both sides compute in: bfloat16 on a GPU that has it; a trial in float32."""
    from adp.trainers.precision import bf16_is_native

    return "bfloat16" if device != "cpu" and bf16_is_native(device) else "float32"


def build(shape: str, out: str, tokenizer: str, template: str, device: str) -> dict[str, Any]:
    """Write a model with random weights, and a tokenizer with a chat template."""
    import torch
    import transformers
    from render_tasks import template as text_of

    kind, values = SHAPES[shape]
    config = getattr(transformers, kind)(**values, tie_word_embeddings=False)
    dtype = getattr(torch, number_format(device))
    torch.manual_seed(0)
    with torch.device(device):
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
    model.save_pretrained(out)
    made = transformers.AutoTokenizer.from_pretrained(tokenizer)
    made.chat_template = text_of(template)
    made.save_pretrained(out)
    count = sum(parameter.numel() for parameter in model.parameters())
    embedding = model.get_input_embeddings().weight.numel()
    return {"parameters": count, "multiplied": count - embedding}


class Counter:
    """Counts the tokens of the steps of a trainer, and times them.

    ``seconds`` go from the end of one step to the end of the next: rows are read and padded, both
    passes, the optimizer, and the log. ``passes`` are those of both passes alone.

    Args:
        trainer: of transformers.
        warm: steps that do not count.
    """

    def __init__(self, trainer: Any, warm: int) -> None:
        self._warm = warm
        self._step = trainer.training_step
        self._done = 0
        self.seconds: list[float] = []
        self.passes: list[float] = []
        self.digests: list[str] = []
        self.slots = self.tokens = self.trained = 0
        self._ended = 0.0
        trainer.training_step = self
        trainer.add_callback(_clock(self))

    def ended(self) -> None:
        """Take the time at the end of a step."""
        wait()
        now = time.perf_counter()
        # The first steps allocate memory and choose kernels.
        if self._done > self._warm:
            self.seconds.append(now - self._ended)
        self._ended = now

    def __call__(self, model: Any, inputs: dict[str, Any], *more: Any, **named: Any) -> Any:
        counts = _counts(inputs)
        self.digests.append(_digest(inputs))
        wait()
        begun = time.perf_counter()
        loss = self._step(model, inputs, *more, **named)
        wait()
        self._done += 1
        if self._done > self._warm:
            self.passes.append(time.perf_counter() - begun)
            self.slots += counts[0]
            self.tokens += counts[1]
            self.trained += counts[2]
        return loss


def _clock(counter: Counter) -> Any:
    """A callback that tells a counter when a step is over, its optimizer included."""
    from transformers import TrainerCallback

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            counter.ended()

        def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            counter.ended()

    return Clock()


def _digest(inputs: dict[str, Any]) -> str:
    """A hash of the tokens of a batch, of which of them are trained, and of its padding."""
    named = hashlib.blake2b(digest_size=8)
    for name in sorted(inputs):
        if name in ("input_ids", "labels", "attention_mask", "position_ids", "completion_mask"):
            values = inputs[name].cpu()
            named.update(f"{name}{tuple(values.shape)}".encode())
            named.update(values.long().numpy().tobytes())
    return named.hexdigest()


def _counts(inputs: dict[str, Any]) -> tuple[int, int, int]:
    """Places in a batch, those that are no padding, and those under the loss."""
    ids = inputs["input_ids"]
    mask = inputs.get("attention_mask")
    filled = ids.numel() if mask is None else int(mask.sum())
    if "labels" in inputs:
        trained = int((inputs["labels"] != -100).sum())
    else:
        trained = int(inputs["completion_mask"].sum())
    return ids.numel(), filled, trained


def wait() -> None:
    """Until the GPU has done what it was told."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _arguments(job: dict[str, Any], out: Path) -> dict[str, Any]:
    """What both sides train with."""
    return {
        "output_dir": str(out / "checkpoints"),
        "per_device_train_batch_size": job["batch"],
        "gradient_accumulation_steps": 1,
        "max_steps": job["warm"] + job["steps"],
        "learning_rate": 1e-5,
        "lr_scheduler_type": "constant",
        "warmup_steps": 0,
        "bf16": number_format(job["device"]) == "bfloat16",
        "use_cpu": job["device"] == "cpu",
        "dataloader_pin_memory": job["device"] != "cpu",
        "save_strategy": "no",
        "eval_strategy": "no",
        "report_to": "none",
        "logging_steps": 1,
        "disable_tqdm": True,
        "seed": 1,
    }


def _ours(job: dict[str, Any], out: Path) -> Any:
    """The trainer that ``adp train`` builds."""
    from adp.trainers.arguments import common_arguments
    from adp.trainers.method import METHODS

    config, rows = _config(job, out), out / "rows"
    _prepare(config, rows)
    return METHODS.get(job["method"]).trainer(config, rows, common_arguments(config, out), [])


def _prepare(config: Any, rows: Path) -> None:
    """Write the rows of a run."""
    from adp.core.progress import Silent
    from adp.trainers.method import METHODS

    rows.mkdir(parents=True)
    METHODS.get(config.method).prepare(config, rows, Silent())


def _config(job: dict[str, Any], out: Path) -> Any:
    """The configuration of a run of ours."""
    from adp.trainers.config import TrainConfig

    same = (
        "per_device_train_batch_size", "gradient_accumulation_steps", "max_steps",
        "learning_rate", "lr_scheduler_type", "warmup_steps", "bf16", "use_cpu", "save_strategy",
        "logging_steps", "seed",
    )  # fmt: skip
    given = _arguments(job, out)
    packed = job["method"] == "sft" and not job["side"].endswith("padded")
    return TrainConfig.model_validate(
        {
            "method": job["method"],
            "model": {
                "model_name_or_path": job["model"],
                "attn_implementation": job["attention"],
            },
            "data": {"store": job["store"], "workers": 1},
            "render": {
                "max_length": job["window"],
                "window": "sliding" if job["method"] == "sft" else "drop",
                "overlap": 0,
            },
            "lora": {"r": RANK},
            "training": {"packing": packed, **{name: given[name] for name in same}},
        }
    )


def _rows(job: dict[str, Any], out: Path) -> Any:
    """The rows that ours is given; its trainer is not built."""
    from adp.trainers.rows import TRAIN, read_arrow

    config = _config({**job, "side": "ours-padded"}, out)
    rows = out / "rows"
    _prepare(config, rows)
    data = read_arrow(rows / TRAIN)
    assert data is not None
    return data


def _same(job: dict[str, Any], out: Path) -> Any:
    """TRL's own trainer on the very rows that ours is given: tokens, labels, padding or packs."""
    import trl
    from peft import LoraConfig

    if job["method"] == "dpo":
        return _same_pairs(job, out)
    padded = job["side"].endswith("padded")
    settings = trl.SFTConfig(
        **_arguments(job, out),
        max_length=None if padded else job["window"],
        packing=not padded,
        packing_strategy="bfd",
        model_init_kwargs={
            "dtype": number_format(job["device"]), "attn_implementation": job["attention"],
        },
    )  # fmt: skip
    return trl.SFTTrainer(
        model=job["model"],
        args=settings,
        train_dataset=_rows(job, out),
        peft_config=_adapter(LoraConfig),
    )


def _same_pairs(job: dict[str, Any], out: Path) -> Any:
    """TRL's own trainer on the pairs that ours is given: tokens, and which of them are trained.

    TRL has no door for pairs that are tokens already, so its preparation is passed over. Its own
    collator puts a batch together; what our rows do not train is then taken out of its mask.
    """
    import trl
    from peft import LoraConfig
    from trl.trainer.dpo_trainer import DataCollatorForPreference

    class OnTokens(trl.DPOTrainer):  # type: ignore[misc, name-defined]
        def _prepare_dataset(self, dataset: Any, *_more: Any, **_named: Any) -> Any:
            return dataset

    class Masked(DataCollatorForPreference):  # type: ignore[misc]
        def torch_call(self, examples: list[dict[str, Any]]) -> dict[str, Any]:
            batch: dict[str, Any] = super().torch_call(examples)
            mask = batch["completion_mask"]
            sides = [(row, side) for side in ("chosen", "rejected") for row in examples]
            for index, (row, side) in enumerate(sides):
                for place, trained in enumerate(row[f"{side}_mask"], len(row["prompt_ids"])):
                    mask[index, place] *= trained
            return batch

    settings = trl.DPOConfig(
        **_arguments(job, out),
        max_length=None,
        remove_unused_columns=False,
        model_init_kwargs={
            "dtype": number_format(job["device"]), "attn_implementation": job["attention"],
        },
    )  # fmt: skip
    made = OnTokens(
        model=job["model"],
        args=settings,
        train_dataset=_rows(job, out),
        peft_config=_adapter(LoraConfig),
    )
    made.data_collator = Masked(pad_token_id=made.processing_class.pad_token_id)
    return made


def _adapter(kind: Any) -> Any:
    return kind(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear", task_type="CAUSAL_LM")


def _theirs(job: dict[str, Any], out: Path, *, packing: bool) -> Any:
    """TRL's own trainer on messages."""
    import trl
    from datasets import Features, Json, List, disable_progress_bars, load_dataset
    from peft import LoraConfig

    disable_progress_bars()
    sft = job["method"] == "sft"
    columns = ("messages", "tools") if sft else ("prompt", "chosen", "rejected")
    features = Features({name: List(Json()) for name in columns})
    with Path(job["dataset"]).open(encoding="utf-8") as file:
        rows = [{name: value[name] for name in columns} for value in map(json.loads, file)]
    plain = out / "plain.jsonl"
    out.mkdir(parents=True, exist_ok=True)
    plain.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    data = load_dataset(
        "json", data_files=str(plain), split="train", features=features, cache_dir=str(out / "hf")
    )
    dtype = number_format(job["device"])
    given = {
        **_arguments(job, out),
        "max_length": job["window"],
        "model_init_kwargs": {"dtype": dtype, "attn_implementation": job["attention"]},
    }
    if sft:
        given |= {"assistant_only_loss": True, "packing": packing}
    kind, settings = ("SFTTrainer", "SFTConfig") if sft else ("DPOTrainer", "DPOConfig")
    return getattr(trl, kind)(
        model=job["model"],
        args=getattr(trl, settings)(**given),
        train_dataset=data,
        peft_config=_adapter(LoraConfig),
    )


def _trainer(job: dict[str, Any], out: Path) -> Any:
    """The trainer of a side."""
    side = job["side"]
    if side.startswith("ours"):
        return _ours(job, out)
    if side.startswith("same"):
        return _same(job, out)
    return _theirs(job, out, packing=False)


def _logged(trainer: Any, name: str) -> list[float]:
    """A figure of each step."""
    return [entry[name] for entry in trainer.state.log_history if name in entry]


def measure(**job: Any) -> dict[str, Any]:
    """Train some steps, and say how fast that went."""
    import torch

    out = Path(job["out"])
    made = _trainer(job, out)
    counter = Counter(made, job["warm"])
    try:
        made.train()
    except torch.OutOfMemoryError:
        return {"error": "out of memory"}
    cuda = torch.cuda.is_available() and job["device"] != "cpu"
    return {
        "seconds": sum(counter.seconds),
        "seconds_of_passes": sum(counter.passes),
        "steps": len(counter.seconds),
        "batches": counter.digests,
        "slots": counter.slots,
        "tokens": counter.tokens,
        "trained": counter.trained,
        "peak_gb": torch.cuda.max_memory_allocated() / 1e9 if cuda else None,
        "losses": _logged(made, "loss"),
        # The first loss of DPO is log 2 whatever the tokens are; these are not.
        "chosen_log_probabilities": _logged(made, "logps/chosen"),
        "checkpointing": bool(made.args.gradient_checkpointing),
        "attention": made.model.config._attn_implementation,
    }


TASKS = {task.__name__: task for task in (build, measure)}


def main() -> None:
    print("\n" + json.dumps(TASKS[sys.argv[1]](**json.loads(sys.argv[2]))))


if __name__ == "__main__":
    main()
