"""Rollouts: CPU a step with a policy that answers at once, and throughput against Inspect AI.

python benchmarks/bench_rollout.py [--inspect PYTHON] [--small] [--data DIR]

Inspect needs other versions of some packages, so it lives in an environment of its own:

    python -m venv inspect
    inspect/bin/pip install inspect-ai==0.3.285 openai

Name its Python with --inspect or in the variable INSPECT_PYTHON. Without it that part is left out.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import HERE, Goal, Run, command, print_goals, run_task, save, spread

ROUNDS = 3
TURNS = 10
CONCURRENCY = 64
ONE_THREAD = {"OMP_NUM_THREADS": "1", "INSPECT_LOG_LEVEL": "error"}


def _task(name: str, python: str, episodes: int, turns: int, data: Path) -> Run:
    with tempfile.TemporaryDirectory(dir=data) as out:
        arguments = {
            "out": out, "episodes": episodes, "turns": turns, "concurrency": CONCURRENCY
        }  # fmt: skip
        script = HERE / "rollout_tasks.py"
        done = run_task(name, arguments, script=script, python=python, environment=ONE_THREAD)
    if (done.answer["episodes"], done.answer["right"]) != (episodes, episodes):
        raise RuntimeError(f"{name} did {done.answer} instead of {episodes} right episodes")
    return done


def _rates(runs: list[Run], episodes: int, kind: str) -> list[float]:
    return [episodes / float(run.answer["work"][kind]) for run in runs]


def run(data: Path, *, small: bool, inspect: str | None = None) -> list[Goal]:
    """Measure, print and save."""
    inspect = inspect or os.environ.get("INSPECT_PYTHON")
    episodes, rounds = (20, 1) if small else (500, ROUNDS)
    ours: list[Run] = []
    theirs: list[Run] = []
    short: list[Run] = []
    for _ in range(rounds):
        ours.append(_task("ours", sys.executable, episodes, TURNS, data))
        short.append(_task("ours", sys.executable, episodes * 4, 2, data))
        if inspect:
            theirs.append(_task("inspect", inspect, episodes, TURNS, data))
    steps = [float(our.answer["work"]["cpu"]) * 1000 / (episodes * TURNS) for our in ours]
    rates = _rates(ours, episodes, "wall")
    briefly = _rates(short, episodes * 4, "wall")
    goals = [
        Goal("CPU of a step", statistics.median(steps), 2.0, "ms", True, f"up to {max(steps):.2f}"),
        Goal(f"episodes of {TURNS} turns, {CONCURRENCY} at once", statistics.median(rates), None,
             "a second"),
        Goal("episodes of 2 turns", statistics.median(briefly), None, "a second"),
    ]  # fmt: skip
    numbers: dict[str, Any] = {
        "episodes": episodes, "turns": TURNS, "concurrency": CONCURRENCY,
        "cpu_ms_a_step": spread(steps), "episodes_a_second": spread(rates, 1),
        "short_episodes_a_second": spread(briefly, 1),
    }  # fmt: skip
    if theirs:
        goals += _against(ours, theirs, episodes, numbers)
    print_goals(f"Rollouts, median of {rounds}", goals)
    save("rollout", numbers, goals, small=small)
    return goals


def _against(
    ours: list[Run], theirs: list[Run], episodes: int, numbers: dict[str, Any]
) -> list[Goal]:
    """Ratios of throughput, a round at a time."""
    goals = []
    names = {"wall": "throughput against Inspect", "cpu": "  by CPU seconds"}
    for kind, name in names.items():
        native, other = _rates(ours, episodes, kind), _rates(theirs, episodes, kind)
        ratios = [a / b for a, b in zip(native, other, strict=True)]
        numbers[f"inspect_{kind}"] = spread(other, 1)
        numbers[f"ratio_{kind}"] = spread(ratios)
        note = f"{min(ratios):.1f} to {max(ratios):.1f}; Inspect {statistics.median(other):.0f}"
        goals.append(Goal(name, statistics.median(ratios), None, "x", note=note))
    return goals


if __name__ == "__main__":
    command(run, __doc__, inspect="a Python that has inspect-ai")
