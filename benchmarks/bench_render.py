"""Rendering: tokens a CPU second, against TRL's own preparation of the same runs.

python benchmarks/bench_render.py [--runs 200] [--data DIR]
"""

from __future__ import annotations

import shutil
import statistics
from pathlib import Path
from typing import Any

import agent_runs
from measure import HERE, Goal, Run, command, print_goals, run_task, save, spread

ROUNDS = 3
TARGET = 2.0
MEMORY_LIMIT = 1_000
TEMPLATES: dict[str, dict[str, Any]] = {
    "qwen3_training": {},
    # It knows no reasoning. TRL leaves it out then; ours writes it into the text, unless told so.
    "qwen2_5_training": {"reasoning": "strip"},
}
MAIN = "qwen3_training"
WINDOW = 16_384
QUIET = {
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "PYTHONWARNINGS": "ignore",
}
"""One thread, no network, no warnings."""


def task(name: str, arguments: dict[str, Any], *, sample: bool = False) -> Run:
    """Run a task of ``render_tasks.py`` in a process of its own."""
    script = HERE / "render_tasks.py"
    return run_task(name, arguments, sample=sample, script=script, environment=QUIET)


class Bench:
    """The runs, as a store and as TRL takes them, and the tokenizer.

    Args:
        data: folder for generated files.
        runs: number of runs.
    """

    def __init__(self, data: Path, runs: int) -> None:
        folder = data / f"render-{runs}"
        folder.mkdir(exist_ok=True)
        self._store, self._dataset = folder / "store", folder / "dataset"
        self._out = folder / "out"
        self._model = agent_runs.tokenizer(data / "render-tokenizer")
        source = folder / "runs.jsonl"
        if not self._store.exists():
            agent_runs.write_runs(source, runs)
            run_task("convert", {"source": str(source), "out": str(self._store), "workers": 1})
            task("save_dataset", {"source": str(source), "out": str(self._dataset)})
        self.megabytes = source.stat().st_size / 1e6

    def ours(
        self, name: str, *, workers: int = 1, sample: bool = False, **options: Any
    ) -> tuple[Run, float]:
        """Render the store; the run, and tokens a CPU second."""
        shutil.rmtree(self._out, ignore_errors=True)
        arguments = {
            "store": str(self._store), "model": str(self._model), "out": str(self._out),
            "name": name, "workers": workers, "options": options,
        }  # fmt: skip
        run = task("render", arguments, sample=sample)
        return run, run.answer["tokens"] / run.answer["work"]["cpu"]

    def theirs(self, name: str, *, digest: bool = False, sample: bool = False) -> tuple[Run, float]:
        """TRL's preparation of the dataset; the run, and tokens a CPU second."""
        arguments = {
            "dataset": str(self._dataset), "model": str(self._model), "name": name,
            "digest": digest,
        }  # fmt: skip
        run = task("trl_prepare", arguments, sample=sample)
        return run, run.answer["tokens"] / run.answer["work"]["cpu"]

    def digest(self) -> str:
        """Of the rows that `ours` wrote last."""
        return str(task("our_digest", {"out": str(self._out)}).answer["digest"])

    def packing(self) -> dict[str, Any]:
        """Of the rows that `ours` wrote last."""
        return task("packing", {"out": str(self._out), "length": WINDOW}).answer


