"""One measurement of gpu_train.py, in a process of its own: ``python gpu_tasks.py TASK '{...}'``.

Each task prints one line of JSON, after what the libraries say.
"""

from __future__ import annotations

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

    Args:
        trainer: of transformers.
        warm: steps that do not count.
    """

    def __init__(self, trainer: Any, warm: int) -> None:
        self._warm = warm
        self._step = trainer.training_step
        self._done = 0
        self._begun = 0.0
        self.seconds: list[float] = []
        self.slots = self.tokens = self.trained = 0
        trainer.training_step = self

    def __call__(self, model: Any, inputs: dict[str, Any], *more: Any, **named: Any) -> Any:
        counts = _counts(inputs)
        wait()
        begun = time.perf_counter()
        loss = self._step(model, inputs, *more, **named)
        wait()
        self._done += 1
        # The first steps allocate memory and choose kernels.
        if self._done > self._warm:
            self.seconds.append(time.perf_counter() - begun)
            self.slots += counts[0]
            self.tokens += counts[1]
            self.trained += counts[2]
        return loss


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
    from adp.core.progress import Silent
    from adp.trainers.arguments import common_arguments
    from adp.trainers.config import TrainConfig
    from adp.trainers.method import METHODS

    same = (
        "per_device_train_batch_size", "gradient_accumulation_steps", "max_steps",
        "learning_rate", "bf16", "use_cpu", "save_strategy", "logging_steps", "seed",
    )  # fmt: skip
    given = _arguments(job, out)
    packed = job["method"] == "sft"
    config = TrainConfig.model_validate(
        {
            "method": job["method"],
            "model": {
                "model_name_or_path": job["model"],
                "attn_implementation": job["attention"],
            },
            "data": {"store": job["store"], "workers": 1},
            "render": {
                "max_length": job["window"],
                "window": "sliding" if packed else "drop",
                "overlap": 0,
            },
            "lora": {"r": RANK},
            "training": {"packing": packed, **{name: given[name] for name in same}},
        }
    )
    method = METHODS.get(job["method"])
    rows = out / "rows"
    rows.mkdir(parents=True)
    method.prepare(config, rows, Silent())
    return method.trainer(config, rows, common_arguments(config, out), [])


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
    adapter = LoraConfig(
        r=RANK, lora_alpha=2 * RANK, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    return getattr(trl, kind)(
        model=job["model"],
        args=getattr(trl, settings)(**given),
        train_dataset=data,
        peft_config=adapter,
    )


def measure(**job: Any) -> dict[str, Any]:
    """Train some steps, and say how fast that went."""
    import torch

    out = Path(job["out"])
    made = (
        _ours(job, out)
        if job["side"] == "ours"
        else _theirs(job, out, packing=job["side"] == "trl-packed")
    )
    counter = Counter(made, job["warm"])
    try:
        made.train()
    except torch.OutOfMemoryError:
        return {"error": "out of memory"}
    cuda = torch.cuda.is_available() and job["device"] != "cpu"
    return {
        "seconds": sum(counter.seconds),
        "steps": len(counter.seconds),
        "slots": counter.slots,
        "tokens": counter.tokens,
        "trained": counter.trained,
        "peak_gb": torch.cuda.max_memory_allocated() / 1e9 if cuda else None,
        "losses": [entry["loss"] for entry in made.state.log_history if "loss" in entry],
        "checkpointing": bool(made.args.gradient_checkpointing),
        "attention": made.model.config._attn_implementation,
    }


TASKS = {task.__name__: task for task in (build, measure)}


def main() -> None:
    print("\n" + json.dumps(TASKS[sys.argv[1]](**json.loads(sys.argv[2]))))


if __name__ == "__main__":
    main()
