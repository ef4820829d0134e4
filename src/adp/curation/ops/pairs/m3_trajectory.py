"""M3's preference pairs of whole runs (`create_pref_trajectories_for_dpo`, its dataset reader).

The runs of two agents at one task (``sample_id``) are put beside each other. They may be in two
data sets; then they must begin with the same words too, as other data sets number their tasks
alike. A pair needs equal system prompts, tools and policies; a chosen run whose last reward is
exactly ``{REWARD_FINAL_ANSWER_MATCH}``; and a rejected run whose last reward is not that. With
``mask_suboptimal_traces`` both sides note the mask policy of that name: turns whose reward holds an
erroneous category are not trained in the chosen, and only they in the rejected run.

With ``alternates: true`` the two sides are a run and one of its alternates that was followed to the
end, from the step on at which they part: see `adp.curation.ops.pairs.alternates`.

Where a task has several runs of one agent, all of them are compared; M3's script keeps the last.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from adp.curation.op import OpResult
from adp.curation.ops.pairs.alternates import continuations
from adp.curation.ops.pairs.options import Pairs
from adp.curation.ops.pairs.pair_candidates import NOT_PAIRED, PAIRED, PairCandidates
from adp.curation.ops.pairs.rounds import Rounds, rounds_of
from adp.curation.pool import Pool

MATCH = "REWARD_FINAL_ANSWER_MATCH"
MASK = "mask_suboptimal_traces"
SAME = ("system", "tools", "tool_availability", "tool_usage", "final_answer")
"""What both runs must have in common."""

NO_TASK = "its task is not known"
NEITHER = "it belongs to neither side"
BOTH = "it belongs to both sides"
NO_OTHER = "no run of its task is on the other side"
DIFFERENT = "the two runs differ in system prompt, tools, policies or question"
NO_CHOSEN = "the last reward of the chosen run is no match"
MATCHES = "the last reward of the rejected run is a match"

_RUNS = """
WITH turns AS (
    SELECT s.seq, s.step, s.actor, s.labels FROM steps s SEMI JOIN members USING (seq)
    WHERE s.source = 'agent' AND coalesce(s.kind, '') NOT IN ('context_edit', 'event')
), ends AS (
    SELECT seq, arg_max(labels, step) AS labels, arg_max(actor, step) AS last_actor,
        bool_and(actor IS NOT DISTINCT FROM 'expert') AS expert_only, count(*) AS turns
    FROM turns GROUP BY seq
), prompts AS (
    SELECT s.seq, string_agg(s.text, chr(30) ORDER BY s.step) AS system
    FROM steps s SEMI JOIN members USING (seq) WHERE s.source = 'system' GROUP BY s.seq
)
SELECT p.seq, ends.labels, coalesce(ends.expert_only, false) AS expert_only,
    coalesce(ends.turns, 0) AS turns, md5(coalesce(prompts.system, '')) AS system,
    md5(coalesce(p.tools, '')) AS tools, p.policy_tool_availability AS tool_availability,
    p.policy_tool_usage AS tool_usage, p.policy_final_answer AS final_answer
FROM pool p LEFT JOIN ends USING (seq) LEFT JOIN prompts USING (seq)
ORDER BY p.seq
"""


def run(pool: Pool, options: Pairs) -> OpResult:
    """Compare the runs of the two sides, task by task."""
    mask = MASK if options.mask_suboptimal_traces else None
    if options.alternates:
        return continuations(pool, mask)
    pair_candidates = PairCandidates(options.rule, mask, mask)
    members = pool.members.select("seq", "trajectory_id", "task", "task_id").sort("seq")
    rows = members.join(pool.query(_RUNS), on="seq", how="left", maintain_order="left")
    sides = _sides(pool, options, rows)
    groups: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {}
    for row in rows.iter_rows(named=True):
        side = sides.get(row["seq"], NEITHER)
        if row["task_id"] is None:
            pair_candidates.event(row["seq"], None, NOT_PAIRED, NO_TASK, {})
        elif isinstance(side, str):
            pair_candidates.event(row["seq"], None, NOT_PAIRED, side, {"task_id": row["task_id"]})
        else:
            groups.setdefault(row["task_id"], ([], []))[side].append(row)
    turns = rounds_of(pool, rows.filter(pl.col("task_id").is_not_null())["seq"])
    for task in sorted(groups):
        _task(pair_candidates, task, *groups[task], turns)
    return pair_candidates.outcome("runs")


def _sides(pool: Pool, options: Pairs, rows: pl.DataFrame) -> dict[int, int | str]:
    """Key of a run -> 0 for the chosen side, 1 for the rejected one, or why neither."""
    out: dict[int, int | str] = {}
    if options.chosen is not None and options.rejected is not None:
        chosen = set(pool.where(options.chosen)["seq"].to_list())
        rejected = set(pool.where(options.rejected)["seq"].to_list())
        out.update(dict.fromkeys(chosen, 0))
        out.update(dict.fromkeys(rejected, 1))
        out.update(dict.fromkeys(chosen & rejected, BOTH))
        empty = rows.filter(pl.col("turns") == 0)["seq"].to_list()
        out.update(dict.fromkeys(empty, NEITHER))
        return out
    for seq, turns, expert_only in rows.select("seq", "turns", "expert_only").iter_rows():
        if turns:
            out[seq] = 0 if expert_only else 1
    return out


def _task(
    pair_candidates: PairCandidates,
    task: str,
    chosen: list[dict[str, Any]],
    rejected: list[dict[str, Any]],
    turns: dict[int, Rounds],
) -> None:
    """Compare every chosen with every rejected run of a task."""
    pair_candidates.counts["tasks"] += 1
    pair_candidates.counts["candidates"] += len(chosen) * len(rejected)
    for row in [*chosen, *rejected] if not (chosen and rejected) else []:
        pair_candidates.event(row["seq"], None, NOT_PAIRED, NO_OTHER, {"task_id": task})
    for item in chosen:
        for other in rejected:
            evidence: dict[str, Any] = {
                "task_id": task,
                "chosen": item["trajectory_id"],
                "rejected": other["trajectory_id"],
                "chosen_reward": list(item["labels"] or ()),
                "rejected_reward": list(other["labels"] or ()),
            }
            ours, theirs = turns[item["seq"]], turns[other["seq"]]
            differ = [name for name in SAME if item[name] != other[name]]
            if item["task"] != other["task"] and ours.prompt != theirs.prompt:
                differ.append("question")
            reason = None
            if differ:
                reason, evidence["differ"] = DIFFERENT, differ
            elif list(item["labels"] or ()) != [MATCH]:
                reason = NO_CHOSEN
            elif list(other["labels"] or ()) == [MATCH]:
                reason = MATCHES
            verdict = PAIRED if reason is None else NOT_PAIRED
            if reason is None:
                evidence["pair_id"] = pair_candidates.pair(
                    "trajectory",
                    ours.context(item["trajectory_id"]),
                    ours.side(item["trajectory_id"], None),
                    theirs.side(other["trajectory_id"], None),
                    task_id=task,
                    scores={"chosen": item["labels"], "rejected": other["labels"]},
                )
            for row, word in ((item, "chosen"), (other, "rejected")):
                pair_candidates.event(
                    row["seq"], None, verdict, reason or f"it is {word}", evidence
                )
