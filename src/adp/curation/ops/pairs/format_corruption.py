"""Pairs of a step and the same step with a damaged call (Tiny Tool Use, its DPO pairs).

Rejected is a made-up branch of kind ``revision``: the step as it was written, but that its call is
damaged (see `corruption`). So a model learns the form of calls. The steps and what is done to them
are drawn by the seed and the ids of the runs.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from adp.curation.op import OpResult
from adp.curation.ops.pairs.corruption import StepCall, damage
from adp.curation.ops.pairs.options import Pairs
from adp.curation.ops.pairs.pair_candidates import (
    NOT_PAIRED,
    PAIRED,
    PairCandidates,
    PairContext,
    PairSide,
)
from adp.curation.partitions import Partition
from adp.curation.pool import Pool
from adp_schema import ids, jsontext
from adp_schema.model import Step, ToolCall, Trajectory

MADE_BY = "pairs: format_corruption"
NO_CALL = "no step of it makes one call with a name and arguments"
NOT_DRAWN = "other steps were drawn"
SOUND = "none of the corruptions can be done to its call"

_CANDIDATES = """
SELECT c.seq, c.step FROM tool_calls c SEMI JOIN members USING (seq)
JOIN steps s ON s.seq = c.seq AND s.step = c.step AND s.source = 'agent'
WHERE coalesce(c.requestor, 'agent') = 'agent' AND coalesce(c.kind, 'function') = 'function'
GROUP BY c.seq, c.step HAVING count(*) = 1 AND any_value(c.name) IS NOT NULL
    AND any_value(c.arguments) IS NOT NULL
