"""What a rule found: pairs by reference, and for every candidate why it became one or not."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa

from adp.curation.op import OpResult
from adp_schema import ids
from adp_schema.tables import TABLES

PAIRED, NOT_PAIRED = "paired", "not_paired"


class PairSide(NamedTuple):
    """A side of a pair: steps of a trajectory.

    Attributes:
        id: id of the trajectory in the pool.
        first: its first step.
        end: the step after its last one.
        score: its score, when there is one.
    """

    id: str
    first: int
    end: int
    score: float | None = None


class PairContext(NamedTuple):
    """What both sides go on from: the first steps of a trajectory."""

    id: str
    up_to: int


def pair_id(rule: str, context: PairContext, chosen: PairSide, rejected: PairSide) -> str:
    """A stable id: blake2b-128 of the rule and the references."""
    key_parts = [rule, *context, *chosen[:3], *rejected[:3]]
    return ids.digest(json.dumps(key_parts, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def value_of(reward: float | None, success: bool | None) -> float | None:
    """The score of a run: its reward, else 1 for success and 0 for failure, else none."""
    if reward is not None:
        return float(reward) if reward == reward else None
    return None if success is None else float(success)


@dataclass
class PairCandidates:
    """Collects what one rule found.

    Attributes:
        rule: name of the rule.
        chosen_mask: mask policy of chosen sides.
        rejected_mask: mask policy of rejected sides.
    """

    rule: str
    chosen_mask: str | None = None
    rejected_mask: str | None = None
    pairs: list[dict[str, Any]] = field(default_factory=list)
    events: list[tuple[int, int | None, str, str, str]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def pair(
        self,
        level: str,
        context: PairContext,
        chosen: PairSide,
        rejected: PairSide,
        *,
        task_id: str | None = None,
        scores: dict[str, Any] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> str:
        """Add a pair and return its id.

        Args:
            level: ``trajectory``, ``step`` or ``turn``.
            context: what both sides go on from.
            chosen: the better side.
            rejected: the worse side.
            task_id: the task, as the source names it.
            scores: what else is known of both sides; JSON.
            extra: anything else about the pair; JSON.
        """
        name = pair_id(self.rule, context, chosen, rejected)
        margin = None
        if chosen.score is not None and rejected.score is not None:
            margin = chosen.score - rejected.score
        self.pairs.append(
            {
                "pair_id": name,
                "task_id": task_id,
                "context_id": context.id,
                "context_up_to": context.up_to,
                "chosen_id": chosen.id,
                "chosen_from": chosen.first,
                "chosen_to": chosen.end,
                "rejected_id": rejected.id,
                "rejected_from": rejected.first,
                "rejected_to": rejected.end,
                "level": level,
                "margin": margin,
                "chosen_score": chosen.score,
                "rejected_score": rejected.score,
                "scores": _json(scores),
                "rule": self.rule,
                "chosen_mask": self.chosen_mask,
                "rejected_mask": self.rejected_mask,
                "extra": _json(extra),
            }
        )
        return name

    def event(
        self, seq: int, step: int | None, verdict: str, reason: str, evidence: dict[str, Any]
    ) -> None:
        """Say what became of a candidate."""
        self.events.append((seq, step, verdict, reason, _json(evidence) or "{}"))

    def outcome(self, noun: str) -> OpResult:
        """All of it, in an order that depends on nothing but what was found.

        Args:
            noun: what the candidates are, in the plural, such as ``alternates``.
        """
        events = pl.DataFrame(
            sorted(
                self.events, key=lambda row: (row[0], -1 if row[1] is None else row[1], row[2:])
            ),
            schema={
                "seq": pl.Int64,
                "step": pl.Int32,
                "verdict": pl.String,
                "reason": pl.String,
                "evidence": pl.String,
            },
            orient="row",
        )
        reasons = Counter(row[3] for row in self.events if row[2] == NOT_PAIRED)
        verdicts = Counter(row[2] for row in self.events)
        lines = [f"{len(self.pairs):,} pairs by the rule {self.rule}"]
        if not self.pairs:
            lines[0] = f"no pairs by the rule {self.rule}; the ledger says why of each candidate"
        lines += [f"{count:,} {noun} not paired: {why}" for why, count in _ranked(reasons)]
        return OpResult(
            pairs=frame(self.pairs),
            events=events,
            summary={
                "rule": self.rule,
                "pairs": len(self.pairs),
                "paired": verdicts[PAIRED],
                "not_paired": dict(_ranked(reasons)),
                **dict(sorted(self.counts.items())),
            },
            lines=lines,
        )


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows of the table ``pairs``, sorted by id."""
    rows = sorted(rows, key=lambda row: str(row["pair_id"]))
    table = pa.Table.from_pylist(rows, schema=TABLES["pairs"].schema)
    result = pl.from_arrow(table)
    assert isinstance(result, pl.DataFrame)
    return result


def _ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _json(value: dict[str, Any] | None) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True)
