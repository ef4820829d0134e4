"""Reading in parallel: two workers against one, for lines, one array, one gz and one zst file.

    python benchmarks/bench_parallel.py [--megabytes 500] [--repeats 3] [--data DIR]

Runs alternate between one and two workers, and the load of the machine stands beside each: on a
machine that does other work two workers cannot be faster. Both must write the same bytes.
"""

from __future__ import annotations

import os
import shutil
import statistics
from pathlib import Path
from typing import Any

from bench_framing import KINDS, input_file
from measure import Goal, command, print_goals, run_task, save, spread

MEMORY_LIMIT = 500
GAIN = 1.7


def _convert(source: Path, out: Path, workers: int, *, sample: bool = False) -> dict[str, Any]:
    """One run: its seconds, the load, its memory when sampled, and the hash of what it wrote."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    task = {"source": str(source), "out": str(out), "workers": workers}
    load = os.getloadavg()[0]
    run = run_task("convert", task, sample=sample)
    manifest = (out / "adp.json").read_text(encoding="utf-8")
    shutil.rmtree(out)
    wall, cpu = round(run.wall, 2), round(run.cpu, 2)
    peak = round(run.peaks.get("uss", 0.0), 1)
    return {"wall": wall, "cpu": cpu, "load": round(load, 2), "uss": peak, "manifest": manifest}


def _measure(source: Path, out: Path, repeats: int) -> dict[str, Any]:
    source.read_bytes()  # warms the file cache
    runs: dict[int, list[dict[str, Any]]] = {1: [], 2: []}
    for number in range(repeats):
        for workers, done in runs.items():
            done.append(_convert(source, out, workers))
            print(
                f"  {number + 1}/{repeats} {source.name}, {workers} workers: "
                f"{done[-1]['wall']:.1f} s, {done[-1]['cpu']:.1f} CPU s, load {done[-1]['load']}",
                flush=True,
            )
    sampled = _convert(source, out, 2, sample=True)
    written = {run.pop("manifest") for run in [*runs[1], *runs[2], sampled]}
    if len(written) > 1:
        raise RuntimeError(f"{source.name}: one and two workers wrote different bytes")
    numbers: dict[str, Any] = {"uss": sampled["uss"]}
    for workers, done in runs.items():
        numbers[f"{workers} workers"] = {
            what: spread([run[what] for run in done]) for what in ("wall", "cpu", "load")
        }
    return numbers


def _goals(kind: str, numbers: dict[str, Any], lines: dict[str, Any]) -> list[Goal]:
    alone, both = numbers["1 workers"], numbers["2 workers"]
    gains = [a / b for a, b in zip(alone["wall"]["all"], both["wall"]["all"], strict=True)]
    loads = f"load {max(alone['load']['max'], both['load']['max']):g} at most"
    note = f"{min(gains):.2f} to {max(gains):.2f}; {loads}"
    cost = alone["cpu"]["min"] / lines["1 workers"]["cpu"]["min"]
    more = both["cpu"]["min"] / alone["cpu"]["min"]
    seconds = f"{alone['cpu']['min']:.1f} s"
    return [
        Goal(f"wall, 1 worker / 2 workers, {kind}", statistics.median(gains), GAIN, "x", note=note),
        Goal("  CPU of 1 worker against lines", cost, None, "x", note=seconds),
        Goal("  CPU of 2 workers against 1", more, None, "x"),
        Goal("  uss of a process", numbers["uss"], MEMORY_LIMIT, "MB", at_most=True),
    ]


def run(data: Path, *, small: bool, megabytes: float = 500, repeats: int = 3) -> list[Goal]:
    """Measure, print and save; the generated files go to ``data``."""
    if small:
        megabytes, repeats = 100, 1
    numbers = {
        kind: _measure(input_file(data, kind, megabytes), data / "out", repeats) for kind in KINDS
    }
    goals = [goal for kind in KINDS for goal in _goals(kind, numbers[kind], numbers["lines"])]
    print_goals(f"Two workers, {megabytes:g} MB" + (" (small run)" if small else ""), goals)
    save("parallel", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__)
