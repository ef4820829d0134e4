"""Find trajectories that hold the tasks of a benchmark.

Three levels, each with an action of its own (drop, flag, off):

1. *Ids.* The id, the issue or the commit of an item in task_id, source_id, extra, the task's
   record or the task's text (an *instance*: dropped); only its repository (flagged).
2. *Text.* The share of an item's words that stand in an n-gram (n = 13) common to the item and one
   message of the trajectory. An n-gram never goes from one message into the next; n-grams in more
   than 1 % of the pool's different tasks, or of the items, are ignored on both sides. Without
   these two rules, and with "any common n-gram" in the place of a share, a system prompt of
   25 words makes 98.9 % of a data set look contaminated.
3. *Patch.* The share of the reference patch's added lines that the agent wrote, said or ran. Lines
   are compared by their words; those of under three words, and frequent ones, are ignored.

A shared prompt is no problem even when it quotes items. An item whose text is mostly frequent in
the pool cannot be compared; the report counts and names such items, and those that are too short.
Attempts at one task count as one for what is frequent. Branches go where their main lines go.

Sources: n-gram overlap as in Brown et al. 2020 ("Language Models are Few-Shot Learners",
appendix C; n = 13), with a share of the item in the place of any common n-gram as in Touvron et
al. 2023 ("Llama 2", appendix A.6).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from adp.curation.op import Op, OpResult
from adp.curation.ops.decontaminate.evidence import EvidenceQuery, locate
from adp.curation.ops.decontaminate.index import Index, patch_index, text_index
from adp.curation.ops.decontaminate.instances import INSTANCE, REPOSITORY, names_of, search
from adp.curation.ops.decontaminate.items import Benchmark, BenchmarkTask, read_benchmark
from adp.curation.ops.decontaminate.options import Action, Decontaminate
from adp.curation.ops.decontaminate.report import summary_of
from adp.curation.ops.decontaminate.scan import PATCH_VIEWS, CountRule, PoolScanner, ScanMatches
from adp.curation.ops.decontaminate.shares import comparable_words, held
from adp.curation.pool import Pool
from adp.curation.texts.token_hashes import I64

TEXT, PATCH = "text", "patch"

REASONS: Mapping[str, str] = {
    INSTANCE: "instance of a benchmark",
    TEXT: "holds the text of a benchmark's item",
    PATCH: "holds the reference patch of a benchmark's item",
    REPOSITORY: "repository of a benchmark",
}
"""Level -> reason, the strongest first."""


def run(pool: Pool, options: Decontaminate) -> OpResult:
    """Compare all trajectories with all items."""
    benchmarks = [read_benchmark(item, pool.folder) for item in options.against]
    return _Run(pool, options, benchmarks).outcome()


class _Run:
    """One run of the op.

    `matches` collects, level by level, frames with ``seq``, ``level``, ``item`` (its number),
    ``share``, ``hit`` (whether it reaches the threshold), ``step`` and ``proof`` (JSON).
    """

    def __init__(self, pool: Pool, options: Decontaminate, benchmarks: Sequence[Benchmark]) -> None:
        self.pool = pool
        self.options = options
        self.benchmarks = benchmarks
        self.items: list[BenchmarkTask] = [
            item for benchmark in benchmarks for item in benchmark.items
        ]
        self.matches: list[pl.DataFrame] = []
        self.hits: dict[str, ScanMatches] = {}
        self.indexes: dict[str, Index] = {}
        self._scanner: PoolScanner | None = None

    @property
    def scanner(self) -> PoolScanner:
        if self._scanner is None:
            self._scanner = PoolScanner(self.pool)
        return self._scanner

    def outcome(self) -> OpResult:
        options = self.options
        if options.on_instance != "off" or options.on_repository != "off":
            self._ids()
        if options.on_text != "off":
            self._text()
        if options.on_patch != "off" and any(item.patch for item in self.items):
            self._patch()
        matches = self._all()
        columns = _columns_of(self.pool, matches, [item.label for item in self.items])
        summary, lines = summary_of(
            self.benchmarks, self.indexes, self.hits, matches, len(self.pool)
        )
        return OpResult(
            columns=columns,
            dropped=self._dropped(matches),
            events=self._events(matches),
            summary=summary,
            lines=lines,
        )

    # ---- levels ------------------------------------------------------------------------------

    def _ids(self) -> None:
        names = names_of(
            self.items,
            instances=self.options.on_instance != "off",
            repositories=self.options.on_repository != "off",
        )
        if not names.patterns and not names.unspecific:
            return
        frame = self.pool.map(search, names, "ids")
        if not frame.height:
            return
        instances = frame.filter(pl.col("level") == INSTANCE)
        alone = pl.col("level") == REPOSITORY
        frame = pl.concat([instances, frame.filter(alone).join(instances, on="seq", how="anti")])
        proofs = [
            _json({"found_in": kind, "step": step, "start": start, "end": end, "text": text})
            for kind, step, start, end, text in frame.select(
                "found_in", "step", "start", "end", "text"
            ).iter_rows()
        ]
        self.matches.append(
            frame.select(
                "seq",
                "level",
                "item",
                pl.when(alone).then(None).otherwise(1.0).alias("share"),
                pl.lit(True).alias("hit"),
                "step",
                pl.Series("proof", proofs, dtype=pl.String),
            )
        )

    def _text(self) -> None:
        options = self.options
        index = text_index([item.texts for item in self.items], options.n, options.min_words)
        rule = self._rule(options.threshold, options.measure == "ngrams", options.min_words)
        self._scan(TEXT, index, options.views, [" ".join(item.texts) for item in self.items], rule)

    def _patch(self) -> None:
        options = self.options
        patches = [item.patch for item in self.items]
        index = patch_index(patches, options.line_words)
        few = comparable_words(index) < options.patch_lines
        rule = self._rule(options.patch_threshold, False, options.patch_lines)
        self._scan(PATCH, index.only(~few), PATCH_VIEWS, [patch or "" for patch in patches], rule)

    def _rule(self, threshold: float, count: bool, least: int) -> CountRule:
        options = self.options
        return CountRule(threshold, count, least, options.frequent, options.frequent_at_least)

    def _scan(
        self, level: str, index: Index, kinds: Sequence[str], same: Sequence[str], rule: CountRule
    ) -> None:
        self.indexes[level] = index
        if not len(index.part):
            return
        result = self.scanner.run(level, index, kinds, _numbered(same), rule)
        self.hits[level] = result
        best = result.best
        hit = held(best["share"].to_numpy(), rule.threshold)
        best = best.with_columns(pl.Series("hit", hit, dtype=pl.Boolean))
        proofs = self._locate(level, best.filter(pl.col("hit")), result, kinds)
        self.matches.append(
            best.join(proofs, on="seq", how="left", maintain_order="left").select(
                "seq", pl.lit(level).alias("level"), "item", "share", "hit", "step", "proof"
            )
        )

    def _locate(
        self, level: str, hits: pl.DataFrame, scan_matches: ScanMatches, kinds: Sequence[str]
    ) -> pl.DataFrame:
        """``seq``, ``step`` and ``proof`` of trajectories that hold an item."""
        schema = {"seq": pl.Int64, "step": pl.Int32, "proof": pl.String}
        if not hits.height:
            return pl.DataFrame(schema=schema)
        pairs = self.pool.scratch / f"{level}-hits.parquet"
        index = self.pool.scratch / f"{level}-left.npz"
        hits.select("seq", "item").write_parquet(pairs)
        scan_matches.index.save(index)
        numbers = hits["item"].unique().to_list() if level == TEXT else []
        answers = {n: self.items[n].answers for n in numbers if self.items[n].answers}
        wanted = EvidenceQuery(str(pairs), str(index), tuple(kinds), answers)
        rows = self.pool.map(locate, wanted, f"{level}-pieces")
        proofs = [
            _json(
                {"spans": json.loads(spans), "pieces": pieces}
                | ({} if answered is None else {"answer_found": answered})
            )
            for spans, pieces, answered in rows.select(
                "spans", "pieces", "answer_found"
            ).iter_rows()
        ]
        return rows.select("seq", "step", pl.Series("proof", proofs, dtype=pl.String))

    # ---- outcome -----------------------------------------------------------------------------

    def _all(self) -> pl.DataFrame:
        """All matches: of each trajectory the strongest level first."""
        schema = {"seq": pl.Int64, "level": pl.String, "item": pl.Int64, "share": pl.Float64}
        schema |= {"hit": pl.Boolean, "step": pl.Int32, "proof": pl.String}
        order = pl.col("level").replace_strict(
            {level: number for number, level in enumerate(REASONS)}, return_dtype=pl.Int8
        )
        matches = pl.concat([pl.DataFrame(schema=schema), *self.matches])
        return matches.with_columns(order.alias("rank")).sort("seq", "rank")

    def _actions(self) -> dict[str, Action]:
        options = self.options
        return {
            INSTANCE: options.on_instance,
            TEXT: options.on_text,
            PATCH: options.on_patch,
            REPOSITORY: options.on_repository,
        }

    def _having(self, matches: pl.DataFrame, action: Action) -> pl.DataFrame:
        """``seq``, ``step``, ``reason`` and ``evidence`` of the hits with an action."""
        levels = [level for level, does in self._actions().items() if does == action]
        hits = matches.filter(pl.col("hit") & pl.col("level").is_in(levels))
        evidence = [
            _json(
                {"level": level, "item": self._named(level, item)}
                | ({} if share is None else {"share": round(share, 4)})
                | (json.loads(proof) if proof else {})
            )
            for level, item, share, proof in hits.select(
                "level", "item", "share", "proof"
            ).iter_rows()
        ]
        reason = pl.col("level").replace_strict(dict(REASONS), return_dtype=pl.String)
        return hits.select(
            "seq",
            "step",
            reason.alias("reason"),
            pl.Series("evidence", evidence, dtype=pl.String),
        )

    def _named(self, level: str, item: int) -> str:
        repo = self.items[item].repo
        return repo if level == REPOSITORY and repo else self.items[item].label

    def _dropped(self, matches: pl.DataFrame) -> pl.DataFrame:
        rows = self._having(matches, "drop").unique("seq", keep="first", maintain_order=True)
        return rows.select("seq", "reason", "evidence")

    def _events(self, matches: pl.DataFrame) -> pl.DataFrame:
        verdict = pl.lit("flagged").alias("verdict")
        rows = self._having(matches, "flag")
        return rows.select("seq", "step", verdict, "reason", "evidence")


def _columns_of(pool: Pool, matches: pl.DataFrame, labels: Sequence[str]) -> pl.DataFrame:
    hit = pl.col("hit")
    sure = hit & (pl.col("level") != REPOSITORY)
    # The level that is told is the strongest that was reached; the item belongs to it, or else is
    # the one that the trajectory holds most of.
    first = matches.sort("seq", ~sure, "rank", -pl.col("share").fill_null(0))
    named = pl.Series("contamination_item", labels, dtype=pl.String)
    frame = first.group_by("seq", maintain_order=True).agg(
        sure.any().alias("contaminated"),
        pl.col("share").max().alias("contamination"),
        pl.col("item").first(),
        pl.when(hit.any()).then(pl.col("level").filter(hit).first()).alias("contamination_level"),
    )
    frame = frame.with_columns(named.gather(frame["item"]).alias("contamination_item"))
    return (
        pool.members.select("seq")
        .join(frame, on="seq", how="left", maintain_order="left")
        .select(
            "seq",
            pl.col("contaminated").fill_null(False),
            pl.col("contamination").fill_null(0.0),
            "contamination_item",
            "contamination_level",
        )
    )


def _numbered(texts: Sequence[str]) -> I64:
    """A number for each text; texts with the same words have the same."""
    known: dict[str, int] = {}
    keys = [" ".join(text.lower().split()) for text in texts]
    return np.array([known.setdefault(key, len(known)) for key in keys], np.int64)


def _json(value: Mapping[str, Any]) -> str:
    kept = {name: result for name, result in value.items() if result is not None}
    return json.dumps(kept, ensure_ascii=False, sort_keys=True)


def _columns(_: Decontaminate) -> Mapping[str, str]:
    return {
        "contaminated": "Whether it is an instance, or holds the text or patch, of a benchmark.",
        "contamination": "Greatest share of an item that it holds; 1 for an instance.",
        "contamination_item": "That item, as benchmark/id.",
        "contamination_level": "instance, text, patch or repository; null below the thresholds.",
    }


OP = Op(
    name="decontaminate",
    title="Find trajectories that hold the tasks of a benchmark: by ids, text and patch.",
    options=Decontaminate,
    run=run,
    cost="Reads the chosen texts twice and the agent's once when there are patches; memory for the "
    "items' n-grams.",
    source="Brown et al. 2020, appendix C (13-grams); Touvron et al. 2023, appendix A.6 (shares).",
    columns=_columns,
)
