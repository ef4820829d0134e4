"""Pareto sampling: 100,000 questions of 8 rollouts, against the plain fast non-dominated sort.

python benchmarks/bench_pareto.py [--questions 100000] [--data DIR]
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measure import Goal, command, print_goals, run_task, save, spread

ROUNDS = 3
ROLLOUTS = 8
SAMPLE = 2_000
TARGET = 5.0
MEMORY_LIMIT = 1_500
KINDS = ("even", "tied", "rollouts")


def scores(kind: str, questions: int) -> Any:
    """Two objectives a question: all different, with many ties, or variances of rollouts."""
    import numpy as np

    draw = np.random.default_rng(11)
    if kind == "even":
        return draw.random((questions, 2))
    if kind == "tied":
        return draw.integers(0, 12, (questions, 2)).astype(float)
    calls = draw.integers(0, 15, (questions, ROLLOUTS))
    right = draw.random((questions, ROLLOUTS)) < draw.random((questions, 1))
    return np.stack([calls.var(axis=1), right.var(axis=1)], axis=1)


def members(questions: int) -> Any:
    """The frame of a pool of rollouts, with the number of calls in a column."""
    import numpy as np
    import polars as pl

    draw = np.random.default_rng(11)
    number = np.arange(questions * ROLLOUTS)
    known = draw.random(len(number)) < np.tile(draw.random(questions), ROLLOUTS)
    return pl.DataFrame(
        {
            "seq": number * 7,
            "task": pl.Series(number % questions).cast(pl.String),
            "success": known,
            "reward": pl.Series([None] * len(number), dtype=pl.Float64),
            "calls": draw.integers(0, 15, len(number)),
        }
    )


def plain(values: Sequence[Sequence[float]]) -> list[int]:
    """The front of each point by the fast non-dominated sort of NSGA-II, O(n^2)."""
    below: list[list[int]] = []
    above = [0] * len(values)
    for p in values:
        native = []
        for place, q in enumerate(values):
            if p[0] >= q[0] and p[1] >= q[1] and (p[0] > q[0] or p[1] > q[1]):
                native.append(place)
                above[place] += 1
        below.append(native)
    result = [0] * len(values)
    front = [place for place, count in enumerate(above) if not count]
    number = 0
    while front:
        number += 1
        after = []
        for place in front:
            for other in below[place]:
                above[other] -= 1
                if not above[other]:
                    result[other] = number
                    after.append(other)
        front = after
    return result


def pareto(name: str, kind: str, questions: int) -> dict[str, Any]:
    """What runs in a process of its own; ``cpu`` is without imports and made-up data."""
    from adp.curation.ops.pareto import Pareto, run
    from adp.curation.ops.pareto.fronts import choose, fronts
    from adp.curation.pool import Pool

    answer: dict[str, Any] = {}
    if name == "op":
        frame = members(questions)
        with tempfile.TemporaryDirectory() as scratch:
            started = time.process_time()
            outcome = run(Pool([], frame, Path(scratch)), Pareto(tool_calls="calls"))
            answer["cpu"] = time.process_time() - started
        answer["lines"] = outcome.lines
        return answer
    values = scores(kind, questions)
    listed = values.tolist()
    started = time.process_time()
    if name == "plain":
        chosen = plain(listed)
    elif name == "fronts":
        chosen = fronts(values).tolist()
    else:
        chosen = choose(values, 8_000)[0].tolist()
    answer["cpu"] = time.process_time() - started
    if name == "plain":
        answer["equal"] = chosen == fronts(values).tolist()
    answer["fronts"] = max(chosen) + 1 if name != "choose" else 0
    return answer


def _child(name: str, kind: str, questions: int, *, sample: bool = False) -> Any:
    arguments = {"name": name, "kind": kind, "questions": questions}
    return run_task("pareto", arguments, sample=sample, script=__file__)


def run(data: Path, *, small: bool, questions: int = 100_000) -> list[Goal]:
    """Measure, print and save. ``data`` is not used: all is made in memory."""
    questions = 2_000 if small else questions
    sample = 300 if small else SAMPLE
    cpu: dict[str, list[float]] = {}
    ratios, equal, peak = [], True, 0.0
    for _ in range(ROUNDS):
        cpu.setdefault("op", []).append(_child("op", "", questions).answer["cpu"])
        for kind in KINDS:
            native = _child("choose", kind, questions).answer["cpu"]
            cpu.setdefault(f"choose, {kind}", []).append(native)
        fast = _child("fronts", "even", sample).answer["cpu"]
        slow = _child("plain", "even", sample).answer
        cpu.setdefault("fronts of the sample", []).append(fast)
        cpu.setdefault("plain fronts of the sample", []).append(slow["cpu"])
        ratios.append(slow["cpu"] / max(fast, 1e-9))
    for kind in KINDS:
        equal = equal and _child("plain", kind, sample).answer["equal"]
    peak = _child("op", "", questions, sample=True).peaks["rss"]
    middle = {name: statistics.median(values) for name, values in cpu.items()}
    estimated = middle["plain fronts of the sample"] * (questions / sample) ** 2
    note = f"{min(ratios):.0f} to {max(ratios):.0f}"
    goals = [
        Goal("the op, statistics and evidence included", middle["op"], TARGET, "CPU s", True),
        *(Goal(f"  fronts and choice, {kind}", middle[f"choose, {kind}"], None, "CPU s")
          for kind in KINDS),
        Goal(f"against the plain sort, {sample:,} questions", statistics.median(ratios), None,
             "x", note=note),
        Goal("  the plain sort at the full size, by its square", estimated, None, "CPU s"),
        Goal("fronts equal to those of the plain sort", float(equal), 1.0),
        Goal("peak rss", peak, MEMORY_LIMIT, "MB", at_most=True),
    ]  # fmt: skip
    print_goals(f"Pareto sampling of {questions:,} questions of {ROLLOUTS} rollouts", goals)
    numbers = {
        "questions": questions,
        "rollouts": ROLLOUTS,
        "sample": sample,
        "cpu_seconds": {name: spread(values, 4) for name, values in cpu.items()},
        "peak_rss": round(peak, 1),
    }
    save("pareto", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__, {"pareto": pareto})
