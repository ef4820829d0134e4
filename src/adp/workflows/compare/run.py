"""Running a comparison: one loop, whose stages go past a method that fails.

OUT/
  all_results.json     the numbers
  report.html, .md     the table and the charts
  round-1/             what the stages made: data-..., NAME-s0 (training), NAME-s0-eval (episodes)
  loop.json, records/, ledger.jsonl    as every loop has them
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from adp.workflows.compare.comparison import LoopBuilder, MethodComparison, PlannedRun
from adp.workflows.compare.numbers import ComparisonResult, collect_results, write_results
from adp.workflows.compare.tokens import trained_tokens
from adp.workflows.loop import LoopOptions, LoopPlan, StageNews, make_plan, read_loop, run_loop
from adp_schema.errors import UsageError


@dataclass(frozen=True)
class ComparisonPlan:
    """A comparison that was checked.

    Attributes:
        loop: its stages.
        runs: the stages of each method and seed, the baseline first.
    """

    loop: LoopPlan
    runs: tuple[PlannedRun, ...]


def plan_comparison(
    comparison: MethodComparison, tokens: int | None = None, *, allow_python: bool = False
) -> ComparisonPlan:
    """Check a comparison, and say what it would do.

    Args:
        comparison: what is compared.
        tokens: tokens under the loss of the baseline, for equal ones.
        allow_python: let recipes be Python code.

    Raises:
        UsageError: something in a method or in an option is wrong.
        StoreError: there is no such store.
    """
    first = comparison.first
    others = [method for method in comparison.methods if method is not first]
    given = {method.name: comparison.tokens for method in comparison.methods}
    if comparison.tokens is None:
        given = {method.name: tokens for method in others}
    known = {name: number for name, number in given.items() if number is not None}
    builder = LoopBuilder(comparison, known)
    seeds = range(comparison.seeds)
    runs = [builder.add(method, seed) for seed in seeds for method in (first, *others)]
    # Paths are noted from the folder of the data, which may then lie elsewhere the next time.
    here = Path(comparison.data).absolute().parent
    plan = make_plan(read_loop(builder.file()), here, allow_python=allow_python)
    return ComparisonPlan(plan, tuple(runs))


def compare(
    comparison: MethodComparison,
    out: str | os.PathLike[str],
    options: LoopOptions | None = None,
    *,
    allow_python: bool = False,
) -> ComparisonResult:
    """Run a comparison, or what of it is left; everything is checked before anything runs.

    Args:
        comparison: what is compared.
        out: folder for all that it makes.
        options: how the loop is run; a method that fails does not stop the others.
        allow_python: let recipes be Python code.

    Returns:
        The numbers, which are written to ``all_results.json`` too.

    Raises:
        UsageError: something in a method or in an option is wrong.
        OutputExistsError: the folder holds something else, or a stage was done with other options.
        StoreError: there is no such store.
    """
    options = options or LoopOptions()
    plan = plan_comparison(comparison, allow_python=allow_python)
    failed: dict[str, str] = {}
    tokens = comparison.tokens
    if comparison.equal_tokens and tokens is None:
        tokens, redone = _tokens_of_baseline(comparison, Path(out), options, allow_python)
        plan = plan_comparison(comparison, tokens, allow_python=allow_python)
        options = replace(options, redo=[text for text in options.redo if text not in redone])

    def watch(news: StageNews) -> None:
        if news.what == "failed":
            failed[news.key] = news.line
        options.watch(news)

    run_loop(plan.loop, out, replace(options, watch=watch, keep_going=True))
    result = collect_results(comparison, plan.runs, Path(out), failed, tokens)
    write_results(result, Path(out))
    return result


def _tokens_of_baseline(
    comparison: MethodComparison, out: Path, options: LoopOptions, allow_python: bool
) -> tuple[int, list[str]]:
    """Train the baseline: its tokens, and which stages were done again for that."""
    alone = replace(comparison, methods=(comparison.first,), seeds=1)
    plan = plan_comparison(alone, allow_python=allow_python)
    known = {name for stage in plan.loop.stages for name in (stage.key, stage.context.name)}
    redone = [text for text in options.redo if text in known]
    until = plan.runs[0].trains[-1]
    run_loop(plan.loop, out, replace(options, until=until, redo=redone))
    tokens = trained_tokens(out, plan.runs[0])
    if not tokens:
        raise UsageError("the baseline trained on no token; say how many are to be: --tokens N")
    return tokens, redone
