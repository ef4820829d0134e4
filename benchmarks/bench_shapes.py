"""Conversion of chats of three shapes: CPU seconds against the JSON reader of ``datasets``.

    python benchmarks/bench_shapes.py [--megabytes 150] [--repeats 3] [--data DIR]

Rounds alternate; the least CPU seconds of a whole process count on both sides, since other work
on a machine only adds to them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench_convert import input_file, measure_speed
from chat_shapes import SHAPES
from measure import Goal, command, print_goals, save

OURS, BASELINE = "ours, 1 worker", "datasets"
TARGET = 2.0


def _goals(shape: str, numbers: dict[str, Any]) -> list[Goal]:
    size = numbers["input_megabytes"]

    def gain(what: str) -> float:
        return numbers[BASELINE][what]["min"] / numbers[OURS][what]["min"]

    rounds = zip(
        numbers[BASELINE]["process_cpu"]["all"], numbers[OURS]["process_cpu"]["all"], strict=True
    )
    ratios = [theirs / ours for theirs, ours in rounds]
    rates = [size / numbers[kind]["process_cpu"]["min"] for kind in (OURS, BASELINE)]
    note = f"rounds {min(ratios):.2f} to {max(ratios):.2f}; "
    note += f"{rates[0]:.1f} and {rates[1]:.1f} MB / CPU s"
    name = f"throughput per CPU second, ours / datasets, {shape}"
    return [
        Goal(name, gain("process_cpu"), TARGET, "x", note=note),
        Goal("  the same without imports", gain("work_cpu"), None, "x"),
    ]


def run(data: Path, *, small: bool, megabytes: float = 150, repeats: int = 3) -> list[Goal]:
    """Measure, print and save; the generated files go to ``data``."""
    if small:
        megabytes, repeats = 20, 2
    numbers = {
        shape: measure_speed(
            input_file(data, megabytes, shape), data / "out", repeats, (OURS, BASELINE)
        )
        for shape in SHAPES
    }
    goals = [goal for shape in SHAPES for goal in _goals(shape, numbers[shape])]
    print_goals(f"Chats of {megabytes:g} MB" + (" (small run)" if small else ""), goals)
    save("shapes", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__)
