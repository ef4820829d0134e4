"""One part of gpu_session.py, in a process of its own: ``python gpu_parts.py PART '{...}'``.

A part prints one line of JSON at its end. What a CPU cannot do is said as ``not_run``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import agent_runs
from measure import HERE

ROOT = HERE.parent
SMALL = "qwen2.5-0.5b"
"""Shape of the model of all parts but the throughput and the study."""
QUIET = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
CLOSE = 0.02
"""Training losses of two kinds of attention may differ by so much: they add in another order."""


def call(*words: object, module: str = "adp.cli.main", folder: Path | None = None) -> None:
    """Run a module of Python as a command of its own; what it says goes to the log.

    Raises:
        SystemExit: it failed.
    """
    command = [sys.executable, "-m", module, *map(str, words)]
    print("$", " ".join(command), flush=True)
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, **QUIET, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run(command, cwd=folder, env=env, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


def model_of(job: dict[str, Any]) -> Path:
    """The model of this session, with random weights; the first part that asks makes it."""
    from gpu_tasks import build

    shape = "tiny" if job["tiny"] else SMALL
    folder = Path(job["shared"], f"model-{shape}")
    if not folder.exists():
        tokenizer = agent_runs.tokenizer(Path(job["shared"], "tokenizer"))
        with tempfile.TemporaryDirectory(dir=job["shared"]) as scratch:
            made = Path(scratch, "model")
            build(shape, str(made), str(tokenizer), "qwen3_training", device(job))
            made.rename(folder)
    return folder


def device(job: dict[str, Any]) -> str:
    """Where it runs."""
    return "cpu" if job["tiny"] else "cuda"


def episodes(job: dict[str, Any]) -> Path:
    """Episodes of toolworld's expert, to train on."""
    store = Path(job["shared"], "expert")
    if not store.exists():
        count = 40 if job["tiny"] else 400
        call("collect", "--env", "toolworld", "--policy", "expert", "--tasks", f"train:{count}",
             "-o", store)  # fmt: skip
    return store


def sft(job: dict[str, Any], name: str, *words: str) -> list[float]:
    """Some steps of ``adp train sft``; the training loss of each."""
    out = Path(job["out"], name)
    out.parent.mkdir(parents=True, exist_ok=True)
    settings = {
        "render.max_length": 2048,
        "training.max_steps": 2 if job["tiny"] else 8,
        "training.per_device_train_batch_size": 1 if job["tiny"] else 4,
        "training.gradient_accumulation_steps": 1,
        "training.logging_steps": 1,
        "training.save_strategy": "no",
        "training.use_cpu": job["tiny"],
        "training.learning_rate": 1e-5,
    }
    given = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    more = [word for value in words for word in ("--set", value)]
    call("train", "sft", episodes(job), "--model", model_of(job), "-o", out, *given, *more)
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [entry["loss"] for entry in map(json.loads, lines) if "loss" in entry]


def attention(job: dict[str, Any]) -> dict[str, Any]:
    """The training loss of packed rows with two kinds of attention."""
    kinds = ("sdpa", "eager") if job["tiny"] else ("sdpa", "flash_attention_2")
    losses = {
        kind: sft(job, kind, "training.packing=true", f"model.attn_implementation={kind}")
        for kind in kinds
    }
    first, second = losses.values()
    most = max(abs(a - b) for a, b in zip(first, second, strict=True))
    return {"losses": losses, "largest_difference": most, "equal": most < CLOSE}


def qlora(job: dict[str, Any]) -> dict[str, Any]:
    """Some steps on a base of 4 bits."""
    if job["tiny"]:
        return {"not_run": "a base of 4 bits needs a GPU"}
    return {"losses": sft(job, "qlora", "model.load_in_4bit=true")}


