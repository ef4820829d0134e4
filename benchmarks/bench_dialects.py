"""Actions in texts: the grammar alone, conversion with a dialect, and what a choice costs others.

    python benchmarks/bench_dialects.py [--megabytes 200] [--base REV] [--rounds 3] [--data DIR]

The base is a commit without dialects; both sides run the same commands on the same files with the
same packages, in turn, each in a process of its own with one worker. Ratios are taken per round,
ours to the base's: 1.03 means 3 % more CPU.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from bench_against import ROOT, worktree
from chat_shapes import write_shape
from dialect_runs import NAMES, write_runs, write_small_files
from measure import Goal, command, print_goals, run_command, run_task, save, spread

LIMIT = 1.03
"""Ratio that the choice of a dialect may cost chats that have none."""

PART = 5
"""One part in so many of the generated runs is converted."""

_PROGRAM = "import sys; from adp.cli.main import main; sys.exit(main())"


def grammar(path: str, name: str) -> dict[str, Any]:
    """A task: CPU seconds of taking apart all texts of a file, and their megabytes."""
    from adp.converters.text_calls.apply import TextParser
    from adp.converters.text_calls.registry import dialect
    from adp_schema.row_changes import TrajectoryRows

    parser = TextParser(dialect(name))
    sources = {"assistant": "agent", "system": "system", "user": "user"}
    used, size = 0.0, 0
    for messages in _chats(Path(path)):
        steps = [
            {"step": index, "source": sources[it["role"]], "kind": "message", "text": it["content"]}
            for index, it in enumerate(messages)
        ]
        size += sum(len(it["content"].encode()) for it in messages)
        run = TrajectoryRows({"trajectory_id": "t"}, steps)
        started = time.process_time()
        parser.change(run)
        used += time.process_time() - started
    return {"cpu": used, "megabytes": size / 1e6, "calls": parser.counts["calls"]}


def _chats(path: Path) -> Iterator[list[dict[str, str]]]:
    with path.open("rb") as lines:
        for line in lines:
            yield msgspec.json.decode(line)["messages"]


def converted(source: Path, chats: Path, out: Path, *options: str) -> float:
    """CPU seconds of ``adp convert`` of a checkout, with its children."""
    shutil.rmtree(out, ignore_errors=True)
    words = ["convert", str(chats), "-o", str(out), "--workers", "1", *options]
    environment = {"PYTHONPATH": str(source / "src")}
    used = run_command([sys.executable, "-c", _PROGRAM, *words], environment=environment).cpu
    shutil.rmtree(out)
    return used


def _of_dialect(name: str, data: Path, base: Path, megabytes: float, rounds: int) -> dict[str, Any]:
    """Megabytes a CPU second of the grammar, and of conversion with and without it."""
    path, part = data / f"{name}-{megabytes:g}.jsonl", data / f"{name}-{megabytes / PART:g}.jsonl"
    for place, size in ((path, megabytes), (part, megabytes / PART)):
        if not place.exists():
            write_runs(name, place, size)
    task = {"path": str(path), "name": name}
    alone = [run_task("grammar", task, script=Path(__file__).resolve()).answer for _ in range(2)]
    rates = [it["megabytes"] / it["cpu"] for it in alone]
    sides = {"found": (ROOT, ()), "none": (ROOT, ("--dialect", "none")), "base": (base, ())}
    used: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(rounds):
        for side in sorted(sides, reverse=bool(number % 2)):
            source, options = sides[side]
            used[side].append(converted(source, part, data / "out", *options))
    size = part.stat().st_size / 1e6
    return {
        "megabytes_of_text": alone[0]["megabytes"],
        "calls": alone[0]["calls"],
        "grammar_mb_per_cpu_second": spread(rates),
        "converted_megabytes": size,
        "convert_cpu": {side: spread(values) for side, values in used.items()},
        "convert_mb_per_cpu_second": {side: size / min(it) for side, it in used.items()},
    }


def _of_chats(chats: Path, base: Path, out: Path, rounds: int) -> dict[str, Any]:
    """CPU seconds of converting chats without actions, on both sides."""
    used: dict[str, list[float]] = {"ours": [], "base": []}
    for number in range(rounds):
        for side in ("base", "ours") if number % 2 else ("ours", "base"):
            used[side].append(converted(ROOT if side == "ours" else base, chats, out))
    ratios = [ours / theirs for ours, theirs in zip(used["ours"], used["base"], strict=True)]
    return {**{side: spread(it) for side, it in used.items()}, "ratios": spread(ratios)}


def run(
    data: Path, *, small: bool, megabytes: float = 200, base: str = "77413e6f", rounds: int = 3
) -> list[Goal]:
    """Measure, print and save; the generated files go to ``data``."""
    files = 1000
    if small:
        megabytes, rounds, files = 5, 1, 100
    from adp.converters.text_calls.registry import DIALECTS

    plain, folder = data / f"plain-{megabytes / 2:g}.jsonl", data / f"files-{files}"
    if not plain.exists():
        write_shape("plain", plain, megabytes / 2)
    write_small_files(folder, files)
    numbers: dict[str, Any] = {"base": base, "megabytes": megabytes, "rounds": rounds}
    goals: list[Goal] = []
    with worktree(base) as place:
        for name in (name for name in NAMES if name in DIALECTS):
            figures = _of_dialect(name, data, place, megabytes, rounds)
            numbers[name] = figures
            rates = figures["convert_mb_per_cpu_second"]
            rate = figures["grammar_mb_per_cpu_second"]["max"]
            goals += [
                Goal(f"{name}: grammar alone", rate, unit="MB / CPU s"),
                Goal("  convert, dialect found", rates["found"], unit="MB / CPU s"),
                Goal("  convert --dialect none", rates["none"], unit="MB / CPU s"),
                Goal("  convert, commit without dialects", rates["base"], unit="MB / CPU s"),
            ]
        chats = {"one file of chats": plain, f"{files:,} files of a chat about code": folder}
        for title, source in chats.items():
            figures = _of_chats(source, place, data / "out", 2 * rounds + 1)
            numbers[title] = figures
            ratios = figures["ratios"]
            note = f"{ratios['min']:.3f} to {ratios['max']:.3f}"
            value = median(ratios["all"])
            goals.append(Goal(title, value, LIMIT, "times", at_most=True, note=note))
    print_goals(f"Actions in texts, {megabytes:g} MB", goals)
    save("dialect_speed", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    helps = {"base": "commit without dialects", "megabytes": "size of the generated runs"}
    command(run, __doc__, {"grammar": grammar}, **helps)
