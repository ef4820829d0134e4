"""What the study says: means over the seeds, intervals, and differences seed by seed."""

import math
import statistics

T_95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}
"""Two-sided 95 % points of Student's t for so many values."""

PRIMARY = ("held_out", "success")
"""Success on the held-out tasks at temperature 1: chosen before anything was measured."""
SECONDARY = (
    ("greedy", "success"),
    ("held_out", "clean"),
    ("held_out", "redundant"),
    ("held_out", "malformed"),
    ("leaked", "success"),
    ("unseen_tools", "success"),
    ("longer_paths", "success"),
)
"""Set and figure. Sets are at temperature 1; ``greedy`` is the held-out tasks without chance."""
BASELINE = "curated"


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


def summary(arms):
    """All figures of all arms.

    Args:
        arms: name -> seed -> what the arm measured with that seed.

    Returns:
        name -> ``seeds``, the figures as ``set figure``, the ``difference`` of the primary figure
        and of each other one to that of the baseline with the same seed, and ``leak``: success on
        the tasks that leaked, less that on the held-out ones.
    """
    baseline = arms.get(BASELINE, {})
    results = {}
    for name, seeds in arms.items():
        figures = {
            f"{part} {key}": interval([seed[part][key] for seed in seeds.values()])
            for part, key in (PRIMARY, *SECONDARY)
        }
        leak = interval(
            [seed["leaked"]["success"] - seed["held_out"]["success"] for seed in seeds.values()]
        )
        both = [seed for seed in seeds if seed in baseline and name != BASELINE]
        differences = {
            f"{part} {key}": interval(
                [seeds[seed][part][key] - baseline[seed][part][key] for seed in both]
            )
            for part, key in (PRIMARY, *SECONDARY)
            if both
        }
        results[name] = {
            "seeds": list(seeds),
            "figures": figures,
            "differences": differences,
            "leak": leak,
            "retries": {
                seed: attempts
                for seed, facts in seeds.items()
                if len(attempts := facts["training"].get("attempts", ())) > 1
            },
            "passes": {
                seed: facts["training"]["passes"]
                for seed, facts in seeds.items()
                if "passes" in facts["training"]
            },
        }
    return results
