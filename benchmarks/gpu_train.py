"""Training on a GPU: an 8B-shaped model with random weights, LoRA, ours against plain TRL.

python benchmarks/gpu_train.py [--shape qwen3-8b] [--windows 4096,8192,16384,32768]
python benchmarks/gpu_train.py --shape tiny --device cpu --windows 2048    # a trial, no result

``ours`` and ``same`` train the same tokens with the same labels, in the same batches: ours builds
the trainer as ``adp train`` does; ``same`` is TRL's own trainer, loaded by name, on the token ids
and labels (of DPO: masks) of our rows. A hash of each batch shows it; a batch that differs fails
the command. SFT is measured packed, and padded. ``trl`` is what one gets of TRL from ``messages``
and ``tools``: it cuts rows at the window, or takes them in another order, so it trains other tokens
and is compared with nothing.

A second is one of the whole step: rows are read and padded, both passes, the optimizer, the log.

The share of the matrix peak is F * N * tokens / (seconds * peak). N is the number of weights that
are multiplied with a token: all but the input embedding. F is 4 for a frozen base (2 forward, 2 for
the gradients of the activations; a frozen matrix needs no gradient of its own), and 6 when
activations are computed twice to save memory, which is how both sides train. DPO adds 2 for the
forward pass of the reference. Attention itself and the adapter are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import agent_runs
from gpu_tasks import number_format
from measure import HERE, PACKAGES, RESULTS, Goal, machine, print_goals, run_command, run_task

TEMPLATE = "qwen3_training"
PEAKS = {"H200": 989e12, "H100": 989e12, "GH200": 989e12, "B200": 2250e12, "A100": 312e12,
         "L40S": 362e12, "4090": 165e12}  # fmt: skip
"""Floating point operations a second in bfloat16, dense, as the makers state them."""
PUBLISHED = (
    "NeMo AutoModel, one H100, Llama-3 8B LoRA, 4,096: 12,473 tokens/s (402 TFLOP/s)",
    "NeMo AutoModel, one H100, Qwen2.5-7B LoRA, 4,096: 14,110 tokens/s",
)
SIDES = {
    "sft": ("ours", "same", "ours-padded", "same-padded", "trl"),
    "dpo": ("ours", "same", "trl"),
}
EQUAL = {"ours": "same", "ours-padded": "same-padded"}
"""Sides that train the same tokens."""
DIFFERENT = "NOT THE SAME TOKENS as plain TRL"
CHARACTERS_A_TOKEN = 3.4
QUIET = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}


def task(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run a task of ``gpu_tasks.py`` in a process of its own, with all memory free."""
    command = [sys.executable, str(HERE / "gpu_tasks.py"), name, json.dumps(arguments)]
    return run_command(command, environment=QUIET).answer


class Data:
    """Runs and pairs for both sides.

    Args:
        folder: where they are written.
        options: of the command.
    """

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self._folder = folder
        self._scale = 0.05 if options.shape == "tiny" else 1.0
        self._count = options.runs
        self.tokenizer = agent_runs.tokenizer(folder / "tokenizer")

    def sft(self) -> tuple[Path, Path]:
        """Store and messages of runs."""
        source, store = self._folder / "runs.jsonl", self._folder / "runs"
        if not store.exists():
            agent_runs.write_runs(source, self._count, scale=self._scale)
            run_task("convert", {"source": str(source), "out": str(store), "workers": 1})
        return store, source

    def dpo(self, window: int) -> tuple[Path, Path]:
        """Store and messages of pairs that fit into a window."""
        from adp.converters.run import ConvertOptions, convert

        plain = self._folder / f"pairs-{window}.jsonl"
        ranking, store = plain.with_suffix(".ranking.jsonl"), plain.with_suffix("")
        if not store.exists():
            characters = int(window * CHARACTERS_A_TOKEN * 0.6)
            agent_runs.write_pairs(plain, ranking, self._count, characters, self._scale)
            convert([str(ranking)], str(store), options=ConvertOptions(format="sharegpt"))
        return store, plain


