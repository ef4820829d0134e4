"""Streaming to a trainer: `adp.stream` against `datasets` over one nested file of the same content.

    python benchmarks/bench_stream.py [--count 20000] [--data DIR]

Each way runs in a process of its own: CPU seconds of going through all trajectories once, and the
peak of its memory. Both shuffle with a buffer of 10,000 rows.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bench_query import make_data
from measure import Goal, command, print_goals, run_task, save

BUFFER = 10_000
COLUMNS = [
    "trajectory_id", "success", "steps.source", "steps.text", "steps.reasoning",
    "steps.calls.call_id", "steps.calls.name", "steps.calls.arguments",
    "steps.observations.call_id", "steps.observations.text",
]  # fmt: skip
"""What the nested file holds."""

WAYS = {
    "in order, Arrow": {"shuffle": False, "rows": False},
    "shuffled, Arrow": {"shuffle": True, "rows": False},
    "in order, dicts": {"shuffle": False, "rows": True},
    "shuffled, dicts": {"shuffle": True, "rows": True},
}


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _through(items: Iterable[Any]) -> dict[str, Any]:
    """Go through batches or rows, and count the rows."""
    started = _cpu()
    count = sum(getattr(item, "num_rows", 1) for item in items)
    return {"rows": count, "cpu": _cpu() - started}


def ours(store: str, shuffle: bool, rows: bool) -> dict[str, Any]:
    """Stream by adp."""
    import adp

    stream = adp.stream(store, shuffle=BUFFER if shuffle else False, columns=COLUMNS)
    return (
        _through(row for batch in stream for row in batch.to_pylist()) if rows else _through(stream)
    )


def theirs(nested: str, shuffle: bool, rows: bool) -> dict[str, Any]:
    """Stream by datasets."""
    os.environ["HF_DATASETS_OFFLINE"] = "1"
    from datasets import load_dataset

    dataset = load_dataset("parquet", data_files=nested, streaming=True, split="train")
    if shuffle:
        dataset = dataset.shuffle(seed=0, buffer_size=BUFFER)
    return _through(dataset if rows else dataset.with_format("arrow").iter(256))


def run(data: Path, *, small: bool, count: int = 20_000) -> list[Goal]:
    """Measure, print and save; the generated files go to ``data``."""
    count = 1_000 if small else count
    store, nested, facts = make_data(data, count)
    goals: list[Goal] = []
    numbers: dict[str, Any] = {"data": facts}
    for name, way in WAYS.items():
        sides = {
            "ours": run_task("ours", {"store": str(store), **way}, script=__file__),
            "theirs": run_task("theirs", {"nested": str(nested), **way}, script=__file__),
        }
        micro = {side: 1e6 * done.answer["cpu"] / count for side, done in sides.items()}
        assert {done.answer["rows"] for done in sides.values()} == {count}, "rows are missing"
        memory = {side: done.max_rss for side, done in sides.items()}
        numbers[name] = {"cpu_microseconds": micro, "max_rss": memory}
        note = (
            f"{micro['ours']:.0f} us and {memory['ours']:.0f} MB; datasets {micro['theirs']:.0f} us"
        )
        goals.append(
            Goal(name, micro["theirs"] / micro["ours"], None, "x",
                 note=f"{note} and {memory['theirs']:.0f} MB")
        )  # fmt: skip
    print_goals(f"Streaming {count:,} trajectories, CPU against `datasets`", goals)
    save("stream", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__, {"ours": ours, "theirs": theirs})
