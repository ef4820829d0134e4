"""How scores become figures: means, intervals, pass@k and pass^k, differences between two runs.

    figures = mean_figures(rows)                        # a mean with an interval for each metric
    figures = pass_figures(rows, "success")             # pass@k and pass^k
    figure = ratio_figure(rows, "failed_calls", "calls", name="error_rate")
    difference = paired_difference(before, after, "success")

Attempts at one task are not independent, so intervals are clustered by task. What is not scored
counts for nothing, and is counted.
"""

from adp.eval.metrics.folding import folded
from adp.eval.metrics.intervals import Intervals, wilson
from adp.eval.metrics.means import (
    evidence_figure,
    mean_figures,
    productivity_figure,
    ratio_figure,
    weighted_mean_figure,
)
from adp.eval.metrics.metric_scores import is_number
from adp.eval.metrics.paired import Difference, paired_difference
from adp.eval.metrics.passes import pass_at_k, pass_figures, pass_hat_k

__all__ = [
    "Difference",
    "Intervals",
    "evidence_figure",
    "folded",
    "is_number",
    "mean_figures",
    "paired_difference",
    "pass_at_k",
    "pass_figures",
    "pass_hat_k",
    "productivity_figure",
    "ratio_figure",
    "weighted_mean_figure",
    "wilson",
]
