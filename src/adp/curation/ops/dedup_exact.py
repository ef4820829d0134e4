"""Trajectories with the same content: of each group one stays.

What is compared is the option ``of``:

- ``trajectory``: who said what in which order, every call with its arguments (as JSON with sorted
  keys and no white space), every result. Ids, times, outcomes and models do not count. Attempts at
  one task are only duplicates here when they are equal to the letter.
- ``actions``: the calls of the agent, with their arguments, in order.
- ``task_text``: what the user says before the agent's first step.
- ``task``: the pool's column ``task``, so one trajectory a task stays.

A trajectory that has nothing to compare (no calls, no task) is left alone. The hash is
blake2b-128 of the content, so equal means equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import polars as pl
from pydantic import Field, field_validator

from adp.curation.op import Op, OpOptions, OpResult
from adp.curation.partitions import Partition
from adp.curation.pool import Pool
from adp.curation.survivors import DEFAULT_KEEP, KEEP_TEXT, check_keep, in_order, keep_columns
from adp.curation.texts.views import canonical_json, views
from adp_schema.ids import digest

REASON = "exact duplicate"


class DedupExact(OpOptions):
    """Options of `dedup_exact`."""

    of: Literal["trajectory", "actions", "task_text", "task"] = "trajectory"
    """What must be equal; see above."""
    normalise: bool = False
    """Compare in lower case, with every run of white space as one space."""
    keep: tuple[str, ...] = Field(DEFAULT_KEEP, description=KEEP_TEXT)
    drop: bool = True
    """Leave out all but one of each group; false only adds the columns."""

    @field_validator("keep")
    @classmethod
    def _keep(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(check_keep(value))


def run(pool: Pool, options: DedupExact) -> OpResult:
    """Find the groups, and of each the one that stays."""
    if options.of == "task":
        key = pl.col("task").str.to_lowercase() if options.normalise else pl.col("task")
        keys = pool.members.select("seq", key.alias("key"))
    else:
        keys = pool.map(_keys, (options.of, options.normalise), name="keys")
    if not keys.width:
        keys = pl.DataFrame(schema={"seq": pl.Int64, "key": pl.String})
    known = keys.filter(pl.col("key").is_not_null())
    repeated = known.filter(pl.col("key").is_duplicated())
    names = pool.members.select("seq", "trajectory_id")
    ordered = in_order(
        pool.members.join(repeated, on="seq", how="semi"), options.keep, ("seq", "trajectory_id")
    ).join(repeated, on="seq", how="left", maintain_order="left")
    groups = ordered.select(
        "seq",
        exact_cluster=pl.col("trajectory_id").first().over("key"),
        exact_cluster_size=pl.len().over("key").cast(pl.Int64),
    )
    columns = names.join(groups, on="seq", how="left", maintain_order="left").with_columns(
        pl.col("exact_cluster").fill_null(pl.col("trajectory_id")),
        pl.col("exact_cluster_size").fill_null(1),
    )
    gone = columns.filter(pl.col("trajectory_id") != pl.col("exact_cluster"))
    sizes = ordered.group_by("key").len()["len"]
    summary = {
        "compared": known.height,
        "not_compared": len(pool) - known.height,
        "groups": len(sizes),
        "duplicates": gone.height,
        "largest_group": _most(sizes) or min(len(pool), 1),
    }
    return OpResult(
        columns=columns.drop("trajectory_id"),
        dropped=_dropped(gone, options.of) if options.drop else None,
        summary=summary,
        lines=[
            f"{gone.height:,} of {len(pool):,} trajectories are equal to one that stays "
            f"({options.of}); the largest group has {summary['largest_group']:,}"
        ],
    )


def _most(sizes: pl.Series) -> int:
    largest = sizes.max()
    return largest if isinstance(largest, int) else 0


def _dropped(gone: pl.DataFrame, of: str) -> pl.DataFrame:
    evidence = [
        json.dumps({"of": of, "survivor": survivor}, ensure_ascii=False, sort_keys=True)
        for survivor in gone["exact_cluster"].to_list()
    ]
    return pl.DataFrame(
        {
            "seq": gone["seq"],
            "reason": pl.Series([REASON] * gone.height, dtype=pl.String),
            "evidence": pl.Series(evidence, dtype=pl.String),
        }
    )


# ---- hashes of one partition --------------------------------------------------------------------


def _keys(partition: Partition, options: tuple[str, bool]) -> pl.DataFrame:
    """``seq`` and ``key``, the hash of what is compared, of those that have it."""
    of, normalise = options
    frame = _plain if normalise else _framed
    if of == "trajectory":
        rows = _content(partition, frame)
    elif of == "actions":
        rows = _calls(partition).filter(pl.col("requestor").fill_null("agent") == "agent")
        rows = frame(rows, 0, ["name", "arguments"], "place").sort("seq", "step", "place")
    else:
        rows = frame(views(partition, ["task"]), 0, ["text"], None)
    joined = rows.group_by("seq", maintain_order=True).agg(pl.col("content").str.join(""))
    keys = [digest(text.encode("utf-8")) for text in joined["content"].to_list()]
    return joined.select("seq", pl.lit(pl.Series(keys, dtype=pl.String)).alias("key"))


def _content(partition: Partition, frame: Frame) -> pl.DataFrame:
    """All rows of a trajectory in one order, each as one text."""
    steps = partition.read("steps", ["step", "source", "text", "content", "reasoning"])
    seen = ["text", "content", "html", "axtree", "url", "structured"]
    results = partition.read("observations", ["step", "order", "call_step", "call", *seen])
    parts = [
        frame(steps, 0, ["source", "reasoning", "text", "content"], None),
        frame(_calls(partition), 1, ["requestor", "name", "arguments"], "place"),
        frame(results, 2, ["call_step", "call", *seen], "order"),
    ]
    return pl.concat(parts).sort("seq", "step", "part", "place", maintain_order=True)


def _calls(partition: Partition) -> pl.DataFrame:
    """Calls with their arguments in canonical form."""
    columns = ["step", "call", "requestor", "name", "arguments", "arguments_raw"]
    calls = partition.read("tool_calls", columns)
    canonical = [canonical_json(text) for text in calls["arguments"].to_list()]
    given = pl.lit(pl.Series(canonical, dtype=pl.String))
    arguments = pl.coalesce(given, "arguments_raw").alias("arguments")
    return calls.with_columns(arguments, pl.col("call").alias("place"))


def _framed(rows: pl.DataFrame, part: int, names: list[str], place: str | None) -> pl.DataFrame:
    """``seq``, ``step``, ``part``, ``place``, and the columns as one text that can be read back.

    Each value has its length before it, so that no two lists of values give the same text.
    """
    values = [pl.col(name).cast(pl.String).fill_null("") for name in names]
    pieces: list[Any] = [pl.lit(f"{part};")]
    for value in values:
        pieces += [value.str.len_bytes().cast(pl.String), pl.lit(":"), value]
    return rows.select(
        "seq",
        pl.col("step").fill_null(-1),
        pl.lit(part).alias("part"),
        (pl.col(place) if place else pl.lit(0)).fill_null(0).cast(pl.Int32).alias("place"),
        pl.concat_str(pieces).alias("content"),
    )


def _plain(rows: pl.DataFrame, part: int, names: list[str], place: str | None) -> pl.DataFrame:
    """`_framed` of the columns in lower case, with every run of white space as one space."""
    low = pl.col(names).cast(pl.String).str.to_lowercase()
    plain = rows.with_columns(low.str.replace_all(r"\s+", " ").str.strip_chars(" "))
    return _framed(plain, part, names, place)


Frame = Callable[["pl.DataFrame", int, list[str], str | None], "pl.DataFrame"]


def _needs(options: DedupExact) -> Iterable[str]:
    return keep_columns(options.keep)


def _columns(options: DedupExact) -> Mapping[str, str]:
    return {
        "exact_cluster": "trajectory_id of the one that stays of the group of equal ones.",
        "exact_cluster_size": "How many are equal, itself included.",
    }


OP = Op(
    name="dedup_exact",
    title="Of trajectories with the same content, actions or task, keep one.",
    options=DedupExact,
    run=run,
    cost="Reads all texts once; memory for a hash a trajectory.",
    source="Content hashes as in Dolma's and datatrove's exact deduplication.",
    needs=_needs,
    columns=_columns,
)
