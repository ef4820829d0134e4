"""Measuring child processes, describing the machine, the table of results, the command line."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, get_type_hints

import psutil

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PACKAGES = (
    "adp",
    "datasets",
    "datasketch",
    "duckdb",
    "msgspec",
    "numpy",
    "orjson",
    "polars",
    "pyarrow",
)
POLL_SECONDS = 0.02
_LOAD_AT_START = os.getloadavg()[0]


@dataclass
class Run:
    """What a child process used, the processes that it started included.

    Attributes:
        wall: seconds from start to end.
        cpu: user and system seconds.
        max_rss: ru_maxrss of the biggest process, in MB.
        peaks: MB by "rss" and "uss" of the biggest process, and "tree_uss" of all together;
            empty unless they were sampled.
        processes: number of processes that were seen; 0 unless sampled.
        answer: what the task printed.
    """

    wall: float
    cpu: float
    max_rss: float
    peaks: dict[str, float] = field(default_factory=dict)
    processes: int = 0
    answer: dict[str, Any] = field(default_factory=dict)


class _Sampler(threading.Thread):
    """Polls the memory of a process and of those below it."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._root = psutil.Process(pid)
        self.peaks = {"rss": 0.0, "uss": 0.0, "tree_uss": 0.0}
        self.pids: set[int] = set()
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.wait(POLL_SECONDS):
            try:
                family = [self._root, *self._root.children(recursive=True)]
            except psutil.Error:
                return
            self._sample(family)

    def _sample(self, family: list[psutil.Process]) -> None:
        total = 0.0
        for process in family:
            try:
                memory = process.memory_full_info()
            except psutil.Error:
                continue
            self.pids.add(process.pid)
            total += memory.uss / 1e6
            self.peaks["rss"] = max(self.peaks["rss"], memory.rss / 1e6)
            self.peaks["uss"] = max(self.peaks["uss"], memory.uss / 1e6)
        self.peaks["tree_uss"] = max(self.peaks["tree_uss"], total)


def run_command(
    command: Sequence[str],
    *,
    sample: bool = False,
    environment: dict[str, str] | None = None,
    quiet: bool = False,
) -> Run:
    """Run a command and measure it. Sampling costs time, so do not time a sampled run.

    Args:
        command: its words.
        sample: whether its memory is sampled.
        environment: what is added to the environment.
        quiet: whether what it says on stderr is left out.

    Raises:
        RuntimeError: it failed.
    """
    started = time.perf_counter()
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if quiet else None,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    sampler = _Sampler(child.pid) if sample else None
    if sampler:
        sampler.start()
    assert child.stdout is not None
    out = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stdout.close()
    if sampler:
        sampler.stop.set()
        sampler.join()
    if child.returncode:
        raise RuntimeError(f"{' '.join(command[-3:])} ended with status {child.returncode}")
    run = Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6)
    if sampler:
        run.peaks, run.processes = sampler.peaks, len(sampler.pids)
    last = out.strip().rpartition("\n")[2]
    run.answer = json.loads(last) if last.startswith("{") else {}
    return run


def run_task(
    name: str,
    arguments: dict[str, Any],
    *,
    sample: bool = False,
    script: Path | str = HERE / "tasks.py",
    python: str = sys.executable,
    environment: dict[str, str] | None = None,
) -> Run:
    """Run a task of a script in a process of its own."""
    command = [python, str(script), name, json.dumps(arguments)]
    return run_command(command, sample=sample, environment=environment)


@contextmanager
def data_folder(given: Path | None) -> Iterator[Path]:
    """The folder for generated data: the given one, which is kept, or a temporary one."""
    with tempfile.TemporaryDirectory() as scratch:
        data = given or Path(scratch)
        data.mkdir(parents=True, exist_ok=True)
        yield data


def command(
    run: Callable[..., Any],
    about: str,
    tasks: dict[str, Callable[..., Any]] | None = None,
    **helps: str,
) -> None:
    """A benchmark as a command, with --small, --data, and an option for each size.

    Args:
        run: ``run(data, *, small, ...)``; what has a default there is an option.
        about: the docstring of the module; its first line is the help.
        tasks: what `run_task` calls in this script by name; the answer is printed as JSON.
        **helps: help of an option, by its name.
    """
    if tasks and len(sys.argv) == 3 and sys.argv[1] in tasks:
        print(json.dumps(tasks[sys.argv[1]](**json.loads(sys.argv[2]))))
        return
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    kinds = get_type_hints(run)
    sizes = {
        size.name: size.default
        for size in inspect.signature(run).parameters.values()
        if size.default is not size.empty
    }
    for name, default in sizes.items():
        kind = str if default is None else kinds[name]
        parser.add_argument(f"--{name}", type=kind, default=default, help=helps.get(name))
    parser.add_argument("--small", action="store_true", help="small sizes: a check, not a result")
    parser.add_argument("--data", type=Path, help="folder for the generated data, which is kept")
    options = vars(parser.parse_args())
    with data_folder(options.pop("data")) as data:
        run(data, **options)


def spread(values: Sequence[float], digits: int = 3) -> dict[str, Any]:
    """Median, extremes and all values."""
    return {
        "median": round(statistics.median(values), digits),
        "min": round(min(values), digits),
        "max": round(max(values), digits),
        "all": [round(value, digits) for value in values],
    }


def machine(packages: Sequence[str] = PACKAGES) -> dict[str, Any]:
    """What the numbers were measured on, with the versions of some packages."""
    versions = {}
    for name in packages:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": versions,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "load_at_start": round(_LOAD_AT_START, 2),
    }


def _cpu_model() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()


@dataclass
class Goal:
    """One line of the table.

    Attributes:
        name: what is measured.
        measured: the number.
        target: the number to reach; None when the line only informs.
        unit: unit of both.
        at_most: True when less is better.
        note: the spread, or another remark.
    """

    name: str
    measured: float
    target: float | None = None
    unit: str = ""
    at_most: bool = False
    note: str = ""

    @property
    def verdict(self) -> str:
        """Met, or by how much it is missed."""
        if self.target is None:
            return ""
        met = self.measured <= self.target if self.at_most else self.measured >= self.target
        if met:
            return "met"
        return f"missed by {abs(self.measured - self.target) / self.target:.0%}"

    def plain(self) -> dict[str, Any]:
        """For the file of results."""
        relation = "at most" if self.at_most else "at least"
        target = None if self.target is None else f"{relation} {self.target:g} {self.unit}".strip()
        return {
            "name": self.name,
            "measured": round(self.measured, 3),
            "unit": self.unit,
            "target": target,
            "verdict": self.verdict,
            "note": self.note,
        }


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def print_goals(title: str, goals: Sequence[Goal]) -> None:
    """Print the table of one benchmark."""
    rows = [("", "measured", "target", "", "")]
    for goal in goals:
        target = ""
        if goal.target is not None:
            target = f"{'<=' if goal.at_most else '>='} {_number(goal.target)}"
        measured = f"{_number(goal.measured)} {goal.unit}".strip()
        rows.append((goal.name, measured, target, goal.verdict, goal.note))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    print(f"\n{title}")
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
        print("  " + "  ".join(cells).rstrip())


def save(name: str, numbers: dict[str, Any], goals: Sequence[Goal], *, small: bool) -> Path:
    """Write ``results/<name>.json``; a small run gets a name of its own."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / (f"{name}-small.json" if small else f"{name}.json")
    content = {
        "benchmark": name,
        "small": small,
        "machine": machine(),
        "goals": [goal.plain() for goal in goals],
        "numbers": numbers,
    }
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path
