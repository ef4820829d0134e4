"""Replay: some of what earlier rounds had comes in again, and the buffer takes up what is new.

The buffer is a store. A recipe names it as an input with ``reserve: true`` and ``optional: true``,
as it is not there in the first round; what the buffer holds afterwards is written as the output
``buffer``, which the next round names as its input. So no round changes the buffer of another.

Replayed are ``min(max(1, int(n * ratio)), available)`` of the buffer for n new trajectories, drawn
at random; trajectories that are among the new ones do not count as available.

The buffer keeps at most ``size``. reservoir: Vitter's algorithm R, so after any number of rounds
each trajectory that was ever offered is in it with the same chance; how many were offered stands in
the lineage of the buffer. A trajectory that the buffer has already is not offered again; it is told
by its id, a rollout by its times and outcome too, as the next round may use the same ids. coreset:
when buffer and new ones together are too many, those with the highest scores are kept, or
(``select: hybrid``) 60 % by score and the rest by diversity of words. Scores of earlier rounds
are read from the record of the curation beside the buffer, else they count as 0. Texts, words and
distances are those of the op coreset with ``compat: sage``.

``compat: sage`` is SAGE's OnlineContinualLearner: as coreset, but the replayed ones are drawn from
the buffer as it is afterwards, by Python's ``random.Random(17).sample``; and without new ones all
of the buffer comes in.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl
from pydantic import Field, model_validator

from adp.core.reservoir import reservoir
from adp.core.stable_random import draws
from adp.curation.inputs import Input
from adp.curation.op import Op, OpOptions, OpResult
from adp.curation.ops.replay.coreset import highest, hybrid, texts_of
from adp.curation.pool import COLUMNS, Pool
from adp.stores.replay_buffer import offered_before
from adp.stores.tasks.rows import ROLLOUT
from adp_schema.errors import RecipeError
from adp_schema.gate_files import record_views

SAGE_SEED = 17


class Replay(OpOptions):
    """Options of `replay`."""

    buffer: str = "buffer"
    """Name of the input that is the buffer; it may be missing in the first round."""
    size: int = Field(2048, ge=1)
    """Most trajectories that the buffer holds."""
    ratio: float = Field(0.25, ge=0, allow_inf_nan=False)
    """Replayed trajectories for each new one; 0 replays none. (SAGE's code has 0.3, its
    documentation 0.25.)"""
    policy: Literal["reservoir", "coreset"] = "reservoir"
    """Which trajectories the buffer keeps."""
    score: str | None = None
    """For coreset: column that says what is worth keeping, such as a loss. With compat: sage it
    may be missing; then SAGE's stand-in for a loss is taken from the text."""
    select: Literal["hybrid", "top"] = "hybrid"
    """For coreset. hybrid: 60 % of the buffer by score, the rest by diversity of words. top: all
    by score."""
    compat: Literal["sage"] | None = None
    """sage: draw as SAGE's OnlineContinualLearner; with policy: coreset."""

    @model_validator(mode="after")
    def _possible(self) -> Replay:
        if self.policy == "coreset" and self.score is None and self.compat is None:
            raise ValueError("policy: coreset needs score: a column such as a loss")
        coreset_keys = {"score", "select", "compat"} & self.given()
        if self.policy == "reservoir" and coreset_keys:
            raise ValueError(f"{min(coreset_keys)} belongs to policy: coreset")
        return self


@dataclass
class _Round:
    """What a round begins with.

    Attributes:
        new: the members.
        held: the trajectories of the buffer.
        twice: whether each of those is among the new ones.
        known: whether each new one is in the buffer.
        seen: how many were offered to the buffer so far.
    """

    new: pl.DataFrame
    held: pl.DataFrame
    twice: pl.Series
    known: pl.Series
    seen: int


