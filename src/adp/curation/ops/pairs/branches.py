"""Pairs of steps at which two attempts at one task part.

The attempts at a task are laid over each other: they share a state as long as what was done and
what came back are the same, by hash of their content. Where the next turns of the agent differ,
each is worth the mean value of the attempts that go on from it, as in MALT (Motwani et al. 2024)
and Agent Q (Putta et al. 2024): a turn is preferred to another one of the same state
when it is worth more by ``min_gap``. The value of an attempt is its reward, else 1 or 0 for its
success.

The context of a pair is the chosen attempt before that step. Of the attempts that take a turn, the
best stands for the chosen and the worst for the rejected side; ties go by place in the input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl

from adp.curation.op import OpResult
from adp.curation.ops.pairs.options import Pairs
from adp.curation.ops.pairs.pair_candidates import (
    NOT_PAIRED,
    PAIRED,
    PairCandidates,
    PairContext,
    PairSide,
    value_of,
)
from adp.curation.ops.pairs.rounds import agent_steps
from adp.curation.partitions import Partition
from adp.curation.pool import Pool

NO_TASK = "its task is not known"
ALONE = "no other attempt at its task"
UNSCORED = "it has no score"
NO_FORK = "no turn of the agent parts it from another scored attempt in the same state"
NARROW = "the gap of the values is too small"
CAPPED = "its task has the most pairs already"


@dataclass(frozen=True)
class Walk:
    """An attempt as a path of hashes.

    Attributes:
        seq: its key.
        id: its id in the pool.
        value: its value; None when it has none.
        acts: for each step the hash of what was done.
        seen: for each step the hash of what came back.
        next_hash: for each step whether it is a turn of the agent.
    """

    seq: int
    id: str
    value: float | None
    acts: Sequence[int]
    seen: Sequence[int]
    next_hash: Sequence[bool]


@dataclass(frozen=True)
class SharedTurn:
    """A turn that some attempts take in one state, with its value."""

    value: float
    paths: tuple[Walk, ...]


@dataclass(frozen=True)
class TurnPair:
    """Two turns of one state, the better one first.

    Attributes:
        step: index of the step.
        better: the turn that is worth more.
        worse: the other one.
    """

    step: int
    better: SharedTurn
    worse: SharedTurn

    @property
    def gap(self) -> float:
        """How much more the better one is worth."""
        return self.better.value - self.worse.value


def forks(paths: list[Walk]) -> Iterator[TurnPair]:
    """Every two different turns of the agent in a state that attempts share.

    Args:
        paths: attempts at one task.
    """
    states = [(0, paths)]
    while states:
        step, here = states.pop()
        turns: dict[int, list[Walk]] = {}
        for path in here:
            if step < len(path.acts):
                turns.setdefault(path.acts[step], []).append(path)
        valued = [
            turn
            for group in turns.values()
            if group[0].next_hash[step] and (turn := _valued(group)) is not None
        ]
        for result, other in combinations(sorted(valued, key=_place), 2):
            better, worse = (result, other) if result.value >= other.value else (other, result)
            yield TurnPair(step, better, worse)
        for group in turns.values():
            after: dict[int, list[Walk]] = {}
            for path in group:
                after.setdefault(path.seen[step], []).append(path)
            states += [(step + 1, same) for same in after.values() if len(same) > 1]


def _valued(group: list[Walk]) -> SharedTurn | None:
    values = [path.value for path in group if path.value is not None]
    return SharedTurn(fmean(values), tuple(group)) if values else None


def _place(turn: SharedTurn) -> int:
    return min(path.seq for path in turn.paths)


def run(pool: Pool, options: Pairs) -> OpResult:
    """Pair the turns at which the attempts at a task part."""
    pair_candidates = PairCandidates(options.rule)
    columns = ("seq", "trajectory_id", "task", "task_id", "reward", "success")
    members = pool.members.select(columns).sort("seq")
    shared = members.filter(pl.col("task").is_not_null() & (pl.len().over("task") > 1))
    hashes = _hashes(pool, shared["seq"], options.compare)
    place = {seq: number for number, seq in enumerate(hashes["seq"])} if hashes.height else {}
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in members.iter_rows(named=True):
        if row["task"] is None:
            pair_candidates.event(row["seq"], None, NOT_PAIRED, NO_TASK, {})
        else:
            groups.setdefault(row["task"], []).append(row)
    for task in sorted(groups):
        pair_candidates.counts["tasks"] += 1
        rows = groups[task]
        if len(rows) == 1:
            pair_candidates.event(rows[0]["seq"], None, NOT_PAIRED, ALONE, {"task": task})
            continue
        paths = [
            Walk(
                row["seq"],
                row["trajectory_id"],
                value_of(row["reward"], row["success"]),
                *_lists(hashes, place.get(row["seq"])),
            )
            for row in rows
        ]
        _task(pair_candidates, options, paths, rows[0]["task_id"])
    return pair_candidates.outcome("attempts")


def _task(
    pair_candidates: PairCandidates, options: Pairs, paths: list[Walk], task_id: str | None
) -> None:
    """Pair the attempts at one task, and say of each what became of it."""
    every = list(forks(paths))
    pair_candidates.counts["forks"] += len(every)
    wide = [fork for fork in every if fork.gap > 0 and fork.gap >= options.gap]
    wide.sort(key=lambda fork: (-fork.gap, fork.step, _place(fork.better), _place(fork.worse)))
    inside: set[int] = set()
    for fork in wide[: options.cap]:
        inside |= _add(pair_candidates, fork, task_id)
    closest: dict[int, TurnPair] = {}
    for fork in every:
        for path in (*fork.better.paths, *fork.worse.paths):
            if path.seq not in closest or fork.gap > closest[path.seq].gap:
                closest[path.seq] = fork
    for path in paths:
        if path.seq in inside:
            continue
        nearest = closest.get(path.seq)
        evidence: dict[str, Any] = {"value": path.value}
        step = None
        if path.value is None:
            reason = UNSCORED
        elif nearest is None:
            reason = NO_FORK
        else:
            step = nearest.step
            reason = NARROW if nearest not in wide else CAPPED
            evidence |= {"widest_gap": nearest.gap, "min_gap": options.gap}
        pair_candidates.event(path.seq, step, NOT_PAIRED, reason, evidence)


def _add(pair_candidates: PairCandidates, fork: TurnPair, task_id: str | None) -> set[int]:
    """Add a pair; return the attempts that stand for its sides."""
    step = fork.step
    chosen = min(_scored(fork.better), key=lambda item: (-item[0], item[1].seq))[1]
    rejected = min(_scored(fork.worse), key=lambda item: (item[0], item[1].seq))[1]
    name = pair_candidates.pair(
        "step",
        PairContext(chosen.id, step),
        PairSide(chosen.id, step, step + 1, fork.better.value),
        PairSide(rejected.id, step, step + 1, fork.worse.value),
        task_id=task_id,
        scores={
            "chosen_attempts": len(fork.better.paths),
            "rejected_attempts": len(fork.worse.paths),
        },
    )
    for path, word, turn in ((chosen, "chosen", fork.better), (rejected, "rejected", fork.worse)):
        evidence = {"pair_id": name, "value": turn.value, "gap": fork.gap}
        pair_candidates.event(path.seq, step, PAIRED, f"its turn is {word}", evidence)
    return {chosen.seq, rejected.seq}


def _scored(turn: SharedTurn) -> list[tuple[float, Walk]]:
    return [(path.value, path) for path in turn.paths if path.value is not None]


# ---- hashes --------------------------------------------------------------------------------

_Hashes = tuple[Sequence[int], Sequence[int], Sequence[bool]]


def _lists(hashes: pl.DataFrame, place: int | None) -> _Hashes:
    """The hashes of one attempt; it has none when it has no steps."""
    if place is None:
        return (), (), ()
    acts, seen, next_hash = hashes.row(place)[1:]
    return acts, seen, next_hash


def _hashes(pool: Pool, wanted: pl.Series, compare: str) -> pl.DataFrame:
    """The hashes of the steps of some attempts, a row each."""
    path = pool.scratch / "branches-wanted.parquet"
    pl.DataFrame({"seq": wanted}, schema={"seq": pl.Int64}).sort("seq").write_parquet(path)
    return pool.map(_hash_steps, (str(path), compare), "branches")


def _hash_steps(partition: Partition, options: tuple[str, str]) -> pl.DataFrame:
    """``seq`` and lists of hashes of its steps."""
    path, compare = options
    wanted = pl.read_parquet(Path(path), glob=False)
    steps = partition.read("steps", ["step", "source", "kind", "text", "reasoning"])
    steps = steps.join(wanted, on="seq", how="semi")
    names = ["step", "call", "name", "arguments", "arguments_raw"]
    calls = partition.read("tool_calls", names).join(wanted, on="seq", how="semi")
    results = partition.read("observations", ["step", "order", "text", "content"])
    results = results.join(wanted, on="seq", how="semi")
    done = _joined(calls, "call", ("name", "arguments", "arguments_raw"), "done")
    seen = _joined(results, "order", ("text", "content"), "seen")
    steps = steps.with_columns(agent_steps().fill_null(value=False).alias("own"))
    for other in (done, seen):
        steps = steps.join(other, on=["seq", "step"], how="left")
    words = _words("text", "reasoning")
    if compare == "actions":
        words = pl.when(pl.col("done").is_null()).then(_words("text"))
    steps = steps.with_columns(
        pl.concat_str(_words("source", "done"), words.fill_null("")).alias("done"),
        pl.col("seen").fill_null(""),
    ).sort("seq", "step")
    hashed = steps.select(
        "seq",
        pl.Series("acts", [_hash(text) for text in steps["done"].to_list()], dtype=pl.UInt64),
        pl.Series("seen", [_hash(text) for text in steps["seen"].to_list()], dtype=pl.UInt64),
        "own",
    )
    return hashed.group_by("seq", maintain_order=True).agg("acts", "seen", "own")


def _words(*columns: str) -> pl.Expr:
    """Texts as one, with the place of each null."""
    ended = [pl.col(name) + "\x1f" for name in columns]
    return pl.concat_str([text.fill_null("\x1e") for text in ended])


def _joined(rows: pl.DataFrame, order: str, columns: tuple[str, ...], name: str) -> pl.DataFrame:
    """The rows of a step as one text."""
    return (
        rows.sort("seq", "step", order)
        .select("seq", "step", _words(*columns).alias(name))
        .group_by("seq", "step", maintain_order=True)
        .agg(pl.col(name).str.join("\x1d"))
    )


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8"), digest_size=8).digest(), "little")
