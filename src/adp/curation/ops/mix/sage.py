"""The arithmetic of SAGE's MultiTaskMixer."""

from __future__ import annotations

from collections.abc import Mapping

from adp.curation.ops.mix.options import SAGE_STAGES, SAGE_WEIGHTS, Mix

LEAST = 10
"""It asks each group for at least this many."""

UNKNOWN = 0.1
"""The weight of a group without one; it is not normalised with the others."""


def sage_counts(options: Mix, sizes: Mapping[str, int]) -> list[dict[str, int]]:
    """How many of each group, stage by stage.

    - weighted: ``min(max(10, int(total * w)), n)``, with normalised weights, 0.1 for others;
    - balanced: ``min(n, total // groups)``; without a total, the smallest group's size;
    - curriculum: every stage gets ``total // stages`` and is weighted; groups without a weight
      in it get nothing. The stages are drawn one by one, so a trajectory can be in several.

    Without a total it is the number of trajectories.

    Args:
        options: checked options with ``compat: sage``.
        sizes: group -> number of its trajectories, n.
    """
    total = options.total or sum(sizes.values())
    if options.method == "balanced":
        result = total // max(len(sizes), 1) if options.total else min(sizes.values(), default=0)
        return [{group: min(size, result) for group, size in sizes.items()}]
    if options.method == "weighted":
        return [_weighted(total, options.weights or SAGE_WEIGHTS, sizes, UNKNOWN)]
    stages = [stage.weights for stage in options.stages] or list(SAGE_STAGES)
    return [_weighted(total // len(stages), weights, sizes, 0.0) for weights in stages]


def _weighted(
    total: int, weights: Mapping[str, float], sizes: Mapping[str, int], unknown: float
) -> dict[str, int]:
    full = sum(weights.values())
    shares = {group: weight / full for group, weight in weights.items()}
    counts = {}
    for group, size in sizes.items():
        share = shares.get(group, unknown)
        wanted = max(LEAST, int(total * share)) if share > 0 or unknown else 0
        counts[group] = min(wanted, size)
    return counts
