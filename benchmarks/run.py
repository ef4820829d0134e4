"""Run the benchmarks: ``python benchmarks/run.py [--small] [--only convert,framing,query,...]``.

Prints a table for each with the targets, and writes ``benchmarks/results/<name>.json``.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from pathlib import Path

from measure import Goal, data_folder

NAMES = (
    "start",
    "query",
    "stream",
    "search",
    "big",
    "redact",
    "render",
    "convert",
    "shapes",
    "logs",
    "framing",
    "parallel",
    "growing",
    "dedup",
    "decontaminate",
    "coreset",
    "pareto",
    "curate",
    "rollout",
    "dialects",
)


def run_one(name: str, data: Path, *, small: bool) -> list[Goal]:
    """Run one benchmark."""
    print(f"{name}:", flush=True)
    module = importlib.import_module(f"bench_{name}")
    goals: list[Goal] = module.run(data, small=small)
    return goals


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="small sizes: a check, not a result")
    parser.add_argument("--only", default=",".join(NAMES), help="some of: " + ", ".join(NAMES))
    parser.add_argument("--data", type=Path, help="folder for the generated data, which is kept")
    options = parser.parse_args()
    chosen = options.only.split(",")
    if unknown := set(chosen) - set(NAMES):
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}")
    failed: list[str] = []
    missed: list[str] = []
    with data_folder(options.data) as data:
        for name in (name for name in NAMES if name in chosen):
            try:
                goals = run_one(name, data, small=options.small)
            except Exception:
                traceback.print_exc()
                failed.append(name)
                continue
            missed += [f"{name}: {g.name.strip()}" for g in goals if g.verdict.startswith("missed")]
    print(f"\ntargets missed: {len(missed)}", *missed, sep="\n  ")
    if failed:
        print(f"could not run: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
