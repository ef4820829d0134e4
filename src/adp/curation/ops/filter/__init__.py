"""Leave trajectories out by a rule: SQL, limits, a known system's filter, an outcome, a cap.

Several rules may stand together. Each trajectory that goes has one reason, the first rule that it
fails, in this order: ``sql``, ``min`` and ``max``, the preset. The cap comes last and counts only
what is left: filter, then group, then cap.

Presets:

- ``success``: the task was solved.
- ``actor``: an actor, such as ``expert``, made the agent's steps, or some of them.
- ``sage``, ``sage_doc``: the trajectory filter of SAGE, with the defaults of its code or of its
  documentation; see `sage`.
- ``toucan``: the six rules of Toucan; see `toucan`.
- ``et_agent_v1``, ``et_agent_v2``: the two format validators of ET-Agent, with optional repair; see
  `tags`.
"""

from __future__ import annotations

from adp.curation.op import Op, OpResult
from adp.curation.ops.filter import et_agent, rules, sage, toucan
from adp.curation.ops.filter.options import Filter
from adp.curation.ops.filter.verdicts import Verdicts
from adp.curation.pool import Pool

_PRESETS = {
    "success": rules.success,
    "actor": rules.actor,
    "sage": sage.judge,
    "sage_doc": sage.judge,
    "toucan": toucan.judge,
    "et_agent_v1": et_agent.judge,
    "et_agent_v2": et_agent.judge,
}


def run(pool: Pool, options: Filter) -> OpResult:
    """Filter."""
    verdicts = Verdicts(pool)
    if options.sql is not None:
        rules.sql(pool, options, verdicts)
    rules.limits(pool, options, verdicts)
    if options.preset is not None:
        _PRESETS[options.preset](pool, options, verdicts)
    if options.per_task_cap is not None:
        rules.cap(pool, options, verdicts)
    return verdicts.outcome()


def _needs(options: Filter) -> list[str]:
    ordered = [text.split()[0] for text in options.order]
    return list(dict.fromkeys([*options.min, *options.max, *ordered]))


OP = Op(
    name="filter",
    title="Leave trajectories out by SQL, limits, an outcome, a known filter, or a cap per task.",
    options=Filter,
    run=run,
    cost="SQL, limits, success and the cap: one query over the trajectories. SAGE and actor: the "
    "narrow columns of steps and calls. Toucan and ET-Agent: one pass over all text.",
    source="SAGE TrajectoryFilter (FireAct module); ET-Agent, arXiv 2601.06860, format validators; "
    "Toucan, arXiv 2510.01179, rule-based filter; SWE-smith's cap per instance.",
    needs=_needs,
)
