"""What LLaMA-Factory's own code trains of the rows that adp wrote for it.

    python tools/oracle/llamafactory_rows.py JOBS.json --out RESULT.json

Runs in an environment of its own (see requirements.txt beside it). A job is a folder as `adp
export` wrote it, with a tokenizer. The arguments come from the folder's own train.yaml through
LLaMA-Factory's own parser, the rows from its own data code, from the file to the labels; for the
engine v1, from that engine's. Said are, for each row, the pieces of text that are trained.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml
from llamafactory_sharegpt import prepare
from rows import IGNORED, answer, pieces

PACKAGES = ("llamafactory", "torch", "transformers", "datasets", "trl", "peft")
TURN = re.compile(r"(?<=\n)(?=<\|im_start\|>assistant\n)")


def config_of(job: dict[str, Any]) -> dict[str, Any]:
    """The folder's train.yaml, for this machine: no GPU, and the tokenizer of the job."""
    config = yaml.safe_load((Path(job["folder"]) / "train.yaml").read_text(encoding="utf-8"))
    return {
        **config,
        "model_name_or_path": job["tokenizer"],
        "dataset_dir": job["folder"],
        "output_dir": str(Path(job["work"]) / "out"),
        "bf16": False,
        "use_cpu": True,
        "overwrite_cache": True,
        "cutoff_len": 1 << 20,
    }


def rows_of(job: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the engine that LLaMA-Factory uses by default."""
    from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
    from llamafactory.hparams import get_train_args
    from transformers import AutoTokenizer

    model, data, training, tuning, _ = get_train_args(config_of(job))
    tokenizer = AutoTokenizer.from_pretrained(job["tokenizer"])
    template = get_template_and_fix_tokenizer(tokenizer, data)
    stage = "rm" if tuning.stage == "dpo" else tuning.stage
    module = get_dataset(template, model, data, training, stage=stage, tokenizer=tokenizer)
    sides = ("chosen_", "rejected_") if stage == "rm" else ("",)
    rows = []
    for row in module["train_dataset"]:
        trained = [
            pieces(tokenizer, row[f"{side}input_ids"], row[f"{side}labels"]) for side in sides
        ]
        decoded = tokenizer.decode(row[f"{sides[0]}input_ids"], skip_special_tokens=False)
        rows.append({"trained": [text for side in trained for text in side], "text": decoded})
    return rows


def rows_of_v1(job: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the engine v1."""
    from llamafactory.v1.core.data_engine import DataEngine
    from llamafactory.v1.core.utils.rendering import Renderer
    from transformers import AutoTokenizer

    config = yaml.safe_load((Path(job["folder"]) / "train.yaml").read_text(encoding="utf-8"))
    tokenizer = AutoTokenizer.from_pretrained(job["tokenizer"])
    renderer = Renderer(config["template"], tokenizer)
    engine = DataEngine(str(Path(job["folder"]) / config["train_dataset"]))
    rows = []
    for index in range(len(engine)):
        [row] = renderer.process_samples([engine[index]])
        weights = [bool(weight) for weight in row["loss_weights"]]
        assert weights == [label != IGNORED for label in row["labels"]]
        runs = pieces(tokenizer, row["input_ids"], row["labels"])
        rows.append(
            {
                # It trains what opens a turn, so turns in a row have nothing between them.
                "trained": [turn for run in runs for turn in TURN.split(run)],
                "text": tokenizer.decode(row["input_ids"], skip_special_tokens=False),
            }
        )
    return rows


def train(job: dict[str, Any]) -> list[dict[str, Any]]:
    """A training run of a few steps with the folder's own train.yaml; the losses."""
    from llamafactory.train.tuner import run_exp

    config = {
        **config_of(job),
        "max_steps": 2,
        "logging_steps": 1,
        "cutoff_len": 2048,
        "gradient_accumulation_steps": 1,
        "gradient_checkpointing": False,
        "save_steps": 2,
    }
    run_exp(config)
    out = Path(config["output_dir"])
    log = json.loads((out / "trainer_state.json").read_text(encoding="utf-8"))["log_history"]
    assert (out / "adapter_model.safetensors").exists()
    return [{"loss": entry["loss"]} for entry in log if "loss" in entry]


def train_v1(job: dict[str, Any]) -> list[dict[str, Any]]:
    """The same with the engine v1."""
    from llamafactory.v1.trainers.sft_trainer import run_sft

    folder, out = Path(job["folder"]), Path(job["work"]) / "out"
    config = yaml.safe_load((folder / "train.yaml").read_text(encoding="utf-8"))
    config |= {
        "model": job["tokenizer"],
        "train_dataset": str(folder / config["train_dataset"]),
        "output_dir": str(out),
        "bf16": False,
        "cutoff_len": 2048,
        "max_steps": 2,
        "global_batch_size": 1,
        "batching_workers": 0,
    }
    run_sft(config)
    assert any(out.rglob("adapter_model.safetensors"))
    return [{"adapter": True}]


WORK = {"rows": rows_of, "rows-v1": rows_of_v1, "train": train, "train-v1": train_v1}


if __name__ == "__main__":
    prepare()
    sys.exit(answer(WORK, PACKAGES, __doc__))
