"""Comparing methods: each selects, trains and is measured alike, over several seeds.

comparison = MethodComparison(methods, "data", Measurement(suite="toolworld"), seeds=3)
result = compare(comparison, "runs/compare")
"""

from adp.workflows.compare.comparison import Measurement, MethodComparison
from adp.workflows.compare.numbers import ComparedMethod, ComparisonResult, SeedRun, read_results
from adp.workflows.compare.run import compare, plan_comparison

__all__ = [
    "ComparedMethod",
    "ComparisonResult",
    "Measurement",
    "MethodComparison",
    "SeedRun",
    "compare",
    "plan_comparison",
    "read_results",
]
