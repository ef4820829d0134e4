"""The study: five seeds, what parts of the curation are worth, and methods at equal compute.

    python -m examples.loop.full -o runs/loop-full --results benchmarks/results/loop.json

What is measured, and how it is judged, was written into docs/loop.md before. Every stage of every
arm is done once, so a stopped run goes on where it was. An arm is done for all seeds before the
next begins, in the order of `ORDER`; the results are written anew after each of them.
"""

import argparse
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

SEEDS = (0, 1, 2, 3, 4)
CURATED = "curated"
ORDER = (
    CURATED,
    "raw",
    "random subset",
    "GRPO in the environment",
    "rejection sampling",
    "no mask",
    "DPO",
    "SFT on the chosen steps",
    "longer SFT",
    "no decontamination",
    "wrong answers kept",
    "circles kept",
)
"""By importance: what comes first is measured first."""


def measured(work, scale, seed, name):
    """Do what an arm still lacks, and tell what it measured.

    Args:
        work: folder of the seed.
        scale: how much.
        seed: of everything.
        name: one of `ORDER`.
    """
    from examples.loop.arms import ARMS, arm
    from examples.loop.methods import METHODS, method
    from examples.loop.run import begun, supervised

    began = begun(work, scale, seed)
    if name in ARMS:
        return arm(work, scale, seed, name)
    main = supervised(work, scale, seed)
    if name in METHODS:
        return method(work, scale, seed, name, main["sft"]["model"])
    before = {key: began[key] for key in ("base", "before", "pool", "leaked", "informed")}
    return before | {"curated": main["curated"], "training": main["sft"]} | main["after_sft"]


def machine():
    """What it ran on."""
    packages = ("torch", "transformers", "trl", "accelerate", "polars", "duckdb")
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
    }


def main():
    """Run all arms of all seeds."""
    from examples.loop.scale import SCALES
    from examples.loop.study import summary
    from examples.loop.tables import study_markdown
    from examples.loop.work import Work

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--out", default="runs/loop-full", type=Path)
    parser.add_argument("--results", default="benchmarks/results/loop.json", type=Path)
    parser.add_argument("--seeds", default=SEEDS, type=int, nargs="+")
    parser.add_argument("--arms", default=ORDER, nargs="+", choices=ORDER)
    parser.add_argument("--scale", default="demo", choices=sorted(SCALES))
    parser.add_argument("--threads", default=1, type=int)
    given = parser.parse_args()
    scale, arms = SCALES[given.scale], {}
    works = {
        seed: Work(given.out.resolve() / f"seed-{seed}", given.threads) for seed in given.seeds
    }
    for name in given.arms:
        for seed, work in works.items():
            arms.setdefault(name, {})[seed] = measured(work, scale, seed, name)
            costs = {seed: work.costs for seed, work in works.items()}
            report = {"machine": machine(), "scale": given.scale, "summary": summary(arms)}
            write(given, report | {"arms": arms, "costs": costs})
            print(study_markdown(report["summary"]), flush=True)


def write(given, report):
    """Write the results anew; a run that is stopped here leaves the old ones or the new ones."""
    given.results.parent.mkdir(parents=True, exist_ok=True)
    part = given.results.with_suffix(".part")
    part.write_text(json.dumps(report, indent=1) + "\n")
    part.replace(given.results)


if __name__ == "__main__":
    main()