def run(pool: Pool, options: Replay) -> OpResult:
    """Draw from the buffer, and make the next one."""
    source = _source(pool, options.buffer)
    begun = _begin(pool, options, source)
    scores = _scores(begun, options, source)
    if options.policy == "reservoir":
        offered = begun.new.filter(~begun.known)
        items = [list(rows.select("seq", "trajectory_id").iter_rows())
                 for rows in (begun.held, offered)]  # fmt: skip
        kept = reservoir(items[0], items[1], begun.seen, options.size, pool.seed)
        seen = begun.seen + offered.height
    else:
        kept = _coreset(pool, options, begun, scores)
        seen = begun.seen + begun.new.height
    replayed = _drawn(pool, options, begun, kept)
    buffer = pl.DataFrame({"seq": kept}, schema={"seq": pl.Int64})
    admitted = pl.DataFrame({"seq": sorted(replayed)}, schema={"seq": pl.Int64})
    facts = {
        "new": begun.new.height,
        "buffer_before": begun.held.height,
        "replayed": admitted.height,
        "buffer": buffer.height,
        "buffer_new": buffer.join(begun.new, on="seq", how="semi").height,
        "seen": seen,
    }
    return OpResult(
        columns=_columns_frame(begun, admitted, scores),
        admitted=admitted,
        buffer=buffer.sort("seq"),
        summary=facts,
        lines=_lines(options, facts, first=source is None),
    )


def _source(pool: Pool, name: str) -> Input | None:
    """The input that is the buffer; None when there is none yet."""
    source = next((item for item in pool.inputs if item.name == name), None)
    if source is not None and not source.reserve:
        raise RecipeError(
            f"the input {name} would be in as a whole, not replayed; give it reserve: true"
        )
    return source


def _begin(pool: Pool, options: Replay, source: Input | None) -> _Round:
    """What the round begins with."""
    held = pool.waiting.filter(pl.col("input") == options.buffer)
    ours, theirs = _identities(pool, pool.members), _identities(pool, held)
    return _Round(
        new=pool.members,
        held=held,
        twice=theirs.is_in(ours.implode()),
        known=ours.is_in(theirs.implode()),
        seen=_seen(source, held.height),
    )


def _identities(pool: Pool, rows: pl.DataFrame) -> pl.Series:
    """What makes trajectories the same: the ids that their stores give them.

    The id of a rollout is made of names of run and task, and the next round of a loop may give them
    again. So its times and its outcome count too.
    """
    old = {new: name for item in pool.inputs for name, new in item.renamed.items()}
    names = rows["trajectory_id"]
    frame = rows.select("seq", (names.replace(old) if old else names).alias("name"))
    more = ["started_at", "ended_at", "stop_reason", "success", "reward", "final_answer"]
    columns = [pl.col(name) for name in more]
    frames = [
        source.store.scan("trajectories")
        .filter(pl.col("source_format") == ROLLOUT)
        .select((pl.col("seq") + source.shift).alias("seq"), pl.struct(columns).alias("made"))
        .collect()
        for source in pool.inputs
    ]
    made = pl.concat(frames).with_columns(pl.col("made").struct.json_encode())
    frame = frame.join(made, on="seq", how="left", maintain_order="left")
    return frame.select(pl.concat_str("name", pl.col("made").fill_null("")))["name"]


def _seen(source: Input | None, held: int) -> int:
    """How many trajectories were offered to a buffer; at least those it has."""
    return held if source is None else offered_before(source.store, held)


def _coreset(
    pool: Pool, options: Replay, begun: _Round, scores: pl.DataFrame | None
) -> list[int]:  # fmt: skip
    """The buffer of a policy by scores, in the order in which it is chosen."""
    rows = pl.concat([begun.held.select("seq", "size"), begun.new.select("seq", "size")])
    if not begun.new.height or rows.height <= options.size:
        return rows["seq"].to_list()
    texts = None
    if scores is None or options.select == "hybrid":
        texts = texts_of(pool, rows, tokens=options.select == "hybrid")
    if scores is None:
        assert texts is not None
        values = texts["loss"].to_list()
    else:
        joined = rows.join(scores, on="seq", how="left", maintain_order="left")
        values = joined["replay_score"].fill_null(0.0).to_list()
    if options.select == "top":
        places = highest(values, options.size)
    else:
        assert texts is not None
        places = hybrid(texts, values, options.size)
    return rows["seq"].gather(places).to_list()


