"""A million and ten million small runs: convert, curate, query; what each costs, and how it grows.

    python benchmarks/bench_scale.py [--counts 1000000,10000000] [--limit_gb 4] [--data DIR]

The machine must have room: ten million runs are 14 GB of JSON lines and 10 GB of stores. As root
on Linux all processes of a step are put into a control group that may not have more than the
limit, file cache included; without swap a step that needs more is killed. Elsewhere memory is only
sampled. What is done is noted in the folder of the data, so a stopped run goes on.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from big_runs import write
from measure import HERE, Goal, command, print_goals, save

GROWTH = 10.5
"""Most that ten times as many trajectories may cost."""

RECIPE: dict[str, Any] = {
    "recipe": 1,
    "seed": 17,
    "ops": [
        {"filter": {"sql": "reward >= 0.1"}},
        {"dedup_exact": {}},
        {"dedup_near": {}},
        {"mix": {"by": "agent_model", "weights": {"small-8b": 2, "large-70b": 1, "tiny-1b": 1}}},
        {"split": {"shares": {"train": 0.9, "test": 0.1}, "leakage": "off"}},
    ],
    "outputs": {"train": {"where": "split = 'train'"}, "test": {"where": "split = 'test'"}},
}
QUESTIONS = {
    "calls by tool": "SELECT name, count(*) AS n FROM calls GROUP BY name ORDER BY n DESC, name",
    "solved by model": "SELECT agent_model, avg(success::INT) AS rate FROM trajectories "
    "GROUP BY ALL ORDER BY ALL",
    "length": "SELECT n, count(*) AS runs FROM (SELECT seq, count(*) AS n FROM steps GROUP BY seq) "
    "GROUP BY n ORDER BY n",
    "pass@k": "SELECT solved, count(*) AS tasks FROM (SELECT task_id, count(*) FILTER (success) AS "
    "solved FROM trajectories GROUP BY dataset, task_id) GROUP BY solved ORDER BY solved",
    "one run": "SELECT type, step, name, text FROM transcript "
    "WHERE trajectory_id = '{last}' ORDER BY step, rank, place",
}
_GROUPS = (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup"))


def _group(limit: int) -> Path | None:
    """A control group with a limit of memory, in bytes; None where none can be made."""
    for root, name in zip(_GROUPS, ("memory.limit_in_bytes", "memory.max"), strict=True):
        group = root / "adp-bench"
        try:
            group.mkdir(exist_ok=True)
            (group / name).write_text(str(limit))
        except OSError:
            continue
        return group
    return None


class _Memory(threading.Thread):
    """Samples the memory that all processes below one have for themselves, not that of files."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._root, self.peak, self.stop = psutil.Process(pid), 0, threading.Event()

    def run(self) -> None:
        while not self.stop.wait(0.25):
            try:
                family = [self._root, *self._root.children(recursive=True)]
            except psutil.Error:
                return
            self.peak = max(self.peak, sum(_private(process.pid) for process in family))