def vllm(job: dict[str, Any]) -> dict[str, Any]:
    """Train an adapter of rank 64, and let it act by vLLM."""
    if job["tiny"]:
        return {"not_run": "vLLM needs a GPU"}
    losses = sft(job, "rank-64", "lora.r=64", "lora.lora_alpha=64")
    adapter, out = Path(job["out"], "rank-64", "adapter"), Path(job["out"], "acted")
    policy = f"vllm:model={adapter},max_tokens=64,gpu_memory_utilization=0.5"
    call("collect", "--env", "toolworld", "--policy", policy, "--tasks", "train:16", "-o", out)
    return {"losses": losses, "episodes": counted(out)}


def grpo(job: dict[str, Any]) -> dict[str, Any]:
    """Three steps in toolworld; on a CPU the model itself writes."""
    out = Path(job["out"], "run")
    out.parent.mkdir(parents=True, exist_ok=True)
    tasks = "train:4" if job["tiny"] else "train:24"
    settings = {
        "render.max_length": 4096,
        "grpo.num_generations": 2 if job["tiny"] else 8,
        "grpo.max_completion_length": 8 if job["tiny"] else 128,
        "grpo.environment.max_turns": 2 if job["tiny"] else 6,
        "grpo.use_vllm": not job["tiny"],
        "training.per_device_train_batch_size": 4 if job["tiny"] else 32,
        "training.gradient_accumulation_steps": 1,
        "training.max_steps": 3,
        "training.logging_steps": 1,
        "training.save_strategy": "no",
        "training.use_cpu": job["tiny"],
    }
    given = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    call("train", "grpo", "--env", "toolworld:kinds=[c1, c2]", "--tasks", tasks,
         "--model", model_of(job), "-o", out, *given)  # fmt: skip
    lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [entry for entry in map(json.loads, lines) if "reward" in entry]
    names = ("loss", "reward", "reward_std")
    steps = [{name: entry.get(name) for name in names} for entry in entries]
    return {"steps": steps, "episodes": counted(out / "rollouts")}


def counted(store: Path) -> int:
    """Episodes of a store."""
    from adp_schema.store import Store

    rows = Store.open(str(store)).query("SELECT count(*) AS n FROM trajectories")
    return int(rows.to_pylist()[0]["n"])


def throughput(job: dict[str, Any]) -> dict[str, Any]:
    """``gpu_train.py`` for SFT, with few steps a window."""
    out = Path(job["out"])
    out.mkdir(parents=True, exist_ok=True)
    words = ["--methods", "sft", "--steps", "4", "--warm", "2", "--out", str(out / "found.json"),
             "--data", str(out)]  # fmt: skip
    if job["tiny"]:
        words += ["--shape", "tiny", "--device", "cpu", "--windows", "2048", "--batch-tokens",
                  "2048", "--runs", "6", "--steps", "1", "--warm", "1"]  # fmt: skip
    done = subprocess.run([sys.executable, str(HERE / "gpu_train.py"), *words], check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    content = json.loads((out / "found.json").read_text(encoding="utf-8"))
    return {key: content[key] for key in ("shape", "parameters", "formula", "found")}


def study(job: dict[str, Any]) -> dict[str, Any]:
    """The loop's study with one seed and a wider model."""
    out = Path(job["out"])
    scale = "quick" if job["tiny"] else "wide"
    call("-o", out, "--results", out / "loop.json", "--scale", scale, "--seeds", 0,
         "--arms", "curated", "raw", module="examples.loop.full", folder=ROOT)  # fmt: skip
    content = json.loads((out / "loop.json").read_text(encoding="utf-8"))
    base = content["arms"]["curated"]["0"]["base"]
    return {"parameters": base["parameters"], "summary": content["summary"]}


TASKS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    part.__name__: part for part in (attention, qlora, vllm, grpo, throughput, study)
}


def main() -> None:
    """Run the part that is named, and print what it found."""
    result = TASKS[sys.argv[1]](json.loads(sys.argv[2]))
    print("\n" + json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
