"""Near deduplication: planted pairs found beside a shared prefix, speed and memory.

python benchmarks/bench_dedup.py [--documents 200000] [--data DIR]

The baseline is datasketch, which is not in the dev extra: ``pip install 'datasketch>=2'``. Without
it the rest is measured.
"""

from __future__ import annotations

import importlib.util
import shutil
import statistics
from pathlib import Path
from typing import Any

import numpy as np
from measure import Goal, command, print_goals, run_task, save, spread
from planted import Run, runs, write_store

ROUNDS = 3
PREFIXES = (0, 200, 400, 600, 1000)
RATIO = 4.0
SPEED = 15_000
MEMORY_LIMIT = 2_000

_LARGE = ("work", "pairs")
"""What of an answer is not noted in the results."""

Numbers = np.ndarray[Any, Any]


class Truth:
    """Exact similarities of the planted pairs, on word numbers, apart from the measured code."""

    def __init__(self, made: list[Run]) -> None:
        self._numbers: dict[str, int] = {}
        sets = [self._shingles(run) for run in made]
        places = {run.name: place for place, run in enumerate(made)}
        different = list({native.tobytes(): native for native in sets}.values())
        every, counts = np.unique(np.concatenate(different), return_counts=True)
        common = every[counts > max(0.01 * len(different), 10)]
        self._sets = [np.setdiff1d(native, common, assume_unique=True) for native in sets]
        self.near = {
            (places[run.like], place)
            for place, run in enumerate(made)
            if run.like is not None and self.jaccard(places[run.like], place) >= 0.8
        }

    def _shingles(self, run: Run) -> Numbers:
        results = []
        for message in run.texts:
            words = [self._numbers.setdefault(w, len(self._numbers) + 1) for w in message.split()]
            values = np.array(words, np.uint64)
            mixed = np.zeros(len(words) - 4, np.uint64)
            for place in range(5):
                mixed = mixed * np.uint64(1_000_003) + values[place : len(words) - 4 + place]
            results.append(mixed)
        return np.unique(np.concatenate(results))

    def jaccard(self, number: int, other: int) -> float:
        """Exact similarity of two documents."""
        left, right = self._sets[number], self._sets[other]
        shared = len(np.intersect1d(left, right, assume_unique=True))
        return shared / (len(left) + len(right) - shared)


def _pairs_of(data: Path, documents: int, prefix: int) -> dict[str, Any]:
    """What the op finds of the planted pairs."""
    made = list(runs(documents, prefix=prefix))
    store = data / f"planted-{prefix}"
    shutil.rmtree(store, ignore_errors=True)
    write_store(store, iter(made))
    answer = run_task("dedup_near", {"store": str(store), "workers": 1}).answer
    shutil.rmtree(store)
    truth = Truth(made)
    names = {f"made_up/{run.name}": place for place, run in enumerate(made)}
    # The generator numbers the trajectories 1000, 2000, ...
    pairs = {
        (min(pair), max(pair))
        for seq, anchor in answer["pairs"]
        for pair in [(seq // 1000 - 1, names[anchor])]
    }
    return {
        "prefix": prefix,
        "true_pairs": len(truth.near),
        "recall": len(truth.near & pairs) / len(truth.near),
        "removed": answer["summary"]["duplicates"],
        "largest_cluster": answer["summary"]["largest_cluster"],
        "merged_below_0.6": sum(truth.jaccard(*pair) < 0.6 for pair in pairs),
    }


def _speeds(store: Path, documents: int) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """Documents a CPU second, and what was found."""
    some = min(documents, 50_000)
    tasks: dict[str, tuple[str, dict[str, Any]]] = {
        "from files to clusters": ("dedup_near", {"workers": 1}),
        "from shingles to candidates": ("near_candidates", {"documents": some}),
    }
    if importlib.util.find_spec("datasketch"):
        for name, hashed in (("datasketch", False), ("datasketch, numbers", True)):
            tasks[name] = ("near_datasketch", {"documents": some, "hashed": hashed})
    speeds: dict[str, list[float]] = {name: [] for name in tasks}
    results: dict[str, Any] = {}
    for _ in range(ROUNDS):
        for name, (task, more) in tasks.items():
            answer = run_task(task, {"store": str(store), **more}).answer
            count = answer.get("documents", documents)
            speeds[name].append(count / answer["work"]["cpu"])
            results[name] = {key: value for key, value in answer.items() if key not in _LARGE}
    return speeds, results


def run(data: Path, *, small: bool, documents: int = 200_000) -> list[Goal]:
    """Measure, print and save; the generated files go to ``data``."""
    documents = 5_000 if small else documents
    planted = [_pairs_of(data, 2_000 if small else 20_000, prefix) for prefix in PREFIXES]
    store = data / f"near-{documents}"
    if not store.exists():
        write_store(store, runs(documents))
    speeds, result = _speeds(store, documents)
    sampled = run_task("dedup_near", {"store": str(store), "workers": 2}, sample=True)
    removed = [item["removed"] for item in planted]
    middle = {name: statistics.median(values) for name, values in speeds.items()}
    goals = [
        Goal("planted pairs found, at the worst prefix", min(e["recall"] for e in planted), 0.97),
        Goal(
            "removed, against those without a prefix",
            max(abs(item - removed[0]) for item in removed) / removed[0],
            0.03,
            at_most=True,
            note=", ".join(map(str, removed)),
        ),
        Goal(
            "pairs below 0.6 merged",
            sum(item["merged_below_0.6"] for item in planted),
            0,
            at_most=True,
        ),
        *_ratios(speeds),
        Goal("from files to clusters", middle["from files to clusters"], SPEED, "docs/CPU s"),
        *(
            Goal(f"  {name}", value, None, "docs/CPU s")
            for name, value in middle.items()
            if name != "from files to clusters"
        ),
        Goal("peak rss of a process, two workers", sampled.peaks["rss"], MEMORY_LIMIT, "MB", True),
        Goal("peak uss of all together", sampled.peaks["tree_uss"], MEMORY_LIMIT, "MB", True),
    ]
    print_goals(f"Near deduplication of {documents:,} documents", goals)
    numbers = {
        "documents": documents,
        "planted": planted,
        "speeds": {name: spread(values, 0) for name, values in speeds.items()},
        "found": result,
        "peaks": {name: round(value, 1) for name, value in sampled.peaks.items()},
    }
    save("dedup", numbers, goals, small=small)
    return goals


def _ratios(speeds: dict[str, list[float]]) -> list[Goal]:
    """Ours against the baseline, per round."""
    results = []
    pairs = (
        ("all of ours against sketches and index of datasketch", "from files to clusters"),
        ("both from the same shingles to candidates", "from shingles to candidates"),
    )
    for name, ours in pairs:
        if "datasketch" in speeds:
            ratios = [a / b for a, b in zip(speeds[ours], speeds["datasketch"], strict=True)]
            note = f"{min(ratios):.1f} to {max(ratios):.1f}"
            results.append(Goal(name, statistics.median(ratios), RATIO, "x", note=note))
    return results


if __name__ == "__main__":
    command(run, __doc__)
