"""Fuzz the formats: seeded mutations of small records, each checked as `tests.fuzz.check` says.

python -m tests.fuzz --cases 20000              every format, on two processes
python -m tests.fuzz --format atif --case 1234  one case again, with its record
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from adp.converters.readers import READERS
from adp.converters.registry import BUILTIN, formats
from tests.fuzz.cases import make, run_chunk
from tests.fuzz.check import check
from tests.fuzz.readers import check_reader

MEMORY_MB = 1000
CHUNK = 250


def main() -> int:
    """Run, print what was found, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", choices=sorted(formats))
    parser.add_argument("--case", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="write the figures as JSON to this file")
    options = parser.parse_args()
    names = [options.format] if options.format else sorted({**BUILTIN, **READERS})
    if options.case is not None:
        data, target = make(names[0], options.seed, options.case)
        sys.stdout.buffer.write(data + b"\n")
        print(target, check(names[0], target, data) if target else check_reader(names[0], data))
        return 0
    jobs = [
        (name, options.seed, first, min(first + CHUNK, options.cases))
        for name in names
        for first in range(0, options.cases, CHUNK)
    ]
    started = time.perf_counter()
    total: dict[str, Counter[str]] = {name: Counter() for name in names}
    results: list[tuple[str, int, str]] = []
    memory = 0
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for result in pool.map(run_chunk, jobs):
            total[result["name"]].update(result["counts"])
            results += [(result["name"], case, wrong) for case, wrong in result["found"]]
            memory = max(memory, result["memory"])
    seconds = time.perf_counter() - started
    for name, case, wrong in results[:200]:
        print(f"{name} {case}: {wrong[:600]}")
    for name in names:
        print(f"{name}: {total[name]['read']} read, {total[name]['rejected']} rejected")
    print(f"{len(results)} findings in {seconds:.0f} s; at most {memory} MB a process")
    if options.out:
        figures = {
            **{"cases": options.cases, "seed": options.seed, "seconds": round(seconds)},
            **{"findings": len(results), "memory_mb": memory, "formats": total},
        }
        options.out.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 1 if results or memory > MEMORY_MB else 0


if __name__ == "__main__":
    sys.exit(main())
