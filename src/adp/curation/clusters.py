"""What ops that find clusters of alike trajectories share: options, and the alarm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import polars as pl
from pydantic import Field, field_validator

from adp.curation.op import OpOptions
from adp.curation.survivors import DEFAULT_KEEP, KEEP_TEXT, check_keep
from adp_schema.errors import RecipeError

FEW = 20
"""Clusters and losses up to this size never raise an alarm."""


class ClusterOptions(OpOptions):
    """Options of an op that keeps one trajectory of each cluster."""

    attempts: Literal["separate", "together"] = "separate"
    """separate: two trajectories with the same task_id of the same data set are never
    duplicates; together: they may be."""
    keep: tuple[str, ...] = Field(DEFAULT_KEEP, description=KEEP_TEXT)
    drop: bool = True
    """Leave out all but the anchors; false only adds the columns."""
    alarm: Literal["stop", "warn"] = "stop"
    """What happens when too much would go: stop the recipe, or say so."""
    alarm_cluster: float = Field(0.05, gt=0, le=1)
    """Share of all trajectories that one cluster may hold."""
    alarm_loss: float = Field(0.5, gt=0, le=1)
    """Share of a data set that may go; fewer than 20 always may."""

    @field_validator("keep")
    @classmethod
    def _keep(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(check_keep(value))


def alarms(clusters: pl.DataFrame, options: ClusterOptions) -> list[str]:
    """What is suspicious, one phrase each.

    Args:
        clusters: one row a trajectory: ``seq``, ``dataset``, ``cluster`` (its name), ``size`` (of
            the cluster) and ``gone`` (whether it goes).
        options: when to raise an alarm.
    """
    results = []
    largest = clusters.sort("size", "seq", descending=[True, False]).head(1)
    for size, name in largest.select("size", "cluster").iter_rows():
        if size > max(options.alarm_cluster * clusters.height, FEW):
            results.append(
                f"the cluster of {name} has {size:,} of {clusters.height:,} trajectories"
            )
    losses = (
        clusters.group_by(pl.col("dataset").fill_null(""))
        .agg(pl.col("gone").sum().alias("lost"), pl.len().alias("had"))
        .sort("dataset")
    )
    for name, lost, had in losses.iter_rows():
        if lost > options.alarm_loss * had and lost >= FEW:
            results.append(f"the data set {name} would lose {lost:,} of {had:,} trajectories")
    return results


def stop_on(value: Sequence[str], options: ClusterOptions, suspicion: str) -> None:
    """Stop when there is an alarm, unless the options say to go on.

    Args:
        value: the alarms.
        options: whether to stop.
        suspicion: what it looks like, and what to do.

    Raises:
        RecipeError: there is an alarm.
    """
    if value and options.alarm == "stop":
        raise RecipeError(f"{value[0]}, {suspicion}")
