"""The composition of a store: all numbers that its data card and its report show.

`model` says what they are, `questions` and `lengths` ask for them, `examples` chooses
trajectories to show. What `adp stats` counts comes from `adp.stores.stats`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from adp.core.progress import Progress, Silent
from adp.stores.completeness import completeness_figures
from adp.stores.composition import lengths as measure
from adp.stores.composition import questions as ask
from adp.stores.composition.examples import examples
from adp.stores.composition.lengths import LengthColumns, read_lengths
from adp.stores.composition.model import (
    Bin,
    Composition,
    Count,
    DataSet,
    Distribution,
    Errors,
    ExampleTrajectory,
    FirstTexts,
    Licensed,
    MediaKind,
    Ranking,
    Rate,
    Share,
    TableSize,
    ToolCounts,
)
from adp.stores.stats import GroupStats, Recorded, ToolStats, stats
from adp_schema import location
from adp_schema.manifest import MANIFEST
from adp_schema.store import Store

__all__ = ["Bin", "Composition", "CompositionOptions", "Count", "DataSet", "Distribution",
           "Errors", "ExampleTrajectory", "FirstTexts", "Licensed", "MediaKind", "Ranking", "Rate",
           "Recorded", "Share", "TableSize", "Tool", "Tools", "composition"]  # fmt: skip


@dataclass(frozen=True)
class CompositionOptions:
    """How much a composition holds.

    Attributes:
        name: what the store is called; None for the last part of its path.
        limit: names in a list, such as the tools; data sets and licenses are never cut.
        examples: trajectories to show.
    """

    name: str | None = None
    limit: int = 200
    examples: int = 5


_OTHER_NAMES = 20
"""Names in a list of one data set."""


def composition(
    store: Store,
    options: CompositionOptions | None = None,
    progress: Progress | None = None,
) -> Composition:
    """Count what a store holds. The same store gives the same numbers.

    Args:
        store: a finished or a growing store, local or by URL.
        options: how much to list.
        progress: told how many of the parts are done.

    Raises:
        StoreError: a file is missing or damaged.
        QueryError: the store does not fit in the memory of the query engine.
    """
    return _Counter(store, options or CompositionOptions(), progress or Silent()).all()


class _Counter:
    """Asks for the parts of a composition, one after the other."""

    def __init__(self, store: Store, options: CompositionOptions, progress: Progress) -> None:
        self.store = store
        self.options = options
        self.progress = progress
        self.names: dict[str, Any] = {}

    def all(self) -> Composition:
        parts: list[Callable[[], dict[str, Any]]] = [
            self._tables,
            self._lengths,
            self._totals,
            self._datasets,
            self._errors,
            self._rankings,
            self._others,
            self._completeness,
        ]
        self.progress.total(len(parts))
        for part in parts:
            self.names.update(part())
            self.progress.advance(1)
        return Composition(**self.names)

    def _tables(self) -> dict[str, Any]:
        manifest = self.store.manifest
        limit = self.options.limit
        tables = ask.tables(self.store)
        rows = {table.name: table.rows for table in tables}
        counts = manifest.counts
        return {
            "name": self.options.name or self.store.name,
            "schema_version": manifest.schema_version,
            "growing": not location.exists(location.join(self.store.root, MANIFEST)),
            "records": counts.records,
            "used": counts.used,
            "skipped": counts.skipped,
            "rejected": counts.rejected,
            "trajectories": rows.get("trajectories", 0),
            "bytes": sum(table.bytes for table in tables),
            "tables": tables,
            "reasons": ask.ranked(manifest.reasons, limit),
            "losses": ask.ranked(manifest.losses, limit),
            "unknown": ask.ranked(manifest.unknown, limit),
            "lineage": tuple(act.model_dump() for act in manifest.lineage),
        }

    def _completeness(self) -> dict[str, Any]:
        return {"completeness": tuple(completeness_figures(self.store, "dataset"))}

    def _lengths(self) -> dict[str, Any]:
        self.lengths: LengthColumns = read_lengths(self.store)
        columns = self.lengths.columns
        return {
            "characters": int(columns["characters"].sum()),
            "lengths": measure.of_trajectories(self.lengths),
            "parts": measure.of_parts(self.store),
            "by_length": measure.by_length(self.lengths),
            "tokens_in": measure.recorded(columns["tokens_in"]),
            "tokens_out": measure.recorded(columns["tokens_out"]),
            "reasoning": Share(int(columns["reasoned"].sum()), int(columns["by_agent"].sum())),
        }

    def _totals(self) -> dict[str, Any]:
        limit = self.options.limit
        (self.totals,) = stats(self.store, (), tools=limit, histograms=False)
        named = ask.ranking(self.store, "coalesce(name, '?')", _of_main("tool_calls"), 1)
        tools = tuple(
            ToolStats(**{**vars(tool), "name": ask.short(tool.name)}) for tool in self.totals.tools
        )
        return {
            "steps": self.totals.steps,
            "llm_turns": self.totals.llm_turns,
            "calls": self.totals.calls,
            "tools": ToolCounts(tools, named.names, named.total),
            "success": _rate(None, self.totals),
            "reward": self.totals.reward,
        }

    def _datasets(self) -> dict[str, Any]:
        groups = {
            group.key["dataset"]: group
            for group in stats(self.store, ("dataset",), tools=0, histograms=False)
        }
        branches = ask.branches(self.store)
        columns = {
            "licenses": "license",
            "may_publish": "may_publish",
            "formats": "source_format",
            "splits": "split",
        }
        listed = {
            name: ask.by_dataset(self.store, column, _OTHER_NAMES)
            for name, column in columns.items()
        }
        characters = self.lengths.sums("characters")
        tokens_in = self.lengths.recorded("tokens_in")
        tokens_out = self.lengths.recorded("tokens_out")
        nothing = Recorded(None, 0, 0)
        results = []
        for name, branched in branches.items():
            group = groups.get(name) or GroupStats({"dataset": name})
            results.append(
                DataSet(
                    name=ask.short(name),
                    trajectories=group.trajectories,
                    share=group.trajectories / max(self.totals.trajectories, 1),
                    branches=branched,
                    steps=group.steps,
                    calls=group.calls,
                    characters=characters.get(name, 0),
                    tokens_in=tokens_in.get(name, nothing),
                    tokens_out=tokens_out.get(name, nothing),
                    success=_rate(name, group),
                    reward=group.reward,
                    **{key: grouped[name] for key, grouped in listed.items()},
                )
            )
        results.sort(
            key=lambda result: (-result.trajectories, result.name is None, result.name or "")
        )
        return {"datasets": tuple(results), "branches": sum(branches.values())}

    def _errors(self) -> dict[str, Any]:
        def ranking(column: str, source: str) -> Ranking:
            return self._ranking(column, source, f"{column} IS NOT NULL")

        errors = Errors(
            results=self.totals.results,
            known=self.totals.known_results,
            wrong=self.totals.error_results,
            types=ranking("error_type", _of_main("observations")),
            exit_codes=ranking("exit_code", _of_main("observations")),
            run_types=ranking("error_type", "trajectories"),
            stop_reasons=ranking("stop_reason", "trajectories"),
            truncated=ask.flag(self.store, "truncated"),
            terminated=ask.flag(self.store, "terminated"),
        )
        return {"errors": errors}

    def _ranking(self, column: str, source: str, where: str = "true") -> Ranking:
        return ask.ranking(self.store, column, source, self.options.limit, where)

    def _rankings(self) -> dict[str, Any]:
        code = f"(SELECT language FROM {_of_main('tool_calls')} WHERE kind = 'code')"
        return {
            "agents": self._ranking("agent_name", "trajectories"),
            "models": self._ranking("agent_model", "trajectories"),
            "languages": self._ranking("language", code),
            "branch_kinds": self._ranking(
                "branch_kind", "all_trajectories", "parent_id IS NOT NULL"
            ),
            "links": self._ranking("kind", "links"),
            "pairs": self._ranking("level", "pairs"),
        }

    def _others(self) -> dict[str, Any]:
        models = stats(self.store, ("model",), tools=0, histograms=False)[: self.options.limit]
        return {
            "by_model": tuple(_rate(group.key["model"], group) for group in models),
            "licenses": ask.licenses(self.store),
            "media": ask.media(self.store),
            "first_texts": ask.first_texts(self.store),
            "examples": examples(self.store, self.lengths, self.options.examples),
        }


def _of_main(table: str) -> str:
    """The rows of the main lines, as SQL."""
    return f"{table} SEMI JOIN trajectories USING (seq)"


def _rate(name: str | None, group: GroupStats) -> Rate:
    success = group.success
    good = int(success.total or 0)
    return measure.rate(ask.short(name), group.trajectories, success.recorded, good)
