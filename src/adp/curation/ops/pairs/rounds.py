"""Where the turns of the agent are in each run, and what all of them begin with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from adp.curation.ops.pairs.pair_candidates import PairContext, PairSide
from adp.curation.partitions import Partition
from adp.curation.pool import Pool
from adp_schema import ids


@dataclass(frozen=True)
class Rounds:
    """The turns of one run.

    Attributes:
        steps: the steps that the agent wrote, in order.
        prompt: hash of the texts before the first of them.
    """

    steps: tuple[int, ...]
    prompt: str

    def side(self, name: str, score: float | None, most: int | None = None) -> PairSide:
        """The run from its first turn on.

        Args:
            name: id of the run.
            score: its score.
            most: number of turns after which it ends; None takes all.
        """
        last = self.steps[-1] if most is None else self.steps[: max(most, 1)][-1]
        return PairSide(name, self.steps[0], last + 1, score)

    def context(self, name: str) -> PairContext:
        """What stands before the first turn."""
        return PairContext(name, self.steps[0])


def rounds_of(pool: Pool, wanted: pl.Series, name: str = "rounds") -> dict[int, Rounds]:
    """The turns of some runs by key; runs without a turn of the agent are not there.

    Args:
        pool: the pool.
        wanted: ``seq`` of the runs.
        name: tells several calls of one op apart.
    """
    path = pool.scratch / f"{name}-wanted.parquet"
    pl.DataFrame({"seq": wanted}, schema={"seq": pl.Int64}).sort("seq").write_parquet(path)
    rows = pool.map(_rounds, str(path), name)
    if rows.is_empty():
        return {}
    return {seq: Rounds(tuple(steps), prompt) for seq, steps, prompt in rows.iter_rows()}


def agent_steps() -> pl.Expr:
    """Whether a step is a turn of the agent."""
    by_agent = pl.col("source") == "agent"
    return by_agent & ~pl.col("kind").fill_null("").is_in(["context_edit", "event"])


def _rounds(partition: Partition, path: str) -> pl.DataFrame:
    """``seq``, ``steps`` and ``prompt`` of the wanted runs of a partition."""
    wanted = pl.read_parquet(Path(path), glob=False)
    steps = partition.read("steps", ["step", "source", "kind", "text"])
    steps = steps.join(wanted, on="seq", how="semi").sort("seq", "step")
    steps = steps.with_columns(agent_steps().fill_null(value=False).alias("own"))
    turns = (
        steps.filter("own")
        .group_by("seq", maintain_order=True)
        .agg(pl.col("step").alias("steps"), pl.col("step").first().alias("first"))
    )
    before = steps.join(turns, on="seq", how="inner").filter(pl.col("step") < pl.col("first"))
    content = pl.concat_str("source", pl.lit("\x1f"), pl.col("text").fill_null(""))
    prompts = (
        before.sort("seq", "step").group_by("seq", maintain_order=True).agg(content.alias("said"))
    )
    hashes = [ids.digest("\x1e".join(texts).encode("utf-8")) for texts in prompts["said"].to_list()]
    named = prompts.select("seq").with_columns(pl.Series("prompt", hashes, dtype=pl.String))
    out = turns.join(named, on="seq", how="left", maintain_order="left")
    return out.select("seq", "steps", pl.col("prompt").fill_null(""))