def jobs(data: Data, model: Path, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """All measurements, side by side."""
    for method in options.methods:
        for window in options.windows:
            store, dataset = data.sft() if method == "sft" else data.dpo(window)
            # A pair is two rows.
            rows = options.batch_tokens // window // (2 if method == "dpo" else 1)
            for side in SIDES[method]:
                yield {
                    "method": method, "side": side, "window": window, "store": str(store),
                    "dataset": str(dataset), "model": str(model), "device": options.device,
                    "batch": max(1, rows), "steps": options.steps, "warm": options.warm,
                    "attention": options.attention,
                }  # fmt: skip


def speeds(answer: dict[str, Any], job: dict[str, Any], weights: int, peak: float | None) -> None:
    """Add what follows from the counts of a measurement."""
    if "error" in answer:
        return
    seconds = answer["seconds"]
    factor = (6 if answer["checkpointing"] else 4) + (2 if job["method"] == "dpo" else 0)
    answer["tokens_per_second"] = answer["tokens"] / seconds
    answer["trained_tokens_per_second"] = answer["trained"] / seconds
    answer["padding_share"] = 1 - answer["tokens"] / answer["slots"]
    answer["tflops"] = factor * weights * answer["tokens"] / seconds / 1e12
    answer["share_of_peak"] = None if peak is None else answer["tflops"] * 1e12 / peak


def goals_of(items: list[dict[str, Any]]) -> list[Goal]:
    """A line for each measurement, and ours against plain TRL."""
    goals = []
    plain = {(entry["method"], entry["window"], entry["side"]): entry for entry in items}
    for item in items:
        name = f"{item['method']} {item['window']:,} {item['side']}"
        if "error" in item:
            goals.append(Goal(name, 0.0, None, "tokens/s", note=item["error"]))
            continue
        trained = item["trained_tokens_per_second"]
        notes = [f"{trained:,.0f} trained/s", f"padding {item['padding_share']:.0%}"]
        if item["peak_gb"] is not None:
            notes.append(f"{item['peak_gb']:.0f} GB")
        if item["share_of_peak"] is not None:
            notes.append(f"{item['share_of_peak']:.0%} of the peak")
        goals.append(Goal(name, item["tokens_per_second"], None, "tokens/s", note=", ".join(notes)))
        base = plain.get((item["method"], item["window"], EQUAL.get(item["side"], "")))
        if base is not None and "error" not in base:
            if base["batches"] != item["batches"]:
                goals.append(Goal(f"  {DIFFERENT}", 0.0, None, "x"))
                continue
            ratio = trained / base["trained_tokens_per_second"]
            note = f"{len(item['batches'])} batches, all equal: {digest(item['batches'])}"
            goals.append(
                Goal("  against plain TRL on the same tokens", ratio, None, "x", note=note)
            )
    return goals


def digest(batches: list[str]) -> str:
    """One hash of the hashes of all batches."""
    return hashlib.blake2b(" ".join(batches).encode(), digest_size=8).hexdigest()


def device_of(name: str) -> dict[str, Any]:
    """Name, memory and peak of the device."""
    import torch

    if name == "cpu":
        return {"name": "cpu", "peak": None, "computes_in": number_format(name)}
    device_properties = torch.cuda.get_device_properties(0)
    peak = next((value for key, value in PEAKS.items() if key in device_properties.name), None)
    return {
        "name": device_properties.name,
        "memory_gb": round(device_properties.total_memory / 1e9, 1),
        "peak": peak,
        "cuda": torch.version.cuda,
        "computes_in": number_format(name),
    }


def run(options: argparse.Namespace, folder: Path) -> bool:
    """Measure, print and save; False when sides that are compared had other tokens."""
    data = Data(folder, options)
    model = folder / f"model-{options.shape}"
    built = folder / f"model-{options.shape}.json"
    if not built.exists():
        arguments = {
            "shape": options.shape, "out": str(model), "tokenizer": str(data.tokenizer),
            "template": TEMPLATE, "device": options.device,
        }  # fmt: skip
        built.write_text(json.dumps(task("build", arguments)), encoding="utf-8")
    weights = json.loads(built.read_text(encoding="utf-8"))
    device = device_of(options.device)
    peak = options.peak * 1e12 if options.peak else device["peak"]
    results = []
    for number, job in enumerate(jobs(data, model, options)):
        out = folder / f"job-{number}"
        shutil.rmtree(out, ignore_errors=True)
        answer = task("measure", {**job, "out": str(out)})
        speeds(answer, job, weights["multiplied"], peak)
        kept = {key: job[key] for key in ("method", "side", "window", "batch")}
        results.append({**kept, **answer})
        print(json.dumps(results[-1]), flush=True)
        shutil.rmtree(out, ignore_errors=True)
    goals = goals_of(results)
    print_goals(f"Training of {options.shape} on {device['name']}", goals)
    content = {
        "benchmark": "gpu_train",
        "shape": options.shape,
        **weights,
        "device": {**device, "peak": peak},
        "formula": __doc__.strip().splitlines()[-6:],
        "published": PUBLISHED,
        "machine": machine((*PACKAGES, "torch", "transformers", "trl", "peft", "flash-attn")),
        "found": results,
    }
    path = Path(options.out)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    print(path)
    return not any(DIFFERENT in goal.name for goal in goals)


def numbers(text: str) -> list[int]:
    """Whole numbers, by commas."""
    return [int(part) for part in text.split(",")]


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    flash = importlib.util.find_spec("flash_attn") is not None
    parser.add_argument("--shape", default="qwen3-8b", choices=("qwen3-8b", "llama3.1-8b", "tiny"))
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--windows", type=numbers, default=[4096, 8192, 16384, 32768])
    parser.add_argument("--methods", type=lambda text: text.split(","), default=["sft", "dpo"])
    parser.add_argument("--steps", type=int, default=8, help="steps that count")
    parser.add_argument("--warm", type=int, default=3, help="steps before them")
    parser.add_argument("--batch-tokens", type=int, default=32768, help="tokens of a batch")
    parser.add_argument("--runs", type=int, default=96, help="generated runs, and pairs")
    attention = "flash_attention_2" if flash else "sdpa"
    parser.add_argument("--attention", default=attention, help="attn_implementation of both sides")
    parser.add_argument("--peak", type=float, help="TFLOP/s of the device, if it is not known")
    parser.add_argument("--data", type=Path, help="folder for model and data, which is kept")
    parser.add_argument("--out", default=str(RESULTS / "gpu_train.json"))
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; 1 when compared sides had other tokens, 2 without a GPU."""
    options = parse(arguments)
    if options.device == "cuda":
        import torch

        if not torch.cuda.is_available():
            print(
                "no GPU was found: run this where torch.cuda.is_available(), or try it out with "
                "--shape tiny --device cpu --windows 2048",
                file=sys.stderr,
            )
            return 2
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.data or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        equal = run(options, folder)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
