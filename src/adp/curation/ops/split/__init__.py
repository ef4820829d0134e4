"""Give every trajectory a split, such as train or test, by a stable hash of its task.

The hash (blake2b of the salt and the task's key) is a number from 0 to 1, and the shares cut that
range. So all attempts at a task come into one split; the split of a task depends on nothing but its
key, the salt and the shares; and more data never moves a task. The shares that come out differ
from those that were asked for as much as chance wants; both are reported.

Two tasks with nearly the same text may come into different splits: a leak. Compared are the
shingles (5 words) of what the users say before the agent's first step; shingles in more than 1 % of
the tasks are ignored, so a shared prompt makes no leak. All pairs with a Jaccard similarity of 0.7
or more are found; none is estimated. With ``leakage: move``, tasks that hang together by such pairs
go into the split of the one with the smallest hash; then more data can move a task, when it brings
a near-duplicate.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl
from pydantic import Field, field_validator

from adp.curation.op import Op, OpOptions, OpResult
from adp.curation.ops.split.leaks import components, crossing, near_units, shares_of, together
from adp.curation.ops.split.near import NearDuplicates
from adp.curation.pool import COLUMNS, Pool

LEAK = "near-duplicate task in another split"


class Split(OpOptions):
    """Options of `split`."""

    shares: dict[str, float] = Field({"train": 0.9, "test": 0.1}, min_length=1)
    """Split -> its share of the tasks; the shares are divided by their sum."""
    by: str = "task"
    """Column of what stays together: task, dataset, or any other of the pool; a trajectory
    without a value there goes by itself."""
    salt: str = "split"
    """Text that goes into the hash with the key. The seed of the recipe does not, so a task has
    the same split in every recipe; another salt gives other splits."""
    keep_existing: bool = False
    """Keep the splits that trajectories have already. Those without one go with the others of
    their task, when these agree."""
    without_calls: str | None = Field(None, min_length=1)
    """Split of tasks with a trajectory that has no tool call, such as samples without a reference
    run; the shares count for the others. null: they are split like the others."""
    leakage: Literal["off", "report", "move", "drop"] = "report"
    """What to do about near-duplicate tasks in different splits: nothing, report them, move them
    into one split, or drop those in the split with the greater share."""
    similarity: float = Field(0.7, gt=0, le=1)
    """Jaccard similarity from which on two tasks are near."""
    shingle: int = Field(5, ge=1, le=50)
    """Words of a shingle."""
    frequent: float = Field(0.01, gt=0, le=1)
    """A shingle in more than this share of the tasks is ignored."""
    frequent_at_least: int = Field(10, ge=1)
    """A shingle in so many tasks, or fewer, is never ignored."""

    @field_validator("shares")
    @classmethod
    def _positive(cls, value: dict[str, float]) -> dict[str, float]:
        for name, share in value.items():
            if not name or not 0 < share < float("inf"):
                raise ValueError(f"the share of the split '{name}' must be a number above 0")
        return value


def spot(salt: str, key: str) -> float:
    """Where a key lies between 0 and 1."""
    data = f"{salt}\x00{key}".encode("utf-8", "surrogatepass")
    number = int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")
    return number / 2**64


def split_of(place: float, shares: Mapping[str, float]) -> str:
    """The split of a place between 0 and 1."""
    total = sum(shares.values())
    reached = 0.0
    for name, share in shares.items():
        reached += share / total
        if place < reached:
            return name
    return name


@dataclass
class _Groups:
    """What stays together.

    Attributes:
        rows: ``seq``, ``trajectory_id``, ``task``, ``own`` (split that it keeps, or null) and
            ``group``, sorted by ``seq``.
        spots: where each group lies.
        splits: split of each group.
        fixed: whether an existing split gave it.
        conflicts: groups whose trajectories keep different splits.
    """

    rows: pl.DataFrame
    spots: list[float]
    splits: list[str | None]
    fixed: list[bool]
    conflicts: int

    def assigned(self) -> pl.DataFrame:
        """The rows with their ``split``."""
        given = pl.Series("given", self.splits, dtype=pl.String)
        split = pl.coalesce("own", given.gather(self.rows["group"]).alias("given"))
        return self.rows.with_columns(split.alias("split"))


def run(pool: Pool, options: Split) -> OpResult:
    """Split, and look for leaks."""
    groups = _groups(pool, options)
    rows = groups.assigned()
    units, leaks, leaks_left, compared = rows.clear(), None, 0, 0
    if options.leakage != "off":
        units = rows.unique(["task", "group", "split"], keep="first", maintain_order=True)
        units = units.with_row_index("unit").with_columns(pl.col("unit").cast(pl.Int64))
        near = _near(pool, units, options)
        compared = int(near.compared.sum())
        leaks = _leaks(near, units, options)
        if options.leakage == "move":
            component = components(near, units["group"].to_numpy(), len(groups.splits))
            groups.splits = together(component, groups.spots, groups.splits, groups.fixed)
            moved = groups.assigned()
            now = units.drop("split").join(moved.select("seq", "split"), on="seq", how="left")
            leaks_left = _leaks(near, now.sort("unit"), options)["unit"].n_unique()
            rows = moved.with_columns(before=rows["split"])
    return _SplitOutcome(options, groups, rows, units, leaks, (compared, leaks_left)).outcome()


def _groups(pool: Pool, options: Split) -> _Groups:
    by = pl.col(options.by).cast(pl.String)
    key = by
    if pool.members[options.by].null_count():
        key = pl.when(by.is_null()).then("trajectory:" + pl.col("trajectory_id")).otherwise(by)
    existing = pl.col("split") if options.keep_existing else pl.lit(None, pl.String)
    if options.without_calls is not None:
        callers = pool.query("SELECT DISTINCT seq FROM tool_calls JOIN members USING (seq)")["seq"]
        has_call = pl.col("seq").is_in(callers.implode())
        existing = pl.when(has_call).then(existing).otherwise(pl.lit(options.without_calls))
    task = pl.col("task")
    if pool.members["task"].null_count():
        task = pl.coalesce("task", "trajectory:" + pl.col("trajectory_id"))
    rows = pool.members.select(
        "seq", "trajectory_id", task.alias("task"), existing.alias("own"), key.alias("key")
    )
    names = rows.select("key").unique(maintain_order=True).with_row_index("group")
    names = names.with_columns(pl.col("group").cast(pl.Int64))
    rows = rows.join(names, on="key", how="left", maintain_order="left").drop("key")
    kept: dict[int, set[str]] = {}
    for group, split in rows.filter(pl.col("own").is_not_null()).select("group", "own").iter_rows():
        kept.setdefault(group, set()).add(split)
    spots = [spot(options.salt, name) for name in names["key"]]
    agreed = {group: next(iter(splits)) for group, splits in kept.items() if len(splits) == 1}
    splits = [
        agreed.get(group) or split_of(place, options.shares) for group, place in enumerate(spots)
    ]
    fixed = [group in agreed for group in range(len(spots))]
    return _Groups(rows, spots, list(splits), fixed, len(kept) - len(agreed))


def _near(pool: Pool, units: pl.DataFrame, options: Split) -> NearDuplicates:
    limit = max(options.frequent * units["task"].n_unique(), options.frequent_at_least)
    return near_units(pool, units, options.shingle, options.similarity, limit)


def _leaks(near: NearDuplicates, units: pl.DataFrame, options: Split) -> pl.DataFrame:
    """The leaks, with ``goes``: whether the unit lies in the split with the greater share."""
    rank = {name: (-share, place) for place, (name, share) in enumerate(options.shares.items())}
    result = crossing(near, units["split"].to_list())
    goes = [
        (rank.get(split, (0.0, 0)), split) < (rank.get(other, (0.0, 0)), other)
        for split, other in result.select("split", "other_split").iter_rows()
    ]
    return result.with_columns(pl.Series("goes", goes, dtype=pl.Boolean))


@dataclass
class _SplitOutcome:
    """Makes the outcome from what was found."""

    options: Split
    groups: _Groups
    rows: pl.DataFrame
    units: pl.DataFrame
    leaks: pl.DataFrame | None
    counts: tuple[int, int]

    def outcome(self) -> OpResult:
        places = pl.Series("split_hash", self.groups.spots, dtype=pl.Float64)
        columns = self.rows.with_columns(places.gather(self.rows["group"]))
        nearest = self._nearest() if self.leaks is not None else None
        outcome = OpResult(splits=self.rows.select("seq", "split"))
        gone = self.rows.head(0)
        if nearest is None:
            outcome.columns = columns.select("seq", "split_hash")
        else:
            columns = columns.join(nearest, on="seq", how="left", maintain_order="left")
            outcome.columns = columns.select("seq", "split_hash", "leak_of", "leak_jaccard")
            if self.options.leakage == "drop":
                gone = nearest.filter("goes")
                outcome.dropped = gone.select("seq", "reason", "evidence")
            else:
                outcome.events = self._events(nearest)
        left = self.rows.join(gone, on="seq", how="anti") if gone.height else self.rows
        self._report(outcome, left, gone.height, nearest)
        return outcome

    def _nearest(self) -> pl.DataFrame:
        """``seq`` of the trajectories of leaking tasks, with the nearest task elsewhere."""
        assert self.leaks is not None
        known = self.units.select(pl.col("unit").alias("other"), leak_of="trajectory_id")
        goes = self.leaks.group_by("unit").agg(pl.col("goes").any())
        first = self.leaks.drop("goes").unique("unit", keep="first", maintain_order=True)
        first = first.join(goes, on="unit", how="left").join(known, on="other", how="left")
        before = "before" if "before" in self.rows.columns else "split"
        keys = self.rows.select("seq", "task", "group", pl.col(before).alias("split"))
        unit = self.units.select("unit", "task", "group", "split")
        keys = keys.join(unit, on=["task", "group", "split"], how="inner", maintain_order="left")
        text = keys.join(first.drop("split"), on="unit", how="inner", maintain_order="left")
        evidence = [
            json.dumps(
                {"near": name, "jaccard": round(value, 4), "split": split, "other_split": other},
                ensure_ascii=False,
                sort_keys=True,
            )
            for name, value, split, other in text.select(
                "leak_of", "jaccard", "split", "other_split"
            ).iter_rows()
        ]
        return text.select(
            "seq",
            "leak_of",
            pl.col("jaccard").alias("leak_jaccard"),
            "goes",
            pl.lit(LEAK).alias("reason"),
            pl.Series("evidence", evidence, dtype=pl.String),
        )

    def _events(self, frame: pl.DataFrame) -> pl.DataFrame:
        rows, verdict = frame, "flagged"
        if self.options.leakage == "move":
            changed = self.rows.filter(pl.col("before") != pl.col("split"))
            rows, verdict = frame.join(changed.select("seq"), on="seq", how="semi"), "moved"
        return rows.sort("seq").select(
            "seq",
            pl.lit(None, pl.Int32).alias("step"),
            pl.lit(verdict).alias("verdict"),
            "reason",
            "evidence",
        )

    def _report(
        self, outcome: OpResult, left: pl.DataFrame, gone: int, frame: pl.DataFrame | None
    ) -> None:
        options = self.options
        total = sum(options.shares.values())
        requested = {name: round(share / total, 4) for name, share in options.shares.items()}
        trajectories = dict.fromkeys(options.shares, 0) | _counted(left)
        counted_tasks = left.group_by("split").agg(pl.col("task").n_unique()).sort("split")
        tasks = dict.fromkeys(options.shares, 0) | dict(counted_tasks.iter_rows())
        summary: dict[str, Any] = {
            "requested": requested,
            "tasks": tasks,
            "trajectories": trajectories,
            "realised": shares_of(tasks),
            "realised_trajectories": shares_of(trajectories),
            "groups": len(self.groups.splits),
            "conflicts": self.groups.conflicts,
        }
        realised = ", ".join(
            f"{name} {trajectories[name]:,} ({summary['realised'][name]:.1%} of the tasks, "
            f"{requested.get(name, 0):.1%} asked)"
            for name in trajectories
        )
        outcome.summary, outcome.lines = summary, [f"trajectories: {realised}"]
        if self.groups.conflicts:
            outcome.lines.append(
                f"alarm: {self.groups.conflicts:,} groups have several splits already; kept"
            )
        if frame is not None:
            self._leak_lines(outcome, gone, frame)

    def _leak_lines(self, outcome: OpResult, gone: int, frame: pl.DataFrame) -> None:
        assert self.leaks is not None
        compared, still = self.counts
        leaking = self.leaks["unit"].n_unique()
        figures = {
            "compared": compared,
            "tasks": leaking,
            "trajectories": frame.height,
            "dropped": gone,
            "moved": outcome.events.height if self.options.leakage == "move" else 0,  # type: ignore[union-attr]
            "left": still if self.options.leakage == "move" else 0 if gone else leaking,
        }
        outcome.summary["leaks"] = figures
        outcome.lines.append(
            f"{leaking:,} of {compared:,} compared tasks have a near-duplicate in another split"
            + {
                "report": "",
                "move": f"; {figures['moved']:,} trajectories moved, {still:,} tasks left",
                "drop": f"; {gone:,} trajectories dropped",
            }[self.options.leakage]
        )
        if self.units.height > compared:
            outcome.lines.append(
                f"{self.units.height - compared:,} tasks have no text of their own to compare"
            )


def _counted(rows: pl.DataFrame) -> dict[str, int]:
    counts = rows.group_by("split").len().sort("split")
    return dict(counts.iter_rows())


def _needs(options: Split) -> list[str]:
    return [] if options.by in COLUMNS else [options.by]


def _columns(options: Split) -> Mapping[str, str]:
    columns = {"split_hash": "Where the task lies between 0 and 1; the shares cut that range."}
    if options.leakage != "off":
        columns["leak_of"] = (
            "First trajectory of the nearest task that lay in another split; null for no leak."
        )
        columns["leak_jaccard"] = "Jaccard similarity of the shingles of the two tasks."
    return columns


OP = Op(
    name="split",
    title="Split by a stable hash of the task, and report near-duplicate tasks across splits.",
    options=Split,
    run=run,
    cost="Reads the users' texts once; memory for about a third of the shingles of the tasks.",
    source="Prefix filtering: Bayardo et al. 2007; Xiao et al. 2008.",
    needs=_needs,
    columns=_columns,
)
