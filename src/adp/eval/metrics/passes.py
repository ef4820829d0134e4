"""pass@k and pass^k: one of k attempts succeeds, and all of k do.

For a task with n attempts and c successes the unbiased estimates are
pass@k = 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, eq. 1) and
pass^k = C(c, k) / C(n, k) (Yao et al. 2024, tau-bench, section 5.1).
With fewer than k attempts neither is defined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from adp.eval.metrics.intervals import DEFAULT, Intervals, mean_ends, share_ends
from adp.eval.metrics.metric_scores import Cluster, Collected, collect
from adp.eval.scorer import Figure, Scored
from adp.rollouts.turns import is_success


def pass_at_k(attempts: int, successes: int, k: int) -> float | None:
    """Chance that at least one of k attempts, drawn without replacement, succeeds.

    Args:
        attempts: number of attempts at the task.
        successes: how many of them succeeded.
        k: number of attempts that are drawn, at least 1.

    Returns:
        The chance; None when there are fewer than k attempts.
    """
    if not 1 <= k <= attempts:
        return None
    return 1.0 - math.comb(attempts - successes, k) / math.comb(attempts, k)


def pass_hat_k(attempts: int, successes: int, k: int) -> float | None:
    """Chance that all of k attempts, drawn without replacement, succeed. See `pass_at_k`."""
    if not 1 <= k <= attempts:
        return None
    return math.comb(successes, k) / math.comb(attempts, k)


def pass_figures(
    rows: Sequence[Scored],
    metric: str = "success",
    ks: Sequence[int] | None = None,
    intervals: Intervals = DEFAULT,
    *,
    partial: bool = False,
) -> list[Figure]:
    """pass@k and pass^k over tasks, each task alike.

    Branches are no attempts: they begin with steps of another one. Rollouts that branched
    (`adp collect --branching`) are: all attempts at a task that were asked for count.

    Args:
        rows: the scores.
        metric: what decides; a number within 1e-6 of 1 is a success.
        ks: numbers of attempts; None: 1 to the number of attempts that at least half of the tasks
            have, above four only powers of two and that number.
        intervals: how intervals are made, over tasks.
        partial: leave out tasks with too few attempts; otherwise one such task makes the figure
            undefined, because the rest need not be like it.

    Returns:
        pass@k for each k, then pass^k for each k.
    """
    frame = collect([row for row in rows if not row.branch], metric)
    counts: dict[Cluster, list[int]] = {}
    for value, task in zip(frame.values, frame.tasks, strict=True):
        tally = counts.setdefault(task, [0, 0])
        tally[0] += 1
        tally[1] += is_success(value)
    chosen = ks if ks is not None else _ks([attempts for attempts, _ in counts.values()])
    kinds = (("pass@", pass_at_k), ("pass^", pass_hat_k))
    return [
        _figure(
            f"{name}{k}", frame, [chance(n, c, k) for n, c in counts.values()], intervals, partial
        )
        for name, chance in kinds
        for k in chosen
    ]


def _ks(attempts: Sequence[int]) -> list[int]:
    """1 to 4, then powers of two, up to the number of attempts that half of the tasks have."""
    most = sorted(attempts)[len(attempts) // 2] if attempts else 1
    powers = {2**power for power in range(2, most.bit_length())}
    return sorted({*range(1, min(most, 4) + 1), *powers, most})


def _figure(
    name: str,
    value: Collected,
    chances: Sequence[float | None],
    intervals: Intervals,
    partial: bool,
) -> Figure:
    known = [chance for chance in chances if chance is not None]
    if not chances:
        return value.undefined(name)
    if not known or (len(known) < len(chances) and not partial):
        few = len(chances) - len(known)
        return value.undefined(
            name, f"{few} of {len(chances)} tasks have fewer than {name[5:]} scored attempts"
        )
    # pass@1 is the mean success: with several attempts a task, its interval is the same, too.
    repeated = name in ("pass@1", "pass^1") and len(value.values) > len(chances)
    tasks = [str(index) for index in range(len(known))]
    if repeated:
        ends = share_ends(known, [1.0] * len(known), tasks, intervals)
    else:
        ends = mean_ends(known, tasks, intervals)
    reason = None
    if len(known) < len(chances):
        few = len(chances) - len(known)
        reason = f"without {few} task{'s that have' if few > 1 else ' that has'} too few attempts"
    return value.figure(name, math.fsum(known) / len(known), ends, reason)
