"""Take steps out of the training loss, or lower their weight, and keep the rest of the trajectory.

Policies; several combine by the lowest weight:

- ``errors``: steps whose call failed or is malformed. Partial masking as in STeP: the model sees
  its errors and learns to go on from them, not to make them.
- ``history``: all steps but the last one of the agent, as M3's ``mask_history``.
- ``actor``: steps that none of ``actors`` made, such as all but the expert's.
- ``suboptimal``: steps with a label that holds one of `SUBOPTIMAL`, as M3's
  ``mask_suboptimal_traces`` does on the chosen side.
- ``copied_context``: steps that repeat earlier context.
- ``repeated``: calls of loops after the first round; see the op `measure`.
- ``sql``: steps for which a condition is true.

Only steps of the agent have a weight; the others are never trained.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

import polars as pl
from pydantic import Field, model_validator

from adp.curation.op import Op, OpOptions, OpResult
from adp.curation.ops.measure import errors
from adp.curation.ops.measure.partition import MeasurePlan, Measures, flagged
from adp.curation.ops.measure.rows import PartitionRows
from adp.curation.partitions import Partition
from adp.curation.pool import Pool
from adp.stores.condition import check_condition, own_lines
from adp.stores.step_labels import SUBOPTIMAL
from adp_schema.errors import QueryError

Policy = Literal["errors", "history", "actor", "suboptimal", "copied_context", "repeated", "sql"]

_REASONS: Mapping[str, str] = {
    "errors": "the call failed or is malformed",
    "history": "not the last step of the agent",
    "actor": "made by another actor",
    "suboptimal": "labelled as erroneous",
    "copied_context": "repeats earlier context",
    "repeated": "repeats a loop",
    "sql": "the condition is true",
}


class Mask(OpOptions):
    """Options of `mask`."""

    policy: tuple[Policy, ...] = Field(min_length=1)
    """Which steps: errors, history, actor, suboptimal, copied_context, repeated, sql."""
    weight: float = Field(0.0, ge=0)
    """Weight of the steps in the loss; 0 takes them out."""
    weights: dict[Policy, float] = Field(default_factory=dict)
    """Policy -> weight, where it has one of its own."""
    actors: tuple[str, ...] = ("expert",)
    """Policy actor: whose steps keep their weight."""
    sql: str | None = None
    """Policy sql: condition over the columns of the views steps, pool and step_columns. Where
    two have a column, name it with its view, such as steps.reward."""
    errors: Literal["recorded", "likely"] = "recorded"
    """Policy errors: as in the op measure."""
    loop_by: Literal["action", "result"] = "action"
    """Policy repeated: as in the op measure."""
    loop_rounds: int = Field(3, ge=2)
    """Policy repeated: as in the op measure."""
    categories: tuple[str, ...] = SUBOPTIMAL
    """Policy suboptimal: parts of the labels that count."""

    @model_validator(mode="after")
    def _fit(self) -> Mask:
        if ("sql" in self.policy) != (self.sql is not None):
            raise ValueError("the policy sql and the option sql belong together; give both")
        for name, weight in self.weights.items():
            if name not in self.policy:
                raise ValueError(f"weights names the policy {name}, which policy does not list")
            if weight < 0:
                raise ValueError(f"the weight of {name} is below 0")
        return self

    def weight_of(self, policy: Policy) -> float:
        """Weight that a policy gives."""
        return self.weights.get(policy, self.weight)


_SHOWN = 20
"""Masked steps that the ledger names, of each trajectory and policy."""


def run(pool: Pool, options: Mask) -> OpResult:
    """Mask."""
    steps = pool.map(work, options, "mask")
    if not steps.height:
        return OpResult(lines=["no step of the agent"])
    if options.sql is not None:
        steps = _by_sql(pool, options.sql, steps)
    weight = pl.min_horizontal(
        pl.when(pl.col(name)).then(options.weight_of(name)) for name in options.policy
    )
    steps = steps.with_columns(weight.alias("loss_weight"))
    masked = steps.filter(pl.col("loss_weight").is_not_null())
    figures, share = _share(pool, steps)
    outcome = OpResult(
        columns=share,
        weights=masked.select("seq", "step", "loss_weight"),
        events=_events(masked, options),
        summary={"masked_steps": masked.height, **figures},
    )
    counts: dict[str, int] = {name: int(steps[name].sum() or 0) for name in options.policy}
    outcome.summary["policies"] = counts
    outcome.lines = _lines(outcome.summary, counts)
    if "errors" in options.policy and not steps["known"].any():
        outcome.lines.append(
            "no result says whether it is an error, so only malformed calls are masked; with "
            "errors: likely the texts are looked at"
        )
    return outcome


def work(partition: Partition, options: Mask) -> pl.DataFrame:
    """The steps of the agent: ``seq``, ``step``, ``bytes``, ``before``, and a column a policy.

    ``bytes`` is what the agent wrote in the step, ``before`` its weight until now, and ``known``
    whether the status of a result is known.
    """
    guess = options.errors == "likely"
    wanted = MeasurePlan(frozenset(), None, guess, options.loop_by, options.loop_rounds)
    measures = Measures(partition, wanted)
    rows = measures.rows
    read = partition.read("steps", ("step", "actor", "labels"))
    steps = (
        rows.steps.filter(pl.col("agent"))
        .join(read, on=["seq", "step"], how="left", maintain_order="left")
        .join(_written(rows), on=["seq", "step"], how="left", maintain_order="left")
        .join(errors.error_steps(rows), on=["seq", "step"], how="left", maintain_order="left")
    )
    copied = pl.col("is_copied_context").fill_null(value=False)
    frame = steps.select(
        "seq",
        "step",
        pl.sum_horizontal(
            pl.col("text", "reasoning").str.len_bytes().fill_null(0).cast(pl.Int64),
            pl.col("written").fill_null(0),
        ).alias("bytes"),
        pl.when(copied).then(0.0).otherwise(pl.col("loss_weight").fill_null(1.0)).alias("before"),
        pl.col("is_error_step").is_not_null().alias("known"),
        pl.col("is_error_step").fill_null(value=False).alias("errors"),
        (pl.col("step") < pl.col("step").max().over("seq")).alias("history"),
        (~pl.col("actor").is_in(list(options.actors)).fill_null(value=False)).alias("actor"),
        pl.col("labels")
        .list.eval(pl.element().str.contains_any(list(options.categories)))
        .list.any()
        .fill_null(value=False)
        .alias("suboptimal"),
        copied.alias("copied_context"),
    )  # fmt: skip
    if "errors" in options.policy:
        frame = flagged(frame, measures.faulty, "bad").with_columns(
            pl.col("errors") | pl.col("bad")
        )
    if "repeated" in options.policy:
        again = pl.Series(measures.looped.repeated, dtype=pl.Boolean)
        frame = flagged(frame, rows.calls.filter(again), "repeated")
    names = [name for name in options.policy if name != "sql"]
    return frame.select("seq", "step", "bytes", "before", "known", *names)


def _written(rows: PartitionRows) -> pl.DataFrame:
    """``written``: bytes of the calls of each step that its text does not hold."""
    size = pl.coalesce("arguments", "arguments_raw").str.len_bytes().fill_null(0).cast(pl.Int64)
    calls = rows.calls.filter(pl.col("span_start").is_null())
    return calls.group_by("seq", "step").agg(size.sum().alias("written"))


def _by_sql(pool: Pool, condition: str, steps: pl.DataFrame) -> pl.DataFrame:
    """The steps with the column ``sql``."""
    check_condition(condition)
    start = (
        "SELECT seq, step FROM steps JOIN pool USING (seq) "
        "LEFT JOIN step_columns USING (seq, step) WHERE steps.source = 'agent' AND"
    )
    try:
        rows = pool.query(f"{start} (\n{condition}\n) ORDER BY ALL", of_user=True)
    except QueryError as error:
        raise QueryError(own_lines(str(error))) from None
    return flagged(steps, rows, "sql")


def _share(pool: Pool, steps: pl.DataFrame) -> tuple[dict[str, float | int], pl.DataFrame]:
    """How much of what the agent wrote stays trained: in all, and of each trajectory."""
    if pool.weights is not None:
        earlier = pool.weights.select("seq", "step", pl.col("loss_weight").alias("earlier"))
        steps = steps.join(earlier, on=["seq", "step"], how="left", maintain_order="left")
        steps = steps.with_columns(pl.min_horizontal("before", "earlier").alias("before"))
    now = pl.min_horizontal("before", "loss_weight")
    frame = steps.group_by("seq").agg(
        pl.col("loss_weight").count().cast(pl.Int64).alias("masked_steps"),
        pl.len().cast(pl.Int64).alias("steps"),
        pl.col("bytes").sum(),
        (pl.col("bytes") * pl.col("before")).sum().alias("was"),
        (pl.col("bytes") * now).sum().alias("is"),
        (now > 0).any().alias("left"),
    )
    frame = frame.sort("seq")
    share = pl.when(pl.col("bytes") > 0).then(pl.col("is") / pl.col("bytes"))
    sums = frame.select(pl.col("bytes", "was", "is").sum()).row(0)
    figures = {
        "agent_steps": int(frame["steps"].sum()),
        "text_bytes": int(sums[0]),
        "trained_bytes_before": round(float(sums[1]), 3),
        "trained_bytes": round(float(sums[2]), 3),
        "nothing_left": int((~frame["left"]).sum()),
    }
    columns = frame.select("seq", "masked_steps", share.alias("trained_share"))
    return figures, columns


def _events(masked: pl.DataFrame, options: Mask) -> pl.DataFrame:
    """An event for each trajectory and policy."""
    results = []
    for name in options.policy:
        counted = (
            masked.filter(pl.col(name))
            .sort("seq", "step")
            .group_by("seq")
            .agg(pl.len().alias("steps"), pl.col("step").head(_SHOWN).alias("which"))
        )
        for seq, steps, which in counted.sort("seq").iter_rows():
            figures = {
                "policy": name,
                "steps": steps,
                "which": which,
                "weight": options.weight_of(name),
            }
            results.append(
                (seq, None, "masked", _REASONS[name], json.dumps(figures, sort_keys=True))
            )
    schema = {
        "seq": pl.Int64, "step": pl.Int32, "verdict": pl.String, "reason": pl.String,
        "evidence": pl.String,
    }  # fmt: skip
    return pl.DataFrame(results, schema=schema, orient="row")


def _lines(summary: Mapping[str, float], counts: Mapping[str, int]) -> list[str]:
    total = summary["text_bytes"]
    parts = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    lines = [
        f"{summary['masked_steps']:,} of {summary['agent_steps']:,} steps are masked ({parts})"
    ]
    if total:
        before, after = (
            summary[name] / total for name in ("trained_bytes_before", "trained_bytes")
        )
        lines.append(f"{after:.1%} of what the agent wrote stays trained, {before:.1%} before")
    if summary["nothing_left"]:
        lines.append(f"of {summary['nothing_left']:,} trajectories nothing stays trained")
    return lines


def _columns(options: Mask) -> Mapping[str, str]:
    return {
        "masked_steps": "Steps of the agent that this op masks.",
        "trained_share": "Share of the bytes that the agent wrote which stay trained, by weight; "
        "null when it wrote nothing.",
    }


OP = Op(
    name="mask",
    title="Take steps out of the training loss: errors, history, other actors, loops, SQL.",
    options=Mask,
    run=run,
    cost="One pass over the steps and calls; errors reads the results too.",
    source="STeP (partial masking of error steps); M3's mask_history and mask_suboptimal_traces.",
    columns=_columns,
)
