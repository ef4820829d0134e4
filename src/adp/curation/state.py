"""What is known of the trajectories between two stages of a recipe."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from adp.core.progress import Progress, Silent
from adp.curation import mapped_frames
from adp.curation.inputs import Input
from adp.curation.op import OpResult
from adp.curation.op_columns import RESERVED, taken, twice
from adp.curation.pool import Pool
from adp.curation.recipe import Stage
from adp_schema.errors import RecipeError
from adp_schema.plain_arrays import empty_table
from adp_schema.tables import TABLES


@dataclass
class State:
    """The trajectories of all inputs, and what the stages so far said about them.

    Attributes:
        inputs: the stores, those of made-up trajectories too.
        rows: `pool.COLUMNS` and the columns of the stages, one row a main line, sorted by ``seq``.
        inside: which rows are in.
        branches: see `Pool.branches`.
        steps: step columns of the stages; None when there are none.
        weights: ``seq``, ``step``, ``loss_weight``.
        copies: ``seq``, ``copies``, ``stage``; a row for each stage that a trajectory is in.
        edits: ``seq``, ``step``, ``text``, ``made_by``.
        pairs: preference pairs; None when no stage made any.
        buffer: ``seq`` of a replay buffer; None when no stage keeps one.
        buffer_facts: what its next round must know.
        ledger: what was noted: `LEDGER` without the names of the trajectories.
        report: one entry a stage.
        folder: where frames of very many rows lie (`adp.curation.mapped_frames`).
    """

    inputs: list[Input]
    rows: pl.DataFrame
    inside: pl.Series
    branches: pl.DataFrame
    steps: pl.DataFrame | None = None
    weights: pl.DataFrame | None = None
    copies: pl.DataFrame | None = None
    edits: pl.DataFrame | None = None
    pairs: pl.DataFrame | None = None
    buffer: pl.DataFrame | None = None
    buffer_facts: dict[str, Any] = field(default_factory=dict)
    ledger: list[pl.DataFrame] = field(default_factory=list)
    report: list[dict[str, Any]] = field(default_factory=list)
    folder: Path = field(default_factory=Path)

    def pool(
        self,
        scratch: Path,
        *,
        folder: Path | None = None,
        seed: int = 0,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> Pool:
        """What the next op sees; the arguments are attributes of `Pool`."""
        return Pool(
            inputs=self.inputs,
            members=mapped_frames.filtered(self.rows, self.inside, scratch / "members.arrow"),
            scratch=scratch,
            seed=seed,
            workers=workers,
            progress=progress or Silent(),
            folder=folder or Path(),
            steps=self.steps,
            weights=self.weights,
            edits=self.edits,
            waiting=self._waiting(),
            branches=self.branches,
        )

    def _waiting(self) -> pl.DataFrame:
        """The trajectories of reserve inputs that are not in. What a stage dropped stays out."""
        reserve = [source.name for source in self.inputs if source.reserve]
        if not reserve:
            return self.rows.clear()
        outside = ~self.inside & ~self.rows["seq"].is_in(self.dropped().implode())
        return self.rows.filter(outside & self.rows["input"].is_in(reserve))

    def named(self, *columns: str) -> pl.DataFrame:
        """Some columns of all trajectories, the branches after the main lines."""
        return pl.concat([self.rows.select(columns), self.branches.select(columns)])

    def dropped(self) -> pl.Series:
        """``seq`` of the trajectories that a stage dropped."""
        drops = [frame.filter(pl.col("verdict") == "dropped")["seq"] for frame in self.ledger]
        return pl.concat([pl.Series("seq", [], pl.Int64), *drops]).unique()

    # ---- taking up what an op says ---------------------------------------------------------

    def take(self, stage: Stage, number: int, outcome: OpResult, seen: pl.DataFrame) -> None:
        """Take up the outcome of a stage.

        Args:
            stage: the stage.
            number: its number, from 0.
            outcome: what the op said.
            seen: ``seq`` of the trajectories that it saw.

        Raises:
            RecipeError: the outcome contradicts itself; a fault of the op.
        """
        before = int(self.inside.sum())
        if outcome.columns is not None:
            self._add_columns(stage, outcome.columns)
        if outcome.step_columns is not None:
            self._add_step_columns(stage, outcome.step_columns)
        if outcome.splits is not None:
            path = self.folder / f"split-{len(self.report):02d}.arrow"
            split = mapped_frames.mapped(_updated(self.rows, outcome.splits, "split"), path)
            self.rows = self.rows.with_columns(split)
        self._weigh(outcome)
        if outcome.copies is not None:
            self.copies = _over(self.copies, outcome.copies.select("seq", "copies", "stage"))
        if outcome.edits is not None:
            self._edit(stage, outcome.edits)
        if outcome.pairs is not None:
            self.pairs = _stacked(self.pairs, outcome.pairs)
        if outcome.buffer is not None:
            self.buffer = outcome.buffer.select("seq").unique().sort("seq")
            self.buffer_facts = {"seen": outcome.summary.get("seen"), "size": self.buffer.height}
        dropped, admitted = self._move(stage, number, outcome, seen)
        self._note(number, stage, outcome)
        after = int(self.inside.sum())
        assert before - dropped + admitted == after, f"stage {number} loses count"
        self.report.append(
            {
                "stage": number,
                "op": stage.op,
                "name": stage.name,
                "in": before,
                "seen": seen.height,
                "dropped": dropped,
                "admitted": admitted,
                "out": after,
                "reasons": _counts(outcome.dropped),
                "pairs": outcome.pairs.height if outcome.pairs is not None else 0,
                "summary": outcome.summary,
                "lines": outcome.lines,
            }
        )

    def _add_columns(self, stage: Stage, columns: pl.DataFrame) -> None:
        new = {name: stage.column(name) for name in columns.columns if name != "seq"}
        there = [*self.rows.columns, *RESERVED]
        if (name := twice([*new.values()], there)) is not None:
            raise taken(stage, name)
        path = self.folder / f"columns-{len(self.report):02d}.arrow"
        self.rows = mapped_frames.with_columns_by_seq(self.rows, columns.rename(new), path)

    def _add_step_columns(self, stage: Stage, columns: pl.DataFrame) -> None:
        keys = ("seq", "step")
        new = {name: stage.column(name) for name in columns.columns if name not in keys}
        columns = columns.rename(new).with_columns(pl.col("step").cast(pl.Int32))
        if self.steps is None:
            self.steps = columns.sort(keys)
            return
        if (name := twice([*new.values()], self.steps.columns)) is not None:
            raise taken(stage, name, "step column")
        joined = self.steps.join(columns, on=keys, how="full", coalesce=True)
        self.steps = joined.sort(keys)

    def _weigh(self, outcome: OpResult) -> None:
        if outcome.weights is None:
            return
        frame = outcome.weights.select(
            "seq", pl.col("step").cast(pl.Int32), pl.col("loss_weight").cast(pl.Float64)
        )
        both = _joined(self.weights, frame)
        self.weights = (
            both.group_by("seq", "step").agg(pl.col("loss_weight").min()).sort("seq", "step")
        )

    def _edit(self, stage: Stage, edits: pl.DataFrame) -> None:
        frame = edits.select(
            "seq", pl.col("step").cast(pl.Int32), "text", pl.lit(stage.op).alias("made_by")
        )
        both = _joined(self.edits, frame)
        self.edits = both.unique(["seq", "step"], keep="last", maintain_order=True).sort(
            "seq", "step"
        )

    def _move(
        self, stage: Stage, number: int, outcome: OpResult, seen: pl.DataFrame
    ) -> tuple[int, int]:
        """Take out what the op drops and in what it admits; return how many each."""
        dropped = admitted = 0
        if outcome.dropped is not None and outcome.dropped.height:
            gone = outcome.dropped["seq"]
            if gone.n_unique() != len(gone) or not gone.is_in(seen["seq"].implode()).all():
                raise RecipeError(
                    f"stage {stage.name} drops a trajectory twice, or one that it did not see"
                )
            dropped = len(gone)
            self.inside &= ~self.rows["seq"].is_in(gone.implode())
            note = outcome.dropped.select("seq", "reason", "evidence")
            self._write(number, stage, note.with_columns(pl.lit("dropped").alias("verdict")))
        if outcome.admitted is not None and outcome.admitted.height:
            new = self.rows["seq"].is_in(outcome.admitted["seq"].implode())
            fresh = new & ~self.inside & ~self.rows["seq"].is_in(self.dropped().implode())
            admitted = int(fresh.sum())
            self.inside |= fresh
            note = self.rows.filter(fresh).select("seq")
            words = [("verdict", "admitted"), ("reason", f"drawn by {stage.name}")]
            self._write(
                number, stage, note.with_columns(pl.lit(text).alias(name) for name, text in words)
            )
        return dropped, admitted

    def _note(self, number: int, stage: Stage, outcome: OpResult) -> None:
        if outcome.events is not None and outcome.events.height:
            self._write(number, stage, outcome.events)
        if outcome.copies is not None:
            often = outcome.copies.filter(pl.col("copies") > 1)
            evidence = pl.concat_str(
                pl.lit('{"copies": '), pl.col("copies").cast(pl.String), pl.lit("}")
            )
            note = often.select(
                "seq",
                pl.lit("repeated").alias("verdict"),
                pl.lit("taken more than once").alias("reason"),
                evidence.alias("evidence"),
            )
            self._write(number, stage, note)

    def _write(self, number: int, stage: Stage, note: pl.DataFrame) -> None:
        """Add rows to the ledger."""
        self.ledger.append(_ledger_rows(note, number, stage.name))


def _ledger_rows(note: pl.DataFrame, number: int, name: str) -> pl.DataFrame:
    missing = [
        pl.lit(None, dtype=kind).alias(column)
        for column, kind in (("step", pl.Int32), ("reason", pl.String), ("evidence", pl.String))
        if column not in note.columns
    ]
    return note.with_columns(missing).select(
        pl.col("seq").cast(pl.Int64),
        pl.lit(number, dtype=pl.Int32).alias("stage"),
        pl.lit(name).alias("op"),
        pl.col("verdict").cast(pl.String),
        pl.col("step").cast(pl.Int32),
        pl.col("reason").cast(pl.String),
        pl.col("evidence").cast(pl.String),
    )


def _updated(rows: pl.DataFrame, given: pl.DataFrame, column: str) -> pl.DataFrame:
    """A column with new values where such are given."""
    new = given.select("seq", pl.col(column).alias("$new"))
    text = rows.select("seq", column)
    text = text.join(new, on="seq", how="left", maintain_order="left", validate="1:1")
    return text.select(pl.coalesce("$new", column).alias(column))


def _over(old: pl.DataFrame | None, new: pl.DataFrame) -> pl.DataFrame:
    """Rows by ``seq``; new ones stand for old ones."""
    new = new.with_columns(pl.col("copies", "stage").cast(pl.Int32))
    kept = None if old is None else old.join(new, on="seq", how="anti")
    return _joined(kept, new).sort("seq", "stage")


def _stacked(old: pl.DataFrame | None, new: pl.DataFrame) -> pl.DataFrame:
    empty = pl.from_arrow(empty_table(TABLES["pairs"].schema))
    assert isinstance(empty, pl.DataFrame)
    frame = pl.concat([empty, new.select(new.columns)], how="diagonal_relaxed")
    frame = frame.select(pl.col(name).cast(kind) for name, kind in empty.schema.items())
    return _joined(old, frame).unique("pair_id", keep="first", maintain_order=True)


def _joined(old: pl.DataFrame | None, new: pl.DataFrame) -> pl.DataFrame:
    return new if old is None else pl.concat([old, new])


def _counts(dropped: pl.DataFrame | None) -> dict[str, int]:
    if dropped is None:
        return {}
    counted = dropped.group_by("reason").len().sort("reason")
    return dict(counted.iter_rows())
