"""Who is out, for which reason, with which figures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import polars as pl

from adp.curation.op import OpResult
from adp.curation.pool import Pool


class Verdicts:
    """What the rules of a filter say, one after the other. The first reason stands.

    Args:
        pool: the pool.

    Attributes:
        pool: the pool.
        events: what else the ledger should know: seq, step, verdict, reason, evidence.
        edits: texts of steps that were repaired: seq, step, text.
        summary: figures for the report.
        lines: sentences for a person.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.events: list[tuple[int, int | None, str, str, str]] = []
        self.edits: list[tuple[int, int, str]] = []
        self.summary: dict[str, Any] = {}
        self.lines: list[str] = []
        self._out: dict[int, tuple[str, str]] = {}

    def drop(self, seq: int, reason: str, **figures: Any) -> None:
        """Leave a trajectory out, unless an earlier rule did."""
        if seq not in self._out:
            text = json.dumps(figures, ensure_ascii=False, sort_keys=True, default=str)
            self._out[seq] = (reason, text)

    def event(self, seq: int, step: int | None, verdict: str, reason: str, **figures: Any) -> None:
        """Note something about a trajectory that stays."""
        text = json.dumps(figures, ensure_ascii=False, sort_keys=True)
        self.events.append((seq, step, verdict, reason, text))

    @property
    def out(self) -> list[int]:
        """``seq`` of those that a rule left out."""
        return sorted(self._out)

    def outcome(self) -> OpResult:
        """The outcome of the op."""
        rows = [(seq, *why) for seq, why in sorted(self._out.items())]
        reasons = Counter(reason for _, reason, _ in rows)
        total, out = len(self.pool), len(rows)
        lines = [f"{total - out:,} of {total:,} trajectories stay"]
        return OpResult(
            dropped=_frame(rows, {"seq": int, "reason": str, "evidence": str}),
            events=_frame(
                self.events,
                {"seq": int, "step": None, "verdict": str, "reason": str, "evidence": str},
            )
            if self.events
            else None,
            edits=_frame(self.edits, {"seq": int, "step": None, "text": str})
            if self.edits
            else None,
            summary={
                "members": total,
                "kept": total - out,
                "reasons": dict(sorted(reasons.items())),
                **self.summary,
            },
            lines=lines + self.lines,
        )


def _frame(rows: list[Any], columns: Mapping[str, type[int] | type[str] | None]) -> pl.DataFrame:
    types = {int: pl.Int64, str: pl.String, None: pl.Int32}
    schema = {name: types[kind] for name, kind in columns.items()}
    return pl.DataFrame(rows, schema=schema, orient="row")