def _scores(begun: _Round, options: Replay, source: Input | None) -> pl.DataFrame | None:
    """``seq`` and ``replay_score`` of the new ones and of the buffer; null where nobody knows."""
    if options.score is None:
        return None
    score = pl.col(options.score)
    try:
        new = begun.new.select("seq", score.cast(pl.Float64).alias("replay_score"))
    except pl.exceptions.PolarsError:
        raise RecipeError(f"replay needs numbers in {options.score}, and it has others") from None
    held = begun.held.select("seq", "trajectory_id")
    frame = begun.held.select("seq", score.cast(pl.Float64).alias("told"))
    held = held.join(frame, on="seq", how="left", maintain_order="left")
    if source is not None:
        names = {new: name for name, new in source.renamed.items()}
        held = held.with_columns(pl.col("trajectory_id").replace(names))
        noted = _noted(source, options.score)
        held = held.join(noted, on="trajectory_id", how="left", maintain_order="left")
        held = held.with_columns(pl.coalesce("told", "noted"))
    held = held.select("seq", pl.col("told").alias("replay_score"))
    return pl.concat([held, new]).with_columns(pl.col("replay_score").fill_nan(None))


def _noted(source: Input, score: str) -> pl.DataFrame:
    """``trajectory_id`` and ``noted``: scores that the record of an earlier round holds."""
    none = pl.DataFrame(schema={"trajectory_id": pl.String, "noted": pl.Float64})
    path = next(
        (view.path for view in record_views(source.store.root) if view.name == "annotations"), None
    )
    if path is None:
        return none
    rows = pl.scan_parquet(path, glob=False)
    names = [name for name in rows.collect_schema().names() if name.endswith("replay_score")]
    names += [score] if score in rows.collect_schema().names() else []
    if not names:
        return none
    noted = pl.coalesce(pl.col(name).cast(pl.Float64, strict=False) for name in names)
    frame = rows.select("trajectory_id", noted.alias("noted")).collect()
    return frame.unique("trajectory_id", keep="first", maintain_order=True)


def _drawn(pool: Pool, options: Replay, begun: _Round, kept: list[int]) -> list[int]:
    """The trajectories of the buffer that come in."""
    number = begun.new.height
    free = begun.held.filter(~begun.twice)
    if options.compat == "sage":
        if not number:
            return begun.held["seq"].to_list()
        theirs = set(free["seq"])
        available = [seq for seq in kept if seq in theirs]
    else:
        draw = draws(pool.seed, free["trajectory_id"], f"replay {begun.seen}").tolist()
        ranked = sorted(zip(draw, free["seq"], strict=True))
        available = [seq for _, seq in ranked]
    if not number or not options.ratio or not available:
        return []
    count = min(max(1, int(number * options.ratio)), len(available))
    if options.compat == "sage":
        return random.Random(SAGE_SEED).sample(available, count)
    return available[:count]


def _columns_frame(
    begun: _Round, admitted: pl.DataFrame, scores: pl.DataFrame | None
) -> pl.DataFrame:
    new = begun.new.select("seq", pl.lit(False).alias("replayed"))
    rows = pl.concat([new, admitted.with_columns(pl.lit(True).alias("replayed"))])
    if scores is None:
        return rows
    return rows.join(scores, on="seq", how="full", coalesce=True)


def _lines(options: Replay, facts: Mapping[str, int], *, first: bool) -> list[str]:
    before = f"{facts['replayed']:,} of {facts['buffer_before']:,} trajectories of the buffer"
    return [
        "there is no buffer yet, so nothing is replayed"
        if first
        else f"{before} are replayed beside {facts['new']:,} new ones",
        f"the buffer now holds {facts['buffer']:,} (at most {options.size:,}), "
        f"{facts['buffer_new']:,} of them new; {facts['seen']:,} were offered to it so far",
    ]


def _needs(options: Replay) -> Iterable[str]:
    return [options.score] if options.score is not None and options.score not in COLUMNS else []


def _columns(options: Any) -> Mapping[str, str]:
    columns = {"replayed": "True when it comes from the replay buffer, false when it is new."}
    if options.score is not None:
        columns["replay_score"] = "Score by which the buffer keeps it."
    return columns


OP = Op(
    name="replay",
    title="Bring in some of what earlier rounds had, from a buffer that lasts over rounds.",
    options=Replay,
    run=run,
    cost="A hash a trajectory. With select: hybrid all texts are read when the buffer overflows, "
    "and each choice compares all of them: meant for some thousands.",
    source="Vitter 1985, Random sampling with a reservoir, ACM TOMS 11(1), algorithm R; SAGE's "
    "OnlineContinualLearner and CoresetSelector.",
    needs=_needs,
    columns=_columns,
)
