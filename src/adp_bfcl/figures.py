"""Figures of BFCL: accuracy by category, and how version 4 puts them together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from adp.eval.metrics import mean_figures
from adp.eval.scorer import Figure, Scored
from adp_bfcl.categories import AGENTIC, LIVE, MULTI_TURN, NON_LIVE

WEIGHTS = {"non_live": 10, "live": 10, "irrelevance": 10, "multi_turn": 30, "agentic": 40}
"""Percent of the overall score of BFCL v4."""

_SIMPLE = ("simple_python", "simple_java", "simple_javascript")
_NON_LIVE_AST = ("simple_ast", "multiple", "parallel", "parallel_multiple")
_LIVE_AST = tuple(name for name in LIVE if "relevance" not in name)
_LIVE_SIZES = {
    "live_simple": 258,
    "live_multiple": 1053,
    "live_parallel": 16,
    "live_parallel_multiple": 24,
}
"""Numbers of entries, with which a category that was not run is weighted when it counts as 0."""


@dataclass(frozen=True)
class FigurePart:
    """A number that is put together of others.

    Attributes:
        value: the number; None when parts are missing.
        missing: the categories that were not run.
        parts: all categories that it is put together of.
    """

    value: float | None
    missing: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


def aggregate(
    accuracy: Mapping[str, float],
    counts: Mapping[str, int] | None = None,
    *,
    missing_as_zero: bool = False,
) -> dict[str, FigurePart]:
    """The figures of the leaderboard of BFCL v4.

    Args:
        accuracy: accuracy by category, between 0 and 1; only categories that were run.
        counts: judged entries by category; live is a mean weighted with them.
        missing_as_zero: whether a category that was not run counts as 0, as in BFCL's own tables;
            else a figure that needs it has no value, and names it.

    Returns:
        ``simple_ast``, ``non_live``, ``live``, ``irrelevance``, ``relevance``, ``multi_turn``,
        ``agentic`` and ``overall``.
    """
    sizes = {**_LIVE_SIZES, **(counts or {})}
    leaf = {
        name: FigurePart(accuracy.get(name), () if name in accuracy else (name,), (name,))
        for name in (*NON_LIVE, *LIVE, *MULTI_TURN, *AGENTIC)
    }

    def mean(parts: Sequence[FigurePart], weights: Sequence[float] | None = None) -> FigurePart:
        missing = tuple(dict.fromkeys(name for part in parts for name in part.missing))
        names = tuple(dict.fromkeys(name for part in parts for name in part.parts))
        if missing and not missing_as_zero:
            return FigurePart(None, missing, names)
        shares = weights or [1.0] * len(parts)
        total = sum((part.value or 0.0) * share for part, share in zip(parts, shares, strict=True))
        return FigurePart(total / sum(shares) if sum(shares) else None, missing, names)

    results = {"simple_ast": mean([leaf[name] for name in _SIMPLE])}
    results["non_live"] = mean([{**leaf, **results}[name] for name in _NON_LIVE_AST])
    results["live"] = mean([leaf[name] for name in _LIVE_AST], [sizes[name] for name in _LIVE_AST])
    results["irrelevance"] = mean([leaf["irrelevance"], leaf["live_irrelevance"]])
    results["relevance"] = mean([leaf["live_relevance"]])
    results["multi_turn"] = mean([leaf[name] for name in MULTI_TURN])
    web = mean([leaf["web_search_base"], leaf["web_search_no_snippet"]])
    memory = mean([leaf[name] for name in AGENTIC if name.startswith("memory")])
    results["agentic"] = mean([web, memory])
    results["overall"] = mean([results[name] for name in WEIGHTS], list(WEIGHTS.values()))
    return results


def category_figures(rows: Sequence[Scored]) -> dict[tuple[str, str], Figure]:
    """Accuracy with an interval, by metric and category. Nothing is unscored as 0."""
    result: dict[tuple[str, str], list[Scored]] = defaultdict(list)
    for row in rows:
        category = str(row.score.evidence.get("category") or "unknown")
        result[row.score.metric, category].append(row)
    return {
        (metric, category): replace(mean_figures(group, [metric])[0], name=f"{metric}/{category}")
        for (metric, category), group in result.items()
    }
