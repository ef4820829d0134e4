"""Fuzz the formats: seeded mutations of small records, each checked as `tests.fuzz.check` says.

python -m tests.fuzz --cases 20000              every format, on two processes
python -m tests.fuzz --format pi --format codex  some of them
python -m tests.fuzz --format atif --case 1234  one case again, with its record
python -m tests.fuzz --containers --cases 3000  archives, compressed logs, databases
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from adp.converters.readers import READERS
from adp.converters.registry import BUILTIN, formats
from tests.fuzz.cases import run_case, run_chunk

MEMORY_MB = 1000
CHUNK = 250

Job = tuple[str, int, int, int]


def main() -> int:
    """Run, print what was found, and return the exit status."""
    options = _options()
    names = options.format or sorted({**BUILTIN, **READERS})
    if options.containers is not None:
        known = importlib.import_module("tests.fuzz.containers").CONTAINERS
        names = options.containers or list(known)
    if options.case is not None:
        data, outcome = run_case(names[0], options.seed, options.case)
        sys.stdout.buffer.write(data + b"\n")
        print(outcome)
        return 0
    bad = 0
    if options.workers == 1:
        bad = sum(_fuzz(name, options, lambda jobs: map(run_chunk, jobs)) for name in names)
    else:
        with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
            bad = sum(
                _fuzz(name, options, lambda jobs: pool.map(run_chunk, jobs)) for name in names
            )
    return 1 if bad else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", choices=sorted(formats), action="append")
    text = "change the bytes of these containers, or of all, in place of records"
    parser.add_argument("--containers", nargs="*", metavar="NAME", help=text)
    parser.add_argument("--case", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="put the figures of each format into this file")
    return parser.parse_args()


def _fuzz(
    name: str, options: argparse.Namespace, run: Callable[[list[Job]], Iterable[dict[str, Any]]]
) -> bool:
    """Run the cases of a format; say whether something is wrong."""
    cases = range(0, options.cases, CHUNK)
    jobs = [(name, options.seed, first, min(first + CHUNK, options.cases)) for first in cases]
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    results: list[tuple[int, str]] = []
    memory = 0
    for result in run(jobs):
        counts.update(result["counts"])
        results += result["found"]
        memory = max(memory, result["memory"])
    seconds = round(time.perf_counter() - started)
    for case, wrong in results[:50]:
        print(f"{name} {case}: {wrong[:600]}")
    print(
        f"{name}: {counts['read']} read, {counts['rejected']} rejected, {len(results)} findings "
        f"in {seconds} s; at most {memory} MB a process",
        flush=True,
    )
    if options.out:
        figures = {"cases": options.cases, "seed": options.seed, "seconds": seconds}
        figures |= {"read": counts["read"], "rejected": counts["rejected"]}
        note(options.out, name, {**figures, "findings": len(results), "memory_mb": memory})
    return bool(results) or memory > MEMORY_MB


def note(path: Path, name: str, figures: dict[str, int]) -> None:
    """Put the figures of a format into the file, beside those of the others."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known[name] = figures
    text = json.dumps(dict(sorted(known.items())), indent=2)
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
