"""Framing: memory of converting one huge JSON array, and one huge compressed file of each kind.

    python benchmarks/bench_framing.py [--megabytes 2000] [--data DIR]

Each is converted at a tenth of the size and at the whole size: memory must not follow the size.
The plain JSON Lines file of the same records is the baseline for the time.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from generate import chat_jsonl
from measure import Goal, Run, command, print_goals, run_task, save

MEMORY_LIMIT = 500
KINDS = {"lines": ".jsonl", "array": ".json", "gz": ".jsonl.gz", "zst": ".jsonl.zst"}


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(1 << 22):
            yield chunk


def input_file(data: Path, kind: str, megabytes: float) -> Path:
    """The generated file of this kind; the size is that of its JSON text."""
    path = data / f"framing-{megabytes:g}{KINDS[kind]}"
    if path.exists():
        return path
    print(f"  making {path.name} ...", flush=True)
    staged = path.with_suffix(".part")
    if kind == "lines":
        chat_jsonl(staged, megabytes)
    elif kind == "gz":
        with staged.open("wb") as file, gzip.GzipFile("", "wb", 1, file, 0) as packed:
            for chunk in _chunks(input_file(data, "lines", megabytes)):
                packed.write(chunk)
    elif kind == "zst":
        with pa.CompressedOutputStream(staged, "zstd") as packed:
            for chunk in _chunks(input_file(data, "lines", megabytes)):
                packed.write(chunk)
    else:
        with staged.open("wb", buffering=1 << 20) as file:
            between = b"["
            with input_file(data, "lines", megabytes).open("rb") as lines:
                for line in lines:
                    file.write(between + line.rstrip())
                    between = b",\n"
            file.write(b"]\n")
    staged.rename(path)
    return path


def _run(source: Path, out: Path) -> Run:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    run = run_task("convert", {"source": str(source), "out": str(out), "workers": 1}, sample=True)
    shutil.rmtree(out)
    return run


def run(data: Path, *, small: bool, megabytes: float = 2000) -> list[Goal]:
    """Measure, print and save; the generated files go to ``data``."""
    sizes = (10, 100) if small else (megabytes / 10, megabytes)
    numbers: dict[str, Any] = {}
    for kind in KINDS:
        for size in sizes:
            done = _run(input_file(data, kind, size), data / "out")
            numbers.setdefault(kind, {})[f"{size:g} MB"] = {
                "wall": round(done.wall, 1),
                "cpu": round(done.cpu, 1),
                "peak_rss": round(done.peaks["rss"], 1),
                "peak_uss": round(done.peaks["uss"], 1),
                "result": {k: v for k, v in done.answer.items() if k != "work"},
            }
            print(f"  {kind}, {size:g} MB: {done.wall:.0f} s, {done.peaks['uss']:.0f} MB uss")
    goals = []
    for kind, number in numbers.items():
        first, last = number.values()
        goals.append(
            Goal(
                f"peak uss, {kind}, {sizes[1]:g} MB",
                last["peak_uss"],
                MEMORY_LIMIT,
                "MB",
                at_most=True,
            )
        )
        growth = last["peak_uss"] / first["peak_uss"]
        goals.append(Goal(f"  against {sizes[0]:g} MB", growth, 1.2, "x", at_most=True))
        if kind != "lines":
            slower = last["cpu"] / numbers["lines"][f"{sizes[1]:g} MB"]["cpu"]
            goals.append(Goal("  CPU against the plain lines", slower, None, "x"))
    print_goals(f"Framing of {sizes[1]:g} MB" + (" (small run)" if small else ""), goals)
    save("framing", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__)
