"""Pairs of whole attempts at one task.

``attempts`` compares the attempts at a task by reward where every scored one has a reward, and by
success otherwise. The best is paired with the worst, the second best with the second worst, and
so on, while the gap is large enough: each attempt is in one pair at most. Ties are ordered by the
place in the input. The length is controlled as in ETO (Song et al. 2024):
the rejected side ends after as many turns of the agent as the chosen side has, and five more; both
sides end with a turn of the agent.

``ranked`` is SAGE's `PreferenceDataFormatter`: all pairs of attempts whose scores are more than 0.1
apart, by any column.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import polars as pl

from adp.curation.op import OpResult
from adp.curation.ops.pairs.options import Pairs
from adp.curation.ops.pairs.pair_candidates import NOT_PAIRED, PAIRED, PairCandidates, value_of
from adp.curation.ops.pairs.rounds import Rounds, rounds_of
from adp.curation.pool import Pool
from adp_schema.errors import RecipeError

UNSCORED = "it has no score"
ALONE = "no other scored attempt at its task"
NO_TASK = "its task is not known"
NO_TURN = "it has no turn of the agent"
NARROW = "the gap to the other attempts is too small"
CAPPED = "its task has the most pairs already"
USED = "the attempts far enough from it are in other pairs"


@dataclass(frozen=True)
class Attempt:
    """An attempt with its score."""

    seq: int
    id: str
    task_id: str | None
    score: float
    rounds: Rounds


Two = tuple[Attempt, Attempt]
"""A better and a worse attempt."""


def run(pool: Pool, options: Pairs) -> OpResult:
    """Pair the attempts at each task."""
    pair_candidates = PairCandidates(options.rule)
    groups = _groups(pool, options, pair_candidates)
    for attempts in groups:
        if len(attempts) < 2:
            for attempt in attempts:
                pair_candidates.event(
                    attempt.seq, None, NOT_PAIRED, ALONE, {"score": attempt.score}
                )
            continue
        wide = opposite(attempts, options.gap) if options.rule == "attempts" else None
        if wide is None:
            wide = ranked(attempts, options.gap)
        kept: list[Two] = list(wide if options.cap is None else islice(wide, options.cap))
        for better, worse in kept:
            _add(pair_candidates, options, better, worse)
        _explain(pair_candidates, attempts, kept, options)
    return pair_candidates.outcome("attempts")


def opposite(attempts: list[Attempt], gap: float) -> Iterator[Two]:
    """The best with the worst, the second best with the second worst, while they are apart."""
    order = sorted(attempts, key=lambda attempt: (-attempt.score, attempt.seq))
    worst = sorted(attempts, key=lambda attempt: (attempt.score, attempt.seq))
    used: set[int] = set()
    low = iter(worst)
    for better in order:
        if better.seq in used:
            return
        worse = next((item for item in low if item.seq not in used), None)
        if worse is None or worse.seq == better.seq:
            return
        if better.score <= worse.score or better.score - worse.score < gap:
            return
        used |= {better.seq, worse.seq}
        yield better, worse


def ranked(attempts: list[Attempt], gap: float) -> Iterator[Two]:
    """All pairs that are more than a gap apart, the widest first, then by place in the input."""
    high = sorted(attempts, key=lambda attempt: (-attempt.score, attempt.seq))
    low = sorted(attempts, key=lambda attempt: (attempt.score, attempt.seq))

    def widest(better: Attempt) -> Iterator[tuple[tuple[float, int, int], Two]]:
        for worse in low:
            if better.score - worse.score <= gap:
                return
            yield (worse.score - better.score, better.seq, worse.seq), (better, worse)

    yield from (two for _, two in heapq.merge(*map(widest, high), key=lambda item: item[0]))


def _groups(pool: Pool, options: Pairs, pair_candidates: PairCandidates) -> Iterator[list[Attempt]]:
    """The scored attempts of each task; what is left out is told."""
    columns = ["seq", "trajectory_id", "task", "task_id", "reward", "success"]
    if options.score is not None:
        kind = pool.members.schema[options.score]
        if not (kind.is_numeric() or kind == pl.Boolean):
            raise RecipeError(f"the score of pairs must be numbers, and {options.score} is {kind}")
        columns.append(options.score)
    members = pool.members.select(list(dict.fromkeys(columns)))
    shared = members.filter(pl.col("task").is_not_null() & (pl.len().over("task") > 1))
    turns = rounds_of(pool, shared["seq"])
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in members.sort("seq").iter_rows(named=True):
        if row["task"] is None:
            pair_candidates.event(row["seq"], None, NOT_PAIRED, NO_TASK, {})
        else:
            groups.setdefault(row["task"], []).append(row)
    for task in sorted(groups):
        pair_candidates.counts["tasks"] += 1
        yield _scored(groups[task], turns, options, pair_candidates)


def _scored(
    rows: list[dict[str, Any]],
    turns: dict[int, Rounds],
    options: Pairs,
    pair_candidates: PairCandidates,
) -> list[Attempt]:
    """The attempts that can be compared."""
    alone = len(rows) == 1
    by_reward = all(row["reward"] is not None for row in rows if row["success"] is not None)
    out = []
    for row in rows:
        score = _score(row, options, by_reward=by_reward)
        reason = None
        if score is None:
            reason = UNSCORED
        elif alone:
            reason = ALONE
        elif row["seq"] not in turns:
            reason = NO_TURN
        if reason is not None:
            keys = ("reward", "success", options.score or "reward")
            evidence = {"task": row["task"], **{key: row[key] for key in keys}}
            pair_candidates.event(row["seq"], None, NOT_PAIRED, reason, evidence)
        else:
            assert score is not None
            rounds = turns[row["seq"]]
            out.append(Attempt(row["seq"], row["trajectory_id"], row["task_id"], score, rounds))
    return out


def _score(row: dict[str, Any], options: Pairs, *, by_reward: bool) -> float | None:
    if options.score is not None:
        return value_of(None if row[options.score] is None else float(row[options.score]), None)
    if options.rule == "ranked":
        return value_of(row["reward"], row["success"])
    if by_reward:
        return value_of(row["reward"], None)
    return value_of(None, row["success"])


def _add(pair_candidates: PairCandidates, options: Pairs, better: Attempt, worse: Attempt) -> None:
    most = None
    if options.rule == "attempts" and options.extra_rounds is not None:
        most = len(better.rounds.steps) + options.extra_rounds
    chosen = better.rounds.side(better.id, better.score)
    rejected = worse.rounds.side(worse.id, worse.score, most)
    extra: dict[str, Any] = {"same_prompt": better.rounds.prompt == worse.rounds.prompt}
    if most is not None and len(worse.rounds.steps) > most:
        extra["cut_turns"] = len(worse.rounds.steps) - most
    name = pair_candidates.pair(
        "trajectory",
        better.rounds.context(better.id),
        chosen,
        rejected,
        task_id=better.task_id,
        extra=extra,
    )
    for result, other, word in ((better, worse, "chosen"), (worse, better, "rejected")):
        evidence = {"pair_id": name, "other": other.id, "score": result.score, "than": other.score}
        pair_candidates.event(result.seq, None, PAIRED, f"it is {word}", evidence)


def _explain(
    pair_candidates: PairCandidates, attempts: list[Attempt], kept: list[Two], options: Pairs
) -> None:
    """Say of the attempts that are in no pair why."""
    inside = {item.seq for two in kept for item in two}
    scores = [item.score for item in attempts]
    for attempt in attempts:
        if attempt.seq in inside:
            continue
        widest = max(max(scores) - attempt.score, attempt.score - min(scores))
        small = widest <= options.gap if options.rule == "ranked" else widest < options.gap
        capped = options.cap is not None and len(kept) >= options.cap
        reason = NARROW if small or widest == 0 else CAPPED if capped else USED
        evidence = {"score": attempt.score, "widest_gap": widest, "min_gap": options.gap}
        pair_candidates.event(attempt.seq, None, NOT_PAIRED, reason, evidence)
