"""Everything that has to be tried on a GPU, in one session of under 25 minutes.

python benchmarks/gpu_session.py                       # one GPU, as make gpu-session does
python benchmarks/gpu_session.py --tiny                # what a CPU can do of it; no result
python benchmarks/gpu_session.py --only attention,vllm

A part runs in a process of its own, with all memory free, and has its own limit of time. What it
found, or why it failed, is written as soon as it ends, so nothing is lost with the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gpu_train import device_of
from measure import HERE, PACKAGES, RESULTS, machine

PARTS = {
    "attention": ("sdpa against flash attention on packed rows: the same training loss", 150),
    "qlora": ("three steps of QLoRA on a base of 4 bits", 120),
    "vllm": ("the policy vllm with an adapter of rank 64, in toolworld", 180),
    "grpo": ("three steps of GRPO in toolworld, with vLLM in the same process", 240),
    "throughput": ("LoRA SFT of an 8B shape at 4k to 32k tokens, ours against plain TRL", 420),
    "study": ("the loop's study with a model of 20 million parameters", 330),
}
"""What each part is, and its limit in seconds: 24 minutes in all."""

MORE = ("torch", "transformers", "trl", "peft", "vllm", "flash-attn", "bitsandbytes", "accelerate")
LAST_LINES = 15
"""Lines of a failed part that are kept."""


def run_part(name: str, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run a part in a process of its own; what it says, or why it says nothing.

    Args:
        name: one of `PARTS`.
        options: of the command.
        folder: where it works.
    """
    about, limit = PARTS[name]
    job = {"tiny": options.tiny, "out": str(folder / name), "shared": str(folder)}
    command = [sys.executable, str(HERE / "gpu_parts.py"), name, json.dumps(job)]
    log = folder / f"{name}.log"
    began = time.perf_counter()
    with log.open("w+", encoding="utf-8") as file:
        child = subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            status = child.wait(limit * options.slack)
            reason = None if status == 0 else f"ended with status {status}"
        except subprocess.TimeoutExpired:
            reason = f"took longer than {limit * options.slack:.0f} s"
        finally:
            end(child)
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    entry = {"part": name, "about": about, "seconds": round(time.perf_counter() - began, 1)}
    if reason is None and lines and lines[-1].startswith("{"):
        result: dict[str, Any] = json.loads(lines[-1])
        return entry | result
    return entry | {"failed": reason or "said nothing", "last_lines": lines[-LAST_LINES:]}


def end(child: subprocess.Popen[bytes]) -> None:
    """End a part with all that it started; nothing of it may hold the GPU's memory."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def run(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """Run the parts in their order, and write the results after each."""
    device = device_of("cpu" if options.tiny else "cuda")
    content = {
        "benchmark": "gpu_session",
        "tiny": options.tiny,
        "device": device,
        "machine": machine((*PACKAGES, *MORE)),
    }
    entries: list[dict[str, Any]] = []
    for name in options.only:
        entries.append(run_part(name, options, folder))
        print(json.dumps(entries[-1]), flush=True)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        part = options.out.with_suffix(".part")
        part.write_text(json.dumps({**content, "found": entries}, indent=2) + "\n", "utf-8")
        part.replace(options.out)
    return entries


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--tiny", action="store_true", help="on the CPU, with tiny models")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PARTS))
    parser.add_argument("--slack", type=float, default=1.0, help="factor on all limits of time")
    parser.add_argument("--data", type=Path, help="folder for models and logs, which is kept")
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu_session.json")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.only if name not in PARTS]
    if unknown:
        parser.error(f"there is no part '{unknown[0]}'; parts: {', '.join(PARTS)}")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run the session; 1 when a part failed, 2 without a GPU."""
    options = parse(arguments)
    if not options.tiny:
        import torch

        if not torch.cuda.is_available():
            print(
                "no GPU was found: run this where torch.cuda.is_available(), or try out with "
                "--tiny --out trial.json what a CPU can do of it",
                file=sys.stderr,
            )
            return 2
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.data or Path(scratch)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        entries = run(options, folder)
    return int(any("failed" in entry for entry in entries))


if __name__ == "__main__":
    sys.exit(main())
