"""All measures of one partition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from adp.curation.ops.measure import cheats, ends, errors, loops, malformed, sizes, usage
from adp.curation.ops.measure.loops import Loops
from adp.curation.ops.measure.rows import PartitionRows
from adp.curation.partitions import Partition


@dataclass(frozen=True)
class MeasurePlan:
    """What to measure, and how.

    Attributes:
        groups: groups of measures.
        tokenizer: path of a tokenizer; None to estimate.
        guess: whether the text of a result of unknown status decides whether it failed.
        loop_by: ``action`` or ``result``.
        loop_rounds: rounds that make a loop.
    """

    groups: frozenset[str]
    tokenizer: str | None = None
    guess: bool = False
    loop_by: str = "action"
    loop_rounds: int = 3


class Measures:
    """The measures of the trajectories of a partition. What several of them need is made once."""

    def __init__(self, partition: Partition, wanted: MeasurePlan) -> None:
        self.rows = PartitionRows(partition, guess=wanted.guess)
        self.wanted = wanted

    @cached_property
    def looped(self) -> Loops:
        """The loops of the calls."""
        return loops.loops(self.rows, self.wanted.loop_by, self.wanted.loop_rounds)

    @cached_property
    def faulty(self) -> pl.DataFrame:
        """The malformed calls."""
        return malformed.find(self.rows)

    @cached_property
    def signs(self) -> pl.DataFrame:
        """The signs of cheating."""
        return cheats.find(self.rows)

    def groups(self) -> Mapping[str, Callable[[], pl.DataFrame]]:
        """Group -> what makes its columns: ``seq`` and a row a trajectory."""
        return {
            "sizes": lambda: sizes.measure(self.rows, self.wanted.tokenizer),
            "errors": lambda: errors.measure_errors(self.rows),
            "faults": lambda: errors.measure_faults(self.rows),
            "loops": lambda: loops.measure_loops(self.rows, self.looped),
            "retries": lambda: loops.measure_retries(self.rows),
            "ends": lambda: ends.measure(self.rows),
            "calls": lambda: malformed.measure(self.rows, self.faulty),
            "usage": lambda: usage.measure(self.rows),
            "cheats": lambda: cheats.measure(self.rows, self.signs),
        }

    def steps(self) -> pl.DataFrame:
        """``seq``, ``step`` and the step columns of the steps of the agent."""
        repeated = self.rows.calls.filter(pl.Series(self.looped.repeated, dtype=pl.Boolean))
        marks = {"is_repeated": repeated, "is_malformed": self.faulty}
        error_steps = errors.error_steps(self.rows)
        for name, marked in marks.items():
            error_steps = flagged(error_steps, marked, name)
        return error_steps


def flagged(steps: pl.DataFrame, rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """The steps with a column that says whether one of the rows belongs to the step."""
    marked = rows.select("seq", "step").unique().with_columns(pl.lit(value=True).alias(name))
    text = steps.join(marked, on=["seq", "step"], how="left", maintain_order="left")
    return text.with_columns(pl.col(name).fill_null(value=False))


def work(partition: Partition, wanted: MeasurePlan) -> pl.DataFrame:
    """Measure a partition: a row a trajectory, with its steps and signs as lists."""
    measures = Measures(partition, wanted)
    seqs = measures.rows.seqs
    for name, make in measures.groups().items():
        if name in wanted.groups:
            seqs = seqs.join(make(), on="seq", how="left")
    if "steps" in wanted.groups:
        seqs = seqs.join(_nested(measures.steps(), "_steps"), on="seq", how="left")
    if "cheats" in wanted.groups:
        seqs = seqs.join(_nested(measures.signs, "_signs"), on="seq", how="left")
    return seqs.sort("seq")


def _nested(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """The rows of each trajectory as one list."""
    columns = [column for column in rows.columns if column != "seq"]
    return rows.group_by("seq", maintain_order=True).agg(pl.struct(columns).alias(name))
