"""SAGE's filter of trajectories, by its code or by its documentation.

The defaults of the code (``sage``): reward >= 0, success required, at least 1 step, at least 1
different tool. Those of the documentation (``sage_doc``): reward >= 0.5, success required, no rule
about steps or tools. Neither limits the number of steps or forbids tools.

A step of SAGE is a step of the agent with its thought, action and observation; ``finish`` and
``error`` are no tools. A reward or success that is null, which SAGE does not have, does not pass
where a rule asks for it; ``unknown: keep`` lets it pass.
"""

from __future__ import annotations

from typing import Any

from adp.curation.ops.filter.options import Filter
from adp.curation.ops.filter.verdicts import Verdicts
from adp.curation.pool import Pool

DEFAULTS: dict[str, dict[str, Any]] = {
    "sage": {
        "min_reward": 0.0, "require_success": True, "min_steps": 1, "max_steps": None,
        "min_tool_usage": 1, "exclude_actions": (),
    },
    "sage_doc": {
        "min_reward": 0.5, "require_success": True, "min_steps": 0, "max_steps": None,
        "min_tool_usage": 0, "exclude_actions": (),
    },
}  # fmt: skip

_SQL = """
    SELECT m.seq, p.success, p.reward, coalesce(s.steps, 0) AS steps,
        coalesce(c.tools, []) AS tools
    FROM members m JOIN pool p USING (seq)
    LEFT JOIN (
        SELECT seq, count(*) AS steps FROM steps
        WHERE source = 'agent' AND coalesce(kind, 'llm_turn') IN ('llm_turn', 'message')
        GROUP BY seq) s ON s.seq = m.seq
    LEFT JOIN (
        SELECT seq, list(DISTINCT name ORDER BY name) AS tools FROM tool_calls
        WHERE name IS NOT NULL AND coalesce(requestor, 'agent') <> 'user'
        GROUP BY seq) c ON c.seq = m.seq
    ORDER BY m.seq"""

_NO_TOOLS = frozenset({"finish", "error"})


def judge(pool: Pool, options: Filter, verdicts: Verdicts) -> None:
    """Apply the rules, in the order of the options."""
    assert options.preset is not None
    given = {name: getattr(options, name) for name in options.given()}
    rules = {name: given.get(name, value) for name, value in DEFAULTS[options.preset].items()}
    passed = successful = rewarded = 0
    rows = pool.query(_SQL)
    for seq, solved, reward, steps, names in rows.iter_rows():
        values = {"success": solved, "reward": reward, "steps": steps, "tools": names}
        failed = _failed(rules, values, keep=options.unknown == "keep")
        successful += bool(solved)
        rewarded += "reward is unknown" not in failed and "reward is below the limit" not in failed
        passed += not failed
        if failed:
            figures = {name: value for name, value in values.items() if name != "tools"}
            verdicts.drop(seq, failed[0], all=failed, tools=len(_used(names)), **figures)
    total = rows.height
    verdicts.summary["sage"] = {
        "total": total,
        "successful": successful,
        "success_rate": successful / total if total else 0.0,
        "above_reward_threshold": rewarded,
        "passed_filter": passed,
        "filter_pass_rate": passed / total if total else 0.0,
    }


def _used(names: list[str]) -> list[str]:
    return [name for name in names if name not in _NO_TOOLS]


def _failed(rules: dict[str, Any], fields: dict[str, Any], *, keep: bool) -> list[str]:
    """The rules that a trajectory fails."""
    reward, solved = fields["reward"], fields["success"]
    checks = {
        "reward is unknown": rules["min_reward"] is not None and reward is None and not keep,
        "reward is below the limit": rules["min_reward"] is not None
        and reward is not None
        and not reward >= rules["min_reward"],
        "success is unknown": rules["require_success"] and solved is None and not keep,
        "the task was not solved": rules["require_success"] and solved is False,
        "too few steps": fields["steps"] < (rules["min_steps"] or 0),
        "too many steps": rules["max_steps"] is not None and fields["steps"] > rules["max_steps"],
        "too few tools": len(_used(fields["tools"])) < (rules["min_tool_usage"] or 0),
        "an excluded action": bool(set(fields["tools"]) & set(rules["exclude_actions"] or ())),
    }
    return [reason for reason, failed in checks.items() if failed]
