"""A whole recipe over 100,000 trajectories: time, memory, and rows by stage.

python benchmarks/bench_curate.py [--count 100000] [--workers 2] [--data DIR]
"""

from __future__ import annotations

import copy
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from generate import StoreMaker, Words, trajectories
from measure import Goal, command, print_goals, run_task, save

ATTEMPTS = 4
"""Attempts at each task."""

MEMORY_LIMIT = 2_000
ITEMS = 200
"""Items of the made-up benchmark, of which the first half stand in tasks."""

RECIPE: dict[str, Any] = {
    "recipe": 1,
    "seed": 17,
    "ops": [
        {"measure": {}},
        {"pairs": {"rule": "attempts", "max_per_task": 1}},
        {"filter": {"sql": "success", "max": {"tokens": 20_000}}},
        {"decontaminate": {"against": [{"file": "benchmark.jsonl", "name": "made up"}]}},
        {"dedup_exact": {}},
        {"dedup_near": {}},
        {"coreset": {"method": "k_center", "share": 0.5, "coverage": False}},
        {"mix": {"method": "temperature", "tokens": 20_000_000}},
        {"mask": {"policy": ["errors", "repeated"]}},
        {"split": {"shares": {"train": 0.9, "test": 0.1}}},
    ],
    "outputs": {
        "train": {"where": "split = 'train'"},
        "test": {"where": "split = 'test'"},
        "pairs": {"take": "pairs"},
    },
}
"""The recipe that is measured; the inputs come with the data."""


def runs(count: int) -> Iterator[dict[str, Any]]:
    """Attempts at tasks, under one system prompt, with doubles, near doubles and errors."""
    draw, words = random.Random(5), Words(5)
    prompt = words.text(4_000)
    before: dict[str, Any] = {}
    task = ""
    for index, row in enumerate(trajectories(count, 3)):
        if index % ATTEMPTS == 0:
            task = row["messages"][1]["content"]
        if index % 25 == 7:  # the run before it once more, with a word changed or without
            row = {**copy.deepcopy(before), "id": row["id"]}
            row["columns"]["task_id"] = f"again-{index}"
            if index % 2:
                row["messages"][-1]["content"] += " indeed"
        else:
            row["messages"][0]["content"] = prompt
            row["messages"][1]["content"] = task
            for message in row["messages"]:
                if message["role"] == "tool" and draw.random() < 0.1:
                    message["content"] = "Error: " + message["content"]
                    message["is_error"] = True
            row["columns"] = {
                "task_id": f"task-{index // ATTEMPTS}",
                "reward": round(draw.random(), 3),
                "agent_model": draw.choice(("small", "large")),
            }
        before = row
        yield row


def make(data: Path, count: int) -> Path:
    """A store of runs, and a benchmark of which some items are among their tasks."""
    folder = data / f"curate-{count}"
    if (folder / "runs" / "adp.json").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    maker, words = StoreMaker(folder / "runs"), Words(11)
    items = []
    for index, row in enumerate(runs(count)):
        if index % (count // (ITEMS // 2)) == 0:
            items.append(row["messages"][1]["content"])
        maker.add(row)
    maker.finish()
    items += [words.text(400) for _ in range(ITEMS - len(items))]
    lines = [json.dumps({"id": f"item-{n}", "question": text}) for n, text in enumerate(items)]
    (folder / "benchmark.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def run(data: Path, *, small: bool, count: int = 100_000, workers: int = 2) -> list[Goal]:
    """Measure, print and save; the generated files go to ``data``."""
    count = 2_000 if small else count
    folder = make(data, count)
    recipe = {**RECIPE, "inputs": {"runs": str(folder / "runs")}}
    out = folder / "out"
    arguments = {"recipe": recipe, "folder": str(folder), "out": str(out), "workers": workers}
    shutil.rmtree(out, ignore_errors=True)
    timed = run_task("curate", arguments)
    shutil.rmtree(out)
    sampled = run_task("curate", arguments, sample=True)
    shutil.rmtree(out)
    report = timed.answer["report"]
    goals = [
        Goal("whole recipe, wall", timed.wall, None, "s", at_most=True),
        Goal("whole recipe, CPU", timed.cpu, None, "CPU s"),
        Goal("trajectories a CPU second", count / timed.cpu, None, ""),
        Goal("peak uss of all processes", sampled.peaks["tree_uss"], MEMORY_LIMIT, "MB", True),
    ]
    goals += [
        Goal(f"  {part['part']}", part["cpu"], None, "CPU s", note=f"{part['wall']} s")
        for part in timed.answer["parts"]
    ]
    print_goals(f"A recipe over {count:,} trajectories, {workers} workers", goals)
    stages = [
        {name: stage[name] for name in ("name", "in", "dropped", "out", "pairs")}
        for stage in report["stages"]
    ]
    for stage in stages:
        print(f"  {stage['name']}: {stage['in']:,} - {stage['dropped']:,} = {stage['out']:,}")
    numbers = {
        "count": count,
        "workers": workers,
        "stages": stages,
        "outputs": report["outputs"],
        "parts": timed.answer["parts"],
        "peaks": {name: round(value, 1) for name, value in sampled.peaks.items()},
    }
    save("curate", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__)
