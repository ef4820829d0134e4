"""Preference pairs, by reference to trajectories and steps.

A rule says what is paired. It looks at candidates and tells the ledger of each whether it is
``paired`` or ``not_paired``, and why, so that a rule that finds nothing is explained row by row. A
pair has a stable id: blake2b of the rule and the references.

- ``m3_step``: each alternate of M3's runs that its reader admits; chosen is the expert's side.
- ``alternates``: the step that was taken against its alternate, by actor, reward, label or outcome.
- ``branches``: where attempts at one task part, by the mean value of what follows (MALT, Agent Q).
- ``attempts``: whole attempts at one task, by reward or success, with ETO's control of lengths.
- ``m3_trajectory``: runs of two agents at one task, by the two filters of M3's reader; or a run
  and its alternate, from where they part to their ends, by the outcome.
- ``format_corruption``: a step against the same step with a damaged call (Tiny Tool Use).
- ``ranked``: all attempts at one task that are more than 0.1 apart (SAGE).

The value of a run is its reward; without one 1 for success and 0 for failure; else it has none and
is not paired. Pair before duplicates are removed: attempts at one task are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from adp.curation.op import Op, OpResult
from adp.curation.ops.pairs import (
    alternates,
    attempts,
    branches,
    format_corruption,
    m3_trajectory,
)
from adp.curation.ops.pairs.options import Pairs
from adp.curation.pool import Pool

RULES: dict[str, Callable[[Pool, Pairs], OpResult]] = {
    "alternates": alternates.run,
    "attempts": attempts.run,
    "branches": branches.run,
    "format_corruption": format_corruption.run,
    "m3_step": alternates.run,
    "m3_trajectory": m3_trajectory.run,
    "ranked": attempts.run,
}
"""Rule -> what finds its pairs."""


def run(pool: Pool, options: Pairs) -> OpResult:
    """Find the pairs of one rule."""
    return RULES[options.rule](pool, options)


def _needs(options: Pairs) -> Iterable[str]:
    return () if options.score is None else (options.score,)


OP = Op(
    name="pairs",
    title="Preference pairs: from alternates, branches, attempts at one task, or damaged calls.",
    options=Pairs,
    run=run,
    cost="Alternates and runs: a query. Attempts and branches: one reading of the steps of tasks "
    "with several attempts; memory for their hashes. Damaged calls: one reading of the steps.",
    source="M3 (m3-train-eval, its preference data); ETO (arXiv 2403.02502); MALT (arXiv "
    "2412.01928); Agent Q (arXiv 2408.07199); SAGE, PreferenceDataFormatter; Tiny Tool Use, its "
    "DPO pairs.",
    needs=_needs,
)
