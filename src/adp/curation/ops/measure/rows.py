"""The rows of a partition, as the measures read them: steps, calls of the agent, and results.

In many data sets a result stands in a step of the user or of the environment, behind the step that
called. Such a step counts as the result of the step's last call, when the step has no other
result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import msgspec
import polars as pl

from adp.curation.ops.measure import faults
from adp.curation.partitions import Partition

_SPOKEN_KINDS = ("message", "llm_turn")
"""Kinds of steps that are words or acts, not events of the log."""

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass
class PartitionRows:
    """Rows of the trajectories of a partition that are still in; each table is read once.

    Attributes:
        partition: where to read.
        guess: whether a result without a recorded status is judged by its text.
    """

    partition: Partition
    guess: bool = False

    @cached_property
    def seqs(self) -> pl.DataFrame:
        """``seq`` of the trajectories, sorted."""
        return self.partition.seqs()

    @cached_property
    def trajectories(self) -> pl.DataFrame:
        """The columns of trajectories that measures read."""
        columns = ("task_id", "source_id", "tools", "truncated", "stop_reason", "final_answer")
        return self.partition.read("trajectories", (*columns, "error_type", "error_message"))

    @cached_property
    def steps(self) -> pl.DataFrame:
        """Steps that are words or acts, sorted; ``agent`` says whose."""
        columns = (
            *("step", "turn", "source", "kind", "text", "reasoning", "content", "stop_reason"),
            *("loss_weight", "is_copied_context"),
        )
        rows = self.partition.read("steps", columns)
        spoken = pl.col("kind").is_null() | pl.col("kind").is_in(_SPOKEN_KINDS)
        agent = (pl.col("source") == "agent").fill_null(value=False)
        return rows.filter(spoken).with_columns(agent=agent).sort("seq", "step")

    @cached_property
    def agent_steps(self) -> pl.DataFrame:
        """``seq`` and ``step`` of the steps of the agent, sorted."""
        return self.steps.filter(pl.col("agent")).select("seq", "step")

    @cached_property
    def calls(self) -> pl.DataFrame:
        """The calls of the agent, sorted by ``seq``, ``step``, ``call``."""
        columns = (
            *("step", "call", "kind", "name", "arguments", "arguments_raw", "arguments_kind"),
            *("span_start", "requestor"),
        )
        rows = self.partition.read("tool_calls", columns)
        of_agent = (pl.col("requestor") != "user").fill_null(value=True)
        return rows.filter(of_agent).drop("requestor").sort("seq", "step", "call")

    @cached_property
    def observations(self) -> pl.DataFrame:
        """Observations as recorded, sorted; ``text`` is what there is of text, tree and page."""
        columns = (
            *("step", "order", "call_step", "call", "source", "text", "axtree", "html"),
            *("is_error", "error_type", "exit_code", "truncated"),
        )
        rows = self.partition.read("observations", columns)
        text = pl.when(pl.col("text") != "").then("text")
        failed = [
            pl.col("is_error").fill_null(value=False),
            (pl.col("exit_code") != 0).fill_null(value=False),
            pl.col("error_type").is_not_null(),
        ]
        known = pl.col("is_error").is_not_null() | pl.col("exit_code").is_not_null()
        return rows.select(
            *("seq", "step", "order", "call_step", "call", "source"),
            pl.coalesce(text, "axtree", "html").alias("text"),
            pl.when(pl.any_horizontal(failed)).then(statement=True)
            .when(known).then(statement=False).alias("recorded"),
            "error_type",
            "truncated",
        ).sort("seq", "step", "order")  # fmt: skip

    @cached_property
    def results(self) -> pl.DataFrame:
        """What came back to the agent: observations, and steps that stand for them.

        ``call_step`` is null for what answers no call. ``recorded`` is the recorded status,
        ``looks`` how the text looks where there is none, ``failed`` the one that counts.
        """
        frame = self.observations.filter(pl.col("step") >= 0)
        rows = pl.concat([frame, self.spoken.drop("place")], how="diagonal")
        looks = faults.looks_failed(pl.col("text"), rows.height)
        unknown = pl.col("recorded").is_null()
        rows = rows.with_columns(pl.when(unknown).then(looks).alias("looks"))
        failed = pl.coalesce("recorded", "looks") if self.guess else pl.col("recorded")
        return rows.with_columns(failed.alias("failed")).sort("seq", "step", "order")

    @cached_property
    def spoken(self) -> pl.DataFrame:
        """Steps of the user or the environment that stand for a result.

        ``step`` is the one that called, as in observations; ``place`` the one that it stands in.
        """
        following = self.steps.with_columns(
            before=pl.col("step").shift().over("seq"),
            called=pl.col("agent").shift().over("seq"),
        ).filter(pl.col("called") & ~pl.col("agent") & (pl.col("source") != "system"))
        last = (
            self.calls.filter((pl.col("kind") != "message").fill_null(value=True))
            .group_by("seq", "step")
            .agg(pl.col("call").max())
            .rename({"step": "before"})
        )
        text = following.select("seq", "before", "source", "text", place="step").join(
            last, on=["seq", "before"], how="inner"
        )
        answered = pl.concat(
            [
                self.observations.select("seq", before="step"),
                self.observations.select("seq", before="call_step"),
            ]
        )
        return text.join(answered, on=["seq", "before"], how="anti").select(
            *("seq", pl.col("before").alias("step"), pl.lit(0, pl.Int32).alias("order")),
            *(pl.col("before").alias("call_step"), "call", "source", "text", "place"),
        )

    @cached_property
    def outcomes(self) -> pl.DataFrame:
        """``seq``, ``step``, ``call``, ``failed`` of the calls with a result of known status."""
        linked = self.results.filter(pl.col("call_step").is_not_null())
        return (
            linked.filter(pl.col("failed").is_not_null())
            .group_by("seq", step="call_step", call="call")
            .agg(pl.col("failed").any())
        )

    @cached_property
    def actions(self) -> list[bytes | str]:
        """What each call does, to tell whether two are the same: its arguments in one form."""
        columns = self.calls.select("arguments", "arguments_raw")
        return [_canonical(*row) for row in columns.iter_rows()]


def _canonical(arguments: str | None, raw: str | None) -> bytes | str:
    """Arguments with sorted keys and no white space between tokens; else the text, trimmed."""
    if arguments is None:
        return (raw or "").strip()
    try:
        return _encode(_decode(arguments))
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return arguments.strip()
