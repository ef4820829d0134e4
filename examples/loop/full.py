"""Three seeds, and what becomes of the model when a part of the curation is left out.

    python -m examples.loop.full -o runs/loop-full --results benchmarks/results/loop.json

Every stage of every arm is done once, so a stopped run goes on where it was. The results are
written anew after each arm.
"""

import argparse
import json
import math
import os
import platform
import statistics
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

SEEDS = (0, 1, 2)
T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}
"""Two-sided 95 % points of Student's t for so many values."""


def without(*names):
    """A change of a recipe: ops of these names are left out."""

    def change(recipe):
        recipe["ops"] = [op for op in recipe["ops"] if not set(op) & set(names)]

    return change


def at_random(recipe):
    """A change of a recipe: a random subset of the same size is trained on, with the same mask."""
    size = next(op["mix"]["total"] for op in recipe["ops"] if "mix" in op)
    mask = next(op for op in recipe["ops"] if "mask" in op)
    recipe["ops"] = [{"coreset": {"method": "random", "size": size, "coverage": False}}, mask]


ARMS = {
    "random subset": at_random,
    "no mask": without("mask"),
    "no decontamination": without("decontaminate"),
}


def arm(work, scale, seed, name):
    """Curate, train and measure; the base and the pool are those of the main run."""
    from examples.loop.run import curate, train_sft

    slug = "arm-" + name.replace(" ", "-")
    results = {"curated": work.once(slug, lambda: curate(work, scale, seed, slug, ARMS[name]))}
    store, model = f"{slug}/data", f"{slug}-sft"
    results["training"] = work.once(model, lambda: train_sft(work, scale, seed, model, store))
    return results | measured(work, slug, f"{model}/model")


def curated(work, main):
    """The main run after SFT, with which the arms are compared, measured on the fresh tasks too."""
    results = {"curated": main["curated"], "training": main["sft"]}
    return results | measured(work, "sft", "sft/model")


def measured(work, name, model):
    """On the held-out tasks, greedy and at temperature 1, and on tasks that are in no pool."""
    from examples.loop import stages
    from examples.loop.run import measure

    both = measure(work, name, model)
    fresh = work.once(
        f"eval-{name}-fresh",
        lambda: stages.evaluate(work, f"{name}-fresh", model, "fresh.jsonl"),
    )
    return {"held_out": both["greedy"], "fresh": fresh, "sampled": both["sampled"]}


def interval(values):
    """Mean of the seeds with a 95 % interval by Student's t; the interval is None for one seed."""
    values = [round(float(value), 6) for value in values]
    mean = statistics.fmean(values)
    if len(values) < 2:
        return {"mean": round(mean, 4), "low": None, "high": None, "values": values}
    half = T_95[len(values)] * statistics.stdev(values) / math.sqrt(len(values))
    return {
        "mean": round(mean, 4),
        "low": round(mean - half, 4),
        "high": round(mean + half, 4),
        "values": values,
    }


def summary(main, arms):
    """Means over the seeds of all that was measured.

    Args:
        main: seed -> what a main run measured.
        arms: name -> seed -> what an arm measured.
    """
    from examples.loop.tables import CHANGES, ROWS

    measures = ("success", "clean", "redundant", "wrong", "malformed")
    results = {"main": {}, "arms": {}}
    for name, title, part in ROWS if main else ():
        rows = [value[name] if part is None else value[name][part] for value in main.values()]
        results["main"][title] = {key: interval([row[key] for row in rows]) for key in measures}
    results["change"] = {
        title: {
            key: interval(
                [
                    value["after_dpo"][part][key] - value["after_sft"][part][key]
                    for value in main.values()
                ]
            )
            for key in measures
        }
        for title, part in CHANGES
        if main
    }
    for name, seeds in arms.items():
        results["arms"][name] = {
            f"{part} {key}": interval([seed[part][key] for seed in seeds.values()])
            for part in ("held_out", "fresh", "sampled")
            for key in ("success", "clean", "malformed")
            if seeds
        } | differences(seeds, arms.get("curated", {}))
    return results


def differences(seeds, curated):
    """How much better an arm is than the curated one at temperature 1; each seed is compared."""
    both = [seed for seed in seeds if seed in curated and seeds is not curated]
    return {
        f"{key} difference": interval(
            [seeds[seed]["sampled"][key] - curated[seed]["sampled"][key] for seed in both]
        )
        for key in ("success", "malformed")
        if both
    }


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
    from examples.loop.run import run
    from examples.loop.scale import DEMO
    from examples.loop.tables import summary_markdown
    from examples.loop.work import Work

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--out", default="runs/loop-full", type=Path)
    parser.add_argument("--results", default="benchmarks/results/loop.json", type=Path)
    parser.add_argument("--seeds", default=SEEDS, type=int, nargs="+")
    parser.add_argument("--threads", default=1, type=int)
    given = parser.parse_args()
    runs, arms = {}, {name: {} for name in ("curated", *ARMS)}

    def write():
        report = {"machine": machine(), "summary": summary(runs, arms), "runs": runs, "arms": arms}
        given.results.parent.mkdir(parents=True, exist_ok=True)
        given.results.write_text(json.dumps(report, indent=1) + "\n")
        text = summary_markdown(report["summary"])
        given.out.resolve().joinpath("loop.md").write_text(text)
        print(text, flush=True)

    for seed in given.seeds:
        work = Work(given.out.resolve() / f"seed-{seed}", given.threads)
        runs[seed] = run(work, DEMO, seed)
        arms["curated"][seed] = curated(work, runs[seed])
        write()
        for name in ARMS:
            arms[name][seed] = arm(work, DEMO, seed, name)
            write()


if __name__ == "__main__":
    main()
