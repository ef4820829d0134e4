"""Coresets and vectors: k-center against plain greedy, facility location against apricot-select.

python benchmarks/bench_coreset.py [--apricot PYTHON] [--small] [--data DIR]

apricot-select needs numba and scikit-learn, so it lives in an environment of its own:

    python -m venv apricot
    apricot/bin/pip install numpy scipy scikit-learn numba tqdm apricot-select==0.6.1

Name its Python with --apricot or in the variable APRICOT_PYTHON. Without it that part is left out.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np
from generate import ChatMaker
from measure import HERE, Goal, Run, command, print_goals, run_task, save, spread

from adp.curation.texts.vectors import unit

ROUNDS = 3
DIMENSIONS = 384
CLUSTERS = 400
THRESHOLD = 0.95
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
"""A thread that waits for another one burns CPU seconds, so all sides get one."""


def _task(name: str, python: str = sys.executable, sample: bool = False, **arguments: Any) -> Run:
    script = HERE / "coreset_tasks.py"
    return run_task(
        name, arguments, sample=sample, script=script, python=python, environment=ONE_THREAD
    )


def _cpu(run: Run) -> float:
    return float(run.answer["work"]["cpu"])


def _matrix(rows: int, seed: int) -> Any:
    """Unit vectors in clusters with noise; one in ten is another one with less noise."""
    random = np.random.default_rng(seed)
    centers = random.standard_normal((CLUSTERS, DIMENSIONS))
    matrix = centers[random.integers(0, CLUSTERS, rows)]
    matrix = matrix + 0.8 * random.standard_normal((rows, DIMENSIONS))
    copies = random.choice(rows, (2, rows // 20), replace=False)
    noise = random.standard_normal((rows // 20, DIMENSIONS)) * random.random((rows // 20, 1))
    matrix[copies[0]] = matrix[copies[1]] + 0.6 * noise
    return unit(matrix)


def _radius(matrix: Any, rows: list[int]) -> float:
    """The largest distance to a selected row, in float64."""
    wide = matrix.astype(np.float64)
    length = (wide * wide).sum(axis=1)
    products = wide @ wide[rows].T
    return float(np.sqrt((length + (length[rows] - 2 * products).min(axis=1)).max()))


def _objective(matrix: Any, rows: list[int]) -> float:
    """The sum of the highest cosines with a selected row, at least 0, in float64."""
    wide = matrix.astype(np.float64)
    return float(np.maximum((wide @ wide[rows].T).max(axis=1), 0).sum())


def _k_center(data: Path, rows: int, size: int) -> tuple[list[Goal], dict[str, Any]]:
    matrix = _matrix(rows, 1)
    path = str(data / "k_center.npy")
    np.save(path, matrix)
    ours, plain = [], []
    for _ in range(ROUNDS):
        done = _task("k_center", data=path, size=size)
        first = done.answer["rows"][0]
        base = _task("k_center_plain", data=path, size=size, first=first)
        ours.append(_cpu(done))
        plain.append(_cpu(base))
    radius = _radius(matrix, done.answer["rows"])
    other = _radius(matrix, base.answer["rows"])
    random = np.random.default_rng(2).permutation(rows)[:size].tolist()
    ratios = [b / a for a, b in zip(ours, plain, strict=True)]
    sampled = _task("k_center", sample=True, data=path, size=size)
    note = f"{min(ratios):.1f} to {max(ratios):.1f}"
    goals = [
        Goal("k-center, against plain greedy", statistics.median(ratios), 4, "x", note=note),
        Goal("  radius, against plain greedy", radius / other, 1.0001, at_most=True),
        Goal("  ours", statistics.median(ours), None, "CPU s"),
        Goal("  plain greedy", statistics.median(plain), None, "CPU s"),
        Goal("  peak rss", sampled.peaks["rss"], None, "MB"),
    ]
    numbers = {
        "rows": rows,
        "size": size,
        "ours": spread(ours),
        "plain": spread(plain),
        "radius": {"ours": radius, "plain": other, "random": _radius(matrix, random)},
        "same_rows": done.answer["rows"] == base.answer["rows"],
    }
    return goals, numbers


def _facility(
    data: Path, rows: int, size: int, apricot: str | None
) -> tuple[list[Goal], dict[str, Any]]:
    matrix = _matrix(rows, 3)
    path = str(data / "facility.npy")
    np.save(path, matrix)
    ours, others, again = [], [], []
    numbers: dict[str, Any] = {"rows": rows, "size": size}
    for _ in range(ROUNDS):
        done = _task("facility", data=path, size=size)
        ours.append(_cpu(done))
        if apricot:
            base = _task("facility_apricot", apricot, data=path, size=size)
            others.append(_cpu(base))
            again.append(float(base.answer["again"]["cpu"]))
    random = np.random.default_rng(2).permutation(rows)[:size].tolist()
    objective = {
        "ours": _objective(matrix, done.answer["rows"]),
        "random": _objective(matrix, random),
    }
    numbers |= {"ours": spread(ours), "objective": objective}
    goals = [Goal("facility location", statistics.median(ours), None, "CPU s")]
    if apricot:
        objective["apricot"] = _objective(matrix, base.answer["rows"])
        ratios = [b / a for a, b in zip(ours, others, strict=True)]
        note = f"{min(ratios):.1f} to {max(ratios):.1f}"
        numbers |= {"apricot": spread(others), "apricot_again": spread(again)}
        goals += [
            Goal("  against apricot", statistics.median(ratios), 8, "x", note=note),
            Goal("  objective, against it", objective["ours"] / objective["apricot"], 0.995),
            Goal("  apricot", statistics.median(others), None, "CPU s"),
            Goal("  apricot, a second fit", statistics.median(again), None, "CPU s"),
        ]
    return goals, numbers


def _near(data: Path, rows: int) -> tuple[list[Goal], dict[str, Any]]:
    path = str(data / "k_center.npy")
    done = [_task("stars", data=path, threshold=THRESHOLD) for _ in range(ROUNDS)]
    base = [_task("all_pairs", data=path, threshold=THRESHOLD) for _ in range(ROUNDS)]
    ours, others = [_cpu(run) for run in done], [_cpu(run) for run in base]
    ratio = statistics.median(others) / statistics.median(ours)
    goals = [
        Goal("semantic duplicates, against all pairs", ratio, None, "x"),
        Goal("  ours", statistics.median(ours), None, "CPU s"),
    ]
    numbers = {
        "rows": rows,
        "threshold": THRESHOLD,
        "ours": spread(ours),
        "all_pairs": spread(others),
        "gone": done[0].answer["gone"],
        "with_a_near_one_before": base[0].answer["near"],
    }
    return goals, numbers


def _vectors(data: Path, megabytes: float) -> tuple[list[Goal], dict[str, Any]]:
    store = data / f"coreset-{megabytes:g}"
    if not store.exists():
        source = data / "coreset.jsonl"
        maker, size, count = ChatMaker(1), 0, 0
        with source.open("w", encoding="utf-8") as file:
            while size < megabytes * 1e6:
                size += file.write(json.dumps(maker.record(count), ensure_ascii=False) + "\n")
                count += 1
        run_task("convert", {"source": str(source), "out": str(store), "workers": 1})
        source.unlink()
    done = [_task("vectors", store=str(store)) for _ in range(ROUNDS)]
    sampled = _task("vectors", sample=True, store=str(store))
    speeds = [run.answer["characters"] / 1e6 / _cpu(run) for run in done]
    goals = [
        Goal("vectors of words", statistics.median(speeds), None, "MB/CPU s"),
        Goal("  peak rss", sampled.peaks["rss"], None, "MB"),
    ]
    numbers = {
        "text_mb": round(done[0].answer["characters"] / 1e6, 1),
        "rows": done[0].answer["rows"],
        "mb_per_cpu_second": spread(speeds),
    }
    return goals, numbers


def _with_apricot() -> str | None:
    if importlib.util.find_spec("apricot"):
        return sys.executable
    return os.environ.get("APRICOT_PYTHON")


def run(data: Path, *, small: bool, apricot: str | None = None) -> list[Goal]:
    """Measure, print and save; the generated files go to ``data``."""
    apricot = apricot or _with_apricot()
    rows, size = (5000, 100) if small else (50_000, 1000)
    numbers: dict[str, Any] = {}
    goals, numbers["k_center"] = _k_center(data, rows, size)
    more, numbers["facility_location"] = _facility(
        data, 1000 if small else 5000, 50 if small else 250, apricot
    )
    goals += more
    more, numbers["near"] = _near(data, rows)
    goals += more
    more, numbers["vectors"] = _vectors(data, 5 if small else 100)
    goals += more
    print_goals(f"Coresets of {rows:,} vectors of {DIMENSIONS} dimensions", goals)
    if not apricot:
        print("  apricot-select is not there; see the head of bench_coreset.py")
    save("coreset", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__, apricot="a Python that has apricot-select")