def _private(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(
        int(line.split()[1]) << 10 for line in lines if line.startswith(("RssAnon", "RssSh"))
    )


def _step(words: Sequence[str], group: Path | None) -> dict[str, Any]:
    """Run a command in a control group, and say what it took."""
    enter = f"echo $$ > {group}/cgroup.procs && " if group else ""
    started = time.perf_counter()
    child = subprocess.Popen(
        ["/bin/sh", "-c", f'{enter}exec "$@"', "sh", *words], stdout=subprocess.PIPE, text=True
    )
    memory = _Memory(child.pid)
    memory.start()
    assert child.stdout is not None
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    memory.stop.set()
    if child.returncode:
        raise RuntimeError(f"{' '.join(words[:6])} ended with status {child.returncode}")
    last = out.strip().rpartition("\n")[2]
    return {
        "cpu": round(usage.ru_utime + usage.ru_stime, 1),
        "wall": round(time.perf_counter() - started, 1),
        "mb": round(memory.peak / 1e6),
        "answer": json.loads(last) if last.startswith("{") else {},
    }


def _megabytes(path: Path) -> int:
    files = [path] if path.is_file() else [item for item in path.rglob("*") if item.is_file()]
    return round(sum(item.stat().st_size for item in files) / 1e6)


@dataclass
class _Steps:
    """The steps over so many runs; what is done is in a file, and not done again."""

    folder: Path
    group: Path | None

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self._file = self.folder / "steps.json"
        self.done = json.loads(self._file.read_text()) if self._file.exists() else {}

    def run(self, name: str, words: Sequence[str], out: Path | None = None) -> dict[str, Any]:
        """Do a step unless it is done; what it wrote to before is removed."""
        if name not in self.done:
            if out is not None:
                shutil.rmtree(out, ignore_errors=True)
            self.done[name] = _step(words, self.group)
            self._file.write_text(json.dumps(self.done))
        step: dict[str, Any] = self.done[name]
        print(f"  {name}: {step['cpu']} CPU s, {step['wall']} s, {step['mb']} MB", flush=True)
        return step


def _measure(data: Path, count: int, group: Path | None) -> dict[str, Any]:
    """All steps over so many runs."""
    steps = _Steps(data / f"scale-{count}", group)
    folder = steps.folder
    source, store, out = folder / "runs.jsonl", folder / "store", folder / "curated"
    if not source.exists():
        write(folder / "part.jsonl", count)
        (folder / "part.jsonl").rename(source)
    adp = [sys.executable, "-m", "adp.cli.entry"]
    steps.run("convert", [*adp, "convert", str(source), "-o", str(store)], store)
    task = {"recipe": {**RECIPE, "inputs": {"runs": str(store)}}, "folder": str(folder)}
    task |= {"out": str(out), "workers": 2}
    words = [sys.executable, str(HERE / "tasks.py"), "curate", json.dumps(task)]
    answer = steps.run("curate", words, out)["answer"]
    for name, sql in QUESTIONS.items():
        asked = sql.format(last=f"runs/run-{count - 1}")
        steps.run(f"query: {name}", [*adp, "query", str(store), "-c", asked])
    sizes = {name: _megabytes(path) for name, path in
             {"source": source, "store": store, "curated": out}.items()}  # fmt: skip
    stages = [
        {name: stage[name] for name in ("name", "in", "dropped", "out", "summary")}
        for stage in answer["report"]["stages"]
    ]
    parts = answer["parts"]
    measured = {
        name: {what: step[what] for what in ("cpu", "wall", "mb")}
        for name, step in steps.done.items()
    }
    return {"steps": measured, "parts": parts, "megabytes": sizes, "stages": stages}


def run(
    data: Path, *, small: bool, counts: str = "1000000,10000000", limit_gb: float = 4
) -> list[Goal]:
    """Measure, print and save; the generated files go to ``data``."""
    group = _group(int(limit_gb * (1 << 30)))
    numbers: dict[str, Any] = {"limit": f"{limit_gb:g} GB" if group else "none: sampled only"}
    goals = []
    before: dict[str, Any] = {}
    for count in [10_000] if small else [int(word) for word in counts.split(",")]:
        measured = _measure(data, count, group)
        numbers[str(count)] = measured
        for name, step in measured["steps"].items():
            earlier = before.get(name, {}).get("cpu")
            note = f"{step['cpu']:.1f} CPU s, {step['wall']:.1f} s"
            goals.append(Goal(f"{name}, {count:,}", step["mb"], limit_gb * 1000, "MB", True, note))
            if earlier and name in ("convert", "curate"):
                goals.append(Goal("  CPU, times", step["cpu"] / earlier, GROWTH, "x", True))
        before = measured["steps"]
    print_goals("Very many runs", goals)
    save("scale", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__)
