"""Reading logs: speed and memory by format, and what a repeated history costs in a store.

    python benchmarks/bench_logs.py [--megabytes 40] [--repeats 3] [--data DIR]

Each format has a generated log of the same size (see `log_shapes`), in one file where a file can be
of any size. Chats of the same runs are what the others are measured by. Rounds alternate; the
least CPU seconds of a whole process count, since other work on a machine only adds to them.
"""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from log_documents import LOG_FORMATS, write_log
from log_shapes import RunSource, codex, write_lines
from measure import Goal, Run, command, print_goals, run_task, save, spread

MEMORY_LIMIT = 500
COMPACTIONS = 10
MEASURED_BY = "openai_chat"


def _log(data: Path, name: str, megabytes: float) -> Path:
    """The generated log of a format; made when it is not there."""
    folder = data / f"logs-{megabytes:g}"
    folder.mkdir(exist_ok=True)
    made = [path for path in (folder / f"{name}.jsonl", folder / name) if path.exists()]
    if made:
        return made[0]
    print(f"  making a log of {name} ...", flush=True)
    return write_log(name, folder, megabytes)


def _convert(name: str, source: Path, out: Path, *, sample: bool = False) -> Run:
    """Convert a log into an empty folder, which is removed afterwards."""
    shutil.rmtree(out, ignore_errors=True)
    arguments = {"source": str(source), "out": str(out), "workers": 1, "name": name}
    run = run_task("convert", arguments, sample=sample)
    shutil.rmtree(out)
    counts = run.answer["counts"]
    if not counts["trajectories"] or counts["rejected"]:
        raise RuntimeError(f"the log of {name} was not read: {counts}")
    return run


def _size(path: Path) -> int:
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file())


def measure_formats(data: Path, megabytes: float, repeats: int) -> dict[str, Any]:
    """Seconds and memory of each format, alternating."""
    from adp.converters.registry import formats

    out = data / "out"
    names = (MEASURED_BY, *(name for name in LOG_FORMATS if name in formats))
    sources = {name: _log(data, name, megabytes) for name in names}
    runs: dict[str, list[Run]] = {name: [] for name in sources}
    for number in range(repeats):
        for name, source in sources.items():
            runs[name].append(_convert(name, source, out))
            print(f"  {number + 1}/{repeats} {name}: {runs[name][-1].cpu:.2f} CPU s", flush=True)
    numbers: dict[str, Any] = {}
    for name, done in runs.items():
        size = _size(sources[name]) / 1e6
        cpu = min(run.cpu for run in done)
        work = min(run.answer["work"]["cpu"] for run in done)
        peaks = _convert(name, sources[name], out, sample=True).peaks
        result = {key: value for key, value in done[-1].answer.items() if key != "work"}
        numbers[name] = {
            "input_megabytes": round(size, 1),
            "process_cpu": spread([run.cpu for run in done]),
            "work_cpu": spread([run.answer["work"]["cpu"] for run in done]),
            "megabytes_per_cpu_second": round(size / cpu, 1),
            "megabytes_per_cpu_second_without_imports": round(size / work, 1),
            "memory": {key: round(value, 1) for key, value in peaks.items()},
            "result": result,
        }
    return numbers


def write_compacted(path: Path, turns: int, seed: int = 1) -> None:
    """A log of Codex with ten compactions, each of which repeats the whole history."""
    every = turns // COMPACTIONS
    seen = 0

    def lines() -> Any:
        nonlocal seen
        for line in codex(RunSource(seed), every):
            yield line
            seen += b'"type":"compacted"' in line[:80]
            if seen == COMPACTIONS:
                return

    write_lines(itertools.chain(lines()), path, float("inf"))


def measure_repeats(data: Path, turns: int) -> dict[str, Any]:
    """Sizes of a log that repeats its history, and of its store with and without the raw bytes."""
    from adp.converters.run import ConvertOptions
    from adp.converters.run import convert as run

    source, out = data / "rollout-compacted.jsonl", data / "out"
    write_compacted(source, turns)
    content = source.read_bytes()
    sizes: dict[str, Any] = {"raw": len(content)}
    sizes["raw, zstd"] = len(pa.Codec("zstd", compression_level=3).compress(content))
    for name, keep_raw in (("store", False), ("store with the raw bytes", True)):
        shutil.rmtree(out, ignore_errors=True)
        options = ConvertOptions(format="codex", workers=1, keep_raw=keep_raw)
        run([str(source)], str(out), options=options)
        sizes[name] = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    kept = pq.read_table(next((out / "raw").glob("*.parquet"))).column("data").to_pylist()
    edits = pq.read_table(next((out / "steps").glob("*.parquet"))).column("kind").to_pylist()
    shutil.rmtree(out)
    sizes["the bytes come back"] = kept == [content]
    sizes["context edits"] = edits.count("context_edit")
    return sizes


def _format_goals(numbers: dict[str, Any]) -> list[Goal]:
    rate = "megabytes_per_cpu_second"
    least = numbers[MEASURED_BY][rate] / 2
    goals = []
    for name, measured in numbers.items():
        target = None if name == MEASURED_BY else least
        memory = measured["memory"]["rss"]
        note = f"{measured[f'{rate}_without_imports']:g} without imports"
        goals.append(Goal(f"{name} read", measured[rate], target, "MB / CPU s", note=note))
        limit = MEMORY_LIMIT
        goals.append(Goal("  memory of the process", memory, limit, "MB", at_most=True))
    return goals


def run(data: Path, *, small: bool, megabytes: float = 40, repeats: int = 3) -> list[Goal]:
    """Measure, print and save; the generated logs go to ``data``."""
    turns = 2_000
    if small:
        megabytes, repeats, turns = 4, 1, 200
    numbers: dict[str, Any] = {"formats": measure_formats(data, megabytes, repeats)}
    numbers["repeats"] = sizes = measure_repeats(data, turns)
    goals = _format_goals(numbers["formats"])
    share = sizes["store"] / sizes["raw"]
    note = f"{sizes['raw'] / 1e6:.1f} MB of log; zstd of it {sizes['raw, zstd'] / 1e6:.1f} MB, "
    note += f"store {sizes['store'] / 1e6:.1f} MB"
    name = "store of a Codex log with ten compactions / its size"
    goals.append(Goal(name, share, 0.2, at_most=True, note=note))
    share = sizes["store with the raw bytes"] / sizes["raw"]
    note = "the bytes come back" if sizes["the bytes come back"] else "the bytes do not come back"
    goals.append(Goal("  with the raw bytes in it", share, note=note))
    print_goals(f"Logs of {megabytes:g} MB" + (" (small run)" if small else ""), goals)
    save("logs", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__)
