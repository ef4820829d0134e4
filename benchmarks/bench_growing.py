"""Growing stores: appends a second with one writer and with eight, and reading meanwhile.

python benchmarks/bench_growing.py [--rounds 3] [--data DIR]
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from measure import Goal, command, print_goals, save, spread

WAYS = (("1 process", 1, 1), ("8 processes", 8, 1), ("1 process of 8 threads", 1, 8))
JOURNAL = 63 << 20
"""Bytes of the journal that is read: just below the size at which it becomes a shard."""


def trajectory(name: str, words: list[str], draw: random.Random) -> Any:
    """A run of 12 steps, about 20 kB as JSON."""
    from adp_schema.model import Observation, Step, ToolCall, Trajectory

    steps = []
    for number in range(12):
        arguments = json.dumps({"query": " ".join(draw.choices(words, k=20))})
        call = ToolCall(call_id=f"c{number}", kind="function", name="look", arguments=arguments)
        seen = Observation(
            call_step=number, call=0, call_id=f"c{number}", source="environment",
            text=" ".join(draw.choices(words, k=120)),
        )  # fmt: skip
        text = " ".join(draw.choices(words, k=60))
        steps.append(
            Step(source="agent", kind="llm_turn", text=text, calls=[call], observations=[seen])
        )
    return Trajectory(trajectory_id=f"d/{name}", source_id=name, dataset="d", steps=steps)


def trajectories(count: int, seed: int) -> list[Any]:
    """Runs with ids of their own for each seed."""
    draw = random.Random(seed)
    words = ["".join(draw.choices("abcdefghijklmnop", k=draw.randint(2, 12))) for _ in range(3_000)]
    return [trajectory(f"{seed}-{number}", words, draw) for number in range(count)]


def worker(kind: str, folder: str, count: int, seed: int, threads: int) -> dict[str, float]:
    """Append; the first line of standard input is the sign to begin."""
    from adp_schema.growing import GrowingStore
    from adp_schema.journal import encode, line_of

    runs = trajectories(count, seed)
    if kind == "store":
        store = GrowingStore(folder)
        store.append(trajectories(1, 1_000 + seed)[0])
        act = store.append
    else:
        lines = {id(run): line_of([(encode(run).entry, encode(run).text)]) for run in runs}
        path = Path(folder) / "plain.jsonl"

        def act(run: Any) -> bool:
            with path.open("ab") as file:
                file.write(lines[id(run)])
                file.flush()
                os.fsync(file.fileno())
            return True

    print("ready", flush=True)
    sys.stdin.readline()
    start, cpu = time.monotonic(), time.process_time()
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(act, runs):
            pass
    return {"start": start, "end": time.monotonic(), "cpu": time.process_time() - cpu}


def appends(kind: str, folder: Path, writers: int, count: int, threads: int) -> tuple[float, float]:
    """Appends a second, and CPU seconds an append, of several processes that begin at once."""
    folder.mkdir()
    given = {"kind": kind, "folder": str(folder), "count": count, "threads": threads}
    children = [
        subprocess.Popen(
            [sys.executable, __file__, "worker", json.dumps(given | {"seed": seed})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(writers)
    ]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    answers = [json.loads(child.communicate()[0]) for child in _released(children)]
    seconds = max(answer["end"] for answer in answers) - min(answer["start"] for answer in answers)
    return writers * count / seconds, sum(answer["cpu"] for answer in answers) / (writers * count)


def _released(children: list[Any]) -> list[Any]:
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    return children


def reading(folder: Path, size: int) -> dict[str, float]:
    """Seconds to open a store with a journal of a size, and to open one with many ids."""
    from adp_schema.growing import GrowingStore
    from adp_schema.journal import encode
    from adp_schema.model import Trajectory
    from adp_schema.store import Store

    runs = trajectories(50, 1)
    number = size // len(encode(runs[0]).text)
    with GrowingStore(folder / "journal") as store:
        store.extend(
            runs[k % 50].model_copy(update={"trajectory_id": f"d/{k}"}) for k in range(number)
        )
    seconds, cpu = [], []
    for _ in range(3):
        start, used = time.perf_counter(), time.process_time()
        opened = Store.open(str(folder / "journal"))
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
        assert opened.journal is not None
        assert opened.journal.count == number
    with GrowingStore(folder / "ids", seal_count=20_000) as store:
        store.extend(Trajectory(trajectory_id=f"d/task-{k:06d}") for k in range(100_000))
    start, used = time.perf_counter(), time.process_time()
    GrowingStore(folder / "ids").append(Trajectory(trajectory_id="d/new"))
    return {
        "journal_bytes": (folder / "journal/growing/journal-00000.jsonl").stat().st_size,
        "journal_trajectories": number,
        "open_wall": statistics.median(seconds),
        "open_cpu": statistics.median(cpu),
        "first_append_wall": time.perf_counter() - start,
        "first_append_cpu": time.process_time() - used,
    }


def run(data: Path, *, small: bool, rounds: int = 3) -> list[Goal]:
    """Measure, print and save."""
    count, rounds = (20, 1) if small else (400, rounds)
    goals: list[Goal] = []
    numbers: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=data) as scratch:
        for title, writers, threads in WAYS:
            rates: dict[str, list[float]] = {"store": [], "plain": []}
            used: list[float] = []
            for number in range(rounds):
                for kind, result in rates.items():
                    folder = Path(scratch) / f"{kind}-{writers}-{threads}-{number}"
                    rate, cpu = appends(kind, folder, writers, count // writers or 1, threads)
                    result.append(rate)
                    used += [cpu] if kind == "store" else []
            ratios = [a / b for a, b in zip(rates["store"], rates["plain"], strict=True)]
            numbers[title] = {k: spread(v, 1) for k, v in rates.items()} | {
                "ratio": spread(ratios), "cpu_seconds_an_append": spread(used, 5)
            }  # fmt: skip
            note = f"best {max(rates['store']):.0f}, worst {min(rates['store']):.0f}"
            rate = statistics.median(rates["store"])
            goals.append(Goal(f"appends, {title}", rate, None, "a second", note=note))
            note = f"open, append, fsync of the same bytes: {statistics.median(rates['plain']):.0f}"
            goals.append(
                Goal("  against plain files", statistics.median(ratios), None, "", note=note)
            )
        result = reading(Path(scratch), JOURNAL // 20 if small else JOURNAL)
    numbers["reading"] = {name: round(value, 4) for name, value in result.items()}
    note = f"{result['journal_trajectories']:,} trajectories; {result['open_wall']:.2f} wall"
    title = f"open a journal of {result['journal_bytes'] / 1e6:.0f} MB"
    goals.append(Goal(title, result["open_cpu"], 1.0, "CPU s", True, note))
    note = f"{result['first_append_wall']:.2f} wall"
    title = "first append to 100,000"
    goals.append(Goal(title, result["first_append_cpu"], 1.0, "CPU s", True, note))
    print_goals(f"Growing stores, median of {rounds}", goals)
    save("growing", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__, {"worker": worker})