def _against(bench: Bench, name: str, rounds: int) -> tuple[list[Goal], dict[str, Any]]:
    """Speeds of both under one template, after a look at whether ids and labels are equal."""
    options = TEMPLATES[name]
    bench.ours(name, **options)
    ours = bench.digest()
    if ours != bench.theirs(name, digest=True)[0].answer["digest"]:
        raise RuntimeError(f"{name}: the labels are not those of TRL")
    speeds: dict[str, list[float]] = {"ours": [], "trl": []}
    for _ in range(rounds):
        run, speed = bench.ours(name, **options)
        speeds["ours"].append(speed)
        speeds["trl"].append(bench.theirs(name)[1])
    ratios = [a / b for a, b in zip(speeds["ours"], speeds["trl"], strict=True)]
    note = f"{min(ratios):.2f} to {max(ratios):.2f}"
    middle = {side: statistics.median(values) / 1e3 for side, values in speeds.items()}
    goals = [
        Goal(f"{name}, against TRL", statistics.median(ratios), TARGET, "x", note=note),
        Goal("  ours", middle["ours"], None, "k tokens/CPU s"),
        Goal("  TRL", middle["trl"], None, "k tokens/CPU s"),
    ]
    facts = {key: run.answer[key] for key in ("rows", "tokens", "trained_tokens", "longest")}
    sides = {side: spread(values, 0) for side, values in speeds.items()}
    return goals, {**facts, "tokens_a_cpu_second": sides, "ratio": spread(ratios)}


def _memory(bench: Bench, name: str) -> tuple[list[Goal], dict[str, float]]:
    ours = bench.ours(name, sample=True)[0].peaks["uss"]
    theirs = bench.theirs(name, sample=True)[0].peaks["uss"]
    note = f"TRL: {theirs:.0f} MB"
    goals = [Goal("peak uss, one process", ours, MEMORY_LIMIT, "MB", at_most=True, note=note)]
    return goals, {"ours_uss": round(ours, 1), "trl_uss": round(theirs, 1)}


def _workers(bench: Bench, name: str) -> tuple[list[Goal], dict[str, float]]:
    walls = {count: bench.ours(name, workers=count)[0].answer["work"]["wall"] for count in (1, 2)}
    goals = [Goal("wall time, 1 worker against 2", walls[1] / walls[2], None, "x")]
    return goals, {f"wall_{count}": round(wall, 2) for count, wall in walls.items()}


def _ways(bench: Bench) -> tuple[list[Goal], dict[str, Any]]:
    """What windows and rewritten history cost, and how full packed rows are."""
    numbers: dict[str, Any] = {}
    goals: list[Goal] = []
    ways: dict[str, tuple[str, dict[str, Any]]] = {
        "every prefix compared": (MAIN, {"check": "all"}),
        f"windows of {WINDOW:,}, sliding": (
            MAIN, {"max_length": WINDOW, "window": "sliding"},
        ),
        "history rewritten, exact": ("qwen3", {}),
        "history rewritten, one row": ("qwen3", {"history": "one_row"}),
    }  # fmt: skip
    for title, (name, options) in ways.items():
        run, speed = bench.ours(name, **options)
        cpu, tokens = run.answer["work"]["cpu"], run.answer["tokens"]
        note = f"{run.answer['rows']:,} rows, {tokens / 1e6:.1f} M tokens, {cpu:.1f} CPU s"
        goals.append(Goal(title, speed / 1e3, None, "k tokens/CPU s", note=note))
        numbers[title] = {"cpu": round(cpu, 2), "rows": run.answer["rows"], "tokens": tokens}
        if "window" in options:
            packed = bench.packing()
            numbers["packing"] = packed
            note = f"batches of four, padded: {packed['padded_share']:.0%}"
            share = packed["packed_share"] * 100
            goals.append(Goal("  packed rows that are no padding", share, None, "%", note=note))
    return goals, numbers


def run(data: Path, *, small: bool, runs: int = 200) -> list[Goal]:
    """Measure, print and save; the generated files go to ``data``."""
    bench = Bench(data, 12 if small else runs)
    rounds = 1 if small else ROUNDS
    goals: list[Goal] = []
    numbers: dict[str, Any] = {"megabytes": round(bench.megabytes, 1)}
    for name in TEMPLATES:
        result, numbers[name] = _against(bench, name, rounds)
        goals += result
    for title, (result, facts) in {
        "memory": _memory(bench, MAIN),
        "workers": _workers(bench, MAIN),
        "ways": _ways(bench),
    }.items():
        goals += result
        numbers[title] = facts
    tokens = numbers[MAIN]["tokens"] / 1e6
    print_goals(f"Rendering of {bench.megabytes:.0f} MB of runs, {tokens:.1f} M tokens", goals)
    save("render", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__)