ORDER BY c.seq, c.step
"""


def run(pool: Pool, options: Pairs) -> OpResult:
    """Draw steps, damage their calls, and pair them."""
    pair_candidates = PairCandidates(options.rule)
    members = pool.members.select("seq", "trajectory_id", "task_id").sort("seq")
    candidates = pool.query(_CANDIDATES).join(members, on="seq", how="inner")
    drawn = _draw(candidates, pool.seed, options)
    path = pool.scratch / "corruption-wanted.parquet"
    drawn.write_parquet(path)
    rows = pool.map(_damaged, (str(path), pool.seed, options.corruptions), "corruption")
    made: list[Trajectory] = []
    taken = _taken(pool)
    for row in rows.iter_rows(named=True) if rows.height else ():
        _pair(pair_candidates, row, made, taken)
    inside = {event[0] for event in pair_candidates.events}
    able = set(candidates["seq"].to_list())
    for seq, _, _ in members.iter_rows():
        if seq not in inside:
            reason = NOT_DRAWN if seq in able else NO_CALL
            pair_candidates.event(seq, None, NOT_PAIRED, reason, {})
    pair_candidates.counts["candidates"] = candidates.height
    out = pair_candidates.outcome("trajectories")
    out.made = made
    return out


def _draw(candidates: pl.DataFrame, seed: int, options: Pairs) -> pl.DataFrame:
    """The steps with the smallest hashes: some of each run, and so many in all."""
    order = [
        _number(seed, name, step)
        for name, step in candidates.select("trajectory_id", "step").iter_rows()
    ]
    ranked = candidates.with_columns(pl.Series("order", order, dtype=pl.UInt64))
    ranked = ranked.sort("order", "seq", "step")
    place = pl.int_range(pl.len()).over("seq")
    ranked = ranked.filter(place < options.per_trajectory).head(options.max_pairs)
    return ranked.sort("seq", "step").select("seq", "step", "trajectory_id", "task_id")


def _number(seed: int, name: str, step: int) -> int:
    """A number that follows from the seed and the step."""
    data = f"{seed}\x1f{name}\x1f{step}".encode()
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def _damaged(partition: Partition, options: tuple[str, int, tuple[str, ...]]) -> pl.DataFrame:
    """The drawn steps of a partition with their calls damaged."""
    path, seed, kinds = options
    wanted = pl.read_parquet(Path(path), glob=False)
    texts = ["step", "source", "kind", "actor", "turn", "text", "reasoning", "model"]
    steps = partition.read("steps", texts).join(wanted, on=["seq", "step"], how="inner")
    names = ["step", "name", "arguments", "span_start", "span_end", "origin"]
    calls = partition.read("tool_calls", names).join(wanted, on=["seq", "step"], how="semi")
    runs = partition.read("trajectories", ["tools"]).join(wanted, on="seq", how="semi")
    tools = {seq: offered_names(text) for seq, text in runs.iter_rows()}
    rows = []
    joined = steps.join(calls, on=["seq", "step"], how="inner").sort("seq", "step")
    for row in joined.iter_rows(named=True):
        rows.append(_pair_of(row, tools.get(row["seq"], frozenset()), seed, kinds))
    return pl.DataFrame(rows, schema=_SCHEMA())


def _pair_of(
    row: dict[str, Any], offered: frozenset[str], seed: int, kinds: tuple[str, ...]
) -> dict[str, Any]:
    """Damage one step by the first of the corruptions, in the order drawn, that fits."""
    rng = np.random.default_rng(_number(seed, row["trajectory_id"], row["step"]))
    spans = row["origin"] == "parsed_from_text" and row["span_start"] is not None
    call = StepCall(row["name"], row["arguments"], *_span(row) if spans else (None, None))
    out = {key: row[key] for key in ("seq", "step", "trajectory_id", "task_id", "turn", "actor")}
    out |= {"reasoning": row["reasoning"], "model": row["model"]}
    for kind in rng.permutation(np.array(kinds)).tolist():
        result = damage(kind, row["text"], call, offered, rng)
        if result is None:
            continue
        out |= {"corruption": kind, "text": result.text}
        if result.call is not None:
            new = result.call
            out |= {"name": new.name, "arguments": new.arguments}
            out |= {"span_start": new.start, "span_end": new.end}
        break
    return out


def _span(row: dict[str, Any]) -> tuple[int, int]:
    return row["span_start"], row["span_end"]


def _SCHEMA() -> dict[str, Any]:
    texts = ("trajectory_id", "task_id", "actor", "reasoning", "model", "corruption", "text")
    full = {"seq": pl.Int64, "step": pl.Int32, "turn": pl.Int32}
    spans = {"span_start": pl.Int32, "span_end": pl.Int32}
    return {**full, **dict.fromkeys((*texts, "name", "arguments"), pl.String), **spans}


def offered_names(tools: str | None) -> frozenset[str]:
    """Names of the tools on offer."""
    if tools is None or not jsontext.is_valid(tools):
        return frozenset()
    listed = jsontext.decode_value(tools)
    items = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    child = [item.get("function", item) for item in items]
    names = [item.get("name") for item in child if isinstance(item, dict)]
    return frozenset(name for name in names if isinstance(name, str))


def _taken(pool: Pool) -> set[str]:
    """Ids that a made-up branch cannot have, such as those of an earlier stage or recipe."""
    frames = (pool.members, pool.waiting, pool.branches)
    return {name for frame in frames for name in frame["trajectory_id"]}


def _pair(
    pair_candidates: PairCandidates, row: dict[str, Any], made: list[Trajectory], taken: set[str]
) -> None:
    """Make the branch and the pair of one step."""
    seq, step, name = row["seq"], row["step"], row["trajectory_id"]
    if row["corruption"] is None:
        pair_candidates.event(seq, step, NOT_PAIRED, SOUND, {})
        return
    base, number = f"{name}/damaged-{step}", 1
    while ids.numbered(base, number) in taken:
        number += 1
    branch = _branch(row, ids.numbered(base, number))
    made.append(branch)
    pair_candidates.counts[row["corruption"]] += 1
    pair = pair_candidates.pair(
        "step",
        PairContext(name, step),
        PairSide(name, step, step + 1),
        PairSide(str(branch.trajectory_id), step, step + 1),
        task_id=row["task_id"],
        scores={"corruption": row["corruption"]},
    )
    evidence = {"pair_id": pair, "corruption": row["corruption"], "made": branch.trajectory_id}
    pair_candidates.event(seq, step, PAIRED, "its call was damaged for the rejected side", evidence)


def _branch(row: dict[str, Any], name: str) -> Trajectory:
    """A made-up branch of one step."""
    step = Step(
        step=row["step"],
        turn=row["turn"],
        source="agent",
        kind="llm_turn",
        actor=row["actor"],
        text=row["text"],
        reasoning=row["reasoning"],
        model=row["model"],
        synthetic=True,
        made_from_trajectory=row["trajectory_id"],
        made_from_step=row["step"],
        made_by=MADE_BY,
        extra=jsontext.text_of({"corruption": row["corruption"]}),
    )
    if row["name"] is not None:
        call = ToolCall(
            step=row["step"],
            call=0,
            kind="function",
            name=row["name"],
            arguments=row["arguments"],
            arguments_kind="object",
            span_start=row["span_start"],
            span_end=row["span_end"],
        )
        if row["span_start"] is not None:
            call.origin = "parsed_from_text"
            text = row["text"]
            step.prose = (text[: row["span_start"]] + text[row["span_end"] :]).strip()
        step.calls.append(call)
    return Trajectory(
        trajectory_id=name,
        task_id=row["task_id"],
        parent_id=row["trajectory_id"],
        parent_step=row["step"],
        branch_kind="revision",
        steps=[step],
    )
