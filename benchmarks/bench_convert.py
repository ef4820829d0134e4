"""Conversion: speed against the JSON reader of ``datasets``, and memory.

    python benchmarks/bench_convert.py [--megabytes 500] [--repeats 3] [--data DIR]

Runs alternate (ours, baseline, bare loop, ours with two workers), so that a change of the
machine's load meets all of them. `bench_shapes` does the same with chats of three shapes.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chat_shapes import write_shape
from measure import Goal, Run, command, print_goals, run_task, save, spread

MEMORY_SIZES = (100, 500, 1_000)
MEMORY_LIMIT = 500
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "ours, 1 worker": ("convert", {"workers": 1}),
    "datasets": ("load_dataset", {}),
    "bare loop": ("bare_loop", {}),
    "ours, 2 workers": ("convert", {"workers": 2}),
}


def input_file(data: Path, megabytes: float, shape: str = "long") -> Path:
    """The generated file of this size; made when it is not there."""
    path = data / f"{shape}-{megabytes:g}.jsonl"
    if not path.exists():
        print(f"  making {path.name} ...", flush=True)
        staged = path.with_suffix(".part")
        write_shape(shape, staged, megabytes)
        staged.rename(path)
    return path


def _run(kind: str, source: Path, out: Path, *, sample: bool = False) -> Run:
    """Run one kind into an empty folder, which is removed afterwards."""
    task, options = KINDS[kind]
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    run = run_task(task, {"source": str(source), "out": str(out), **options}, sample=sample)
    shutil.rmtree(out)
    return run


def measure_speed(
    source: Path, out: Path, repeats: int, kinds: Sequence[str] = tuple(KINDS)
) -> dict[str, Any]:
    """Wall and CPU seconds of each kind, alternating."""
    runs: dict[str, list[Run]] = {kind: [] for kind in kinds}
    source.read_bytes()  # warms the file cache
    for number in range(repeats):
        for kind, done in runs.items():
            done.append(_run(kind, source, out))
            print(f"  {number + 1}/{repeats} {kind}: {done[-1].wall:.1f} s", flush=True)
    megabytes = source.stat().st_size / 1e6
    numbers: dict[str, Any] = {"input_megabytes": round(megabytes, 1)}
    for kind, done in runs.items():
        cpu = [run.cpu for run in done]
        answer = {key: value for key, value in done[-1].answer.items() if key != "work"}
        numbers[kind] = {
            "process_wall": spread([run.wall for run in done]),
            "process_cpu": spread(cpu),
            "work_wall": spread([run.answer["work"]["wall"] for run in done]),
            "work_cpu": spread([run.answer["work"]["cpu"] for run in done]),
            "megabytes_per_cpu_second": round(megabytes / statistics.median(cpu), 1),
            "result": answer,
        }
    return numbers


def measure_parts(source: Path, out: Path) -> dict[str, Any]:
    """CPU seconds by part, ours and the bare loop."""
    parts = {}
    for name, task, more in (
        ("ours", "convert_parts", {}),
        ("bare loop", "bare_loop", {"parts": True}),
    ):
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        run = run_task(task, {"source": str(source), "out": str(out), **more})
        parts[name] = {part: round(value, 3) for part, value in run.answer["parts"].items()}
    shutil.rmtree(out)
    return parts


def measure_memory(data: Path, out: Path, sizes: tuple[float, ...]) -> dict[str, Any]:
    """Peaks of memory by size of the input, for one and two workers and the baseline."""
    memory: dict[str, Any] = {}
    for size in sizes:
        source = input_file(data, size)
        for kind in ("ours, 1 worker", "ours, 2 workers", "datasets"):
            if kind == "datasets" and size != sizes[0]:
                continue
            run = _run(kind, source, out, sample=True)
            peaks = {name: round(value, 1) for name, value in run.peaks.items()}
            peaks |= {"max_rss": round(run.max_rss, 1), "processes": run.processes}
            memory.setdefault(kind, {})[f"{size:g} MB"] = peaks
            print(f"  memory, {size:g} MB, {kind}: {peaks['uss']:.0f} MB uss", flush=True)
    return memory


def _ratio(numbers: dict[str, Any], first: str, second: str, what: str) -> tuple[float, str]:
    """Median over the rounds of one kind's seconds by another's, and the extremes."""
    pairs = list(zip(numbers[first][what]["all"], numbers[second][what]["all"], strict=True))
    results = [result / two for result, two in pairs]
    return statistics.median(results), f"{min(results):.2f} to {max(results):.2f}"


def _speed_goals(numbers: dict[str, Any]) -> list[Goal]:
    gain, note = _ratio(numbers, "datasets", "ours, 1 worker", "process_cpu")
    child, inner_note = _ratio(numbers, "datasets", "ours, 1 worker", "work_cpu")
    bare, bare_note = _ratio(numbers, "ours, 1 worker", "bare loop", "work_cpu")
    two, two_note = _ratio(numbers, "ours, 1 worker", "ours, 2 workers", "process_wall")
    goals = [
        Goal("throughput per CPU second, ours / datasets", gain, 1.5, "x", note=f"{note}; goal 2"),
        Goal("  the same without imports", child, None, "x", note=inner_note),
        Goal("CPU seconds without imports, ours / bare loop", bare, None, "x", note=bare_note),
        Goal("wall, 1 worker / 2 workers", two, 1.6, "x", note=two_note),
    ]
    for kind in KINDS:
        wall = numbers[kind]["process_wall"]
        note = f"{wall['median']:.1f} s wall ({wall['min']:.1f} to {wall['max']:.1f})"
        rate = numbers[kind]["megabytes_per_cpu_second"]
        goals.append(Goal(f"input read by {kind}", rate, None, "MB / CPU s", note=note))
    return goals


def _memory_goals(memory: dict[str, Any]) -> list[Goal]:
    goals = []
    for kind in ("ours, 1 worker", "ours, 2 workers"):
        sizes = memory[kind]
        for what in ("uss", "rss"):
            values = [peaks[what] for peaks in sizes.values()]
            listed = ", ".join(f"{peaks[what]:.0f} at {size}" for size, peaks in sizes.items())
            name = f"peak {what} of a process, {kind}"
            goals.append(Goal(name, max(values), MEMORY_LIMIT, "MB", at_most=True, note=listed))
            growth = max(values[0], values[-1]) / min(values[0], values[-1])
            name = f"largest against smallest input, {what}, {kind}"
            goals.append(Goal(name, growth, 1.2, "x", at_most=True))
    return goals


def _print_parts(parts: dict[str, Any], megabytes: float) -> None:
    print(f"\nCPU seconds by part, {megabytes:g} MB, one run with timers")
    names = list(parts["ours"]) + [name for name in parts["bare loop"] if name not in parts["ours"]]
    for name in names:
        ours, bare = parts["ours"].get(name, 0.0), parts["bare loop"].get(name, 0.0)
        print(f"  {name:24}{ours:8.2f}   bare loop{bare:8.2f}")


def run(data: Path, *, small: bool, megabytes: float = 500, repeats: int = 3) -> list[Goal]:
    """Measure, print and save; the generated files go to ``data``."""
    sizes: tuple[float, ...] = MEMORY_SIZES
    if small:
        megabytes, repeats, sizes = 20, 2, (60, 120)
    out = data / "out"
    source = input_file(data, megabytes)
    numbers = measure_speed(source, out, repeats)
    numbers["parts"] = measure_parts(source, out)
    numbers["memory"] = measure_memory(data, out, sizes)
    goals = _speed_goals(numbers) + _memory_goals(numbers["memory"])
    print_goals(f"Conversion of {megabytes:g} MB" + (" (small run)" if small else ""), goals)
    _print_parts(numbers["parts"], megabytes)
    save("convert", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__)
