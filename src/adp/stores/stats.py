"""Numbers about a store, by group, each with its coverage.

Many sources record success, tokens or errors for a part of their rows only. A rate over the
rows that have it means little without their share, so the two always come together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from adp_schema.errors import UsageError, unknown_name
from adp_schema.store import Store

GROUPINGS = {
    "dataset": "dataset",
    "agent": "agent_name",
    "model": "agent_model",
    "format": "source_format",
    "split": "split",
    "task": "task_id",
}
"""Names for grouping -> column of the table trajectories."""

INVALID_ARGUMENTS = """(arguments_kind = 'invalid' OR (arguments IS NULL
                AND arguments_raw IS NOT NULL
                AND coalesce(arguments_kind, '') NOT IN ('text', 'dsl', 'python_literal')))"""
"""SQL over tool_calls: the arguments are no JSON, although the source writes JSON there."""

USAGE = ("tokens_in", "tokens_out", "tokens_cached", "cost_usd")
TOP_TOOLS = 10


@dataclass
class Recorded:
    """A sum over the rows that record a value.

    Attributes:
        total: the sum; None when no row records it.
        recorded: rows that record it.
        of: rows that could.
    """

    total: float | None
    recorded: int
    of: int

    @property
    def mean(self) -> float | None:
        """The mean of the rows that record it; None when none does."""
        return None if self.total is None or not self.recorded else self.total / self.recorded


@dataclass
class ToolStats:
    """How often a tool was called, and how often that went wrong.

    Attributes:
        name: name of the tool.
        calls: calls.
        results: calls with a result.
        known: results that say whether they are errors.
        errors: results that are errors.
        trajectories: trajectories that call it.
        invalid: calls whose arguments are no JSON although the source writes JSON there.
    """

    name: str
    calls: int
    results: int
    known: int
    errors: int
    trajectories: int = 0
    invalid: int = 0


@dataclass
class GroupStats:
    """The numbers of one group of trajectories."""

    key: dict[str, str | None]
    trajectories: int = 0
    steps: int = 0
    llm_turns: int = 0
    calls: int = 0
    success: Recorded = field(default_factory=lambda: Recorded(None, 0, 0))
    reward: Recorded = field(default_factory=lambda: Recorded(None, 0, 0))
    usage: dict[str, Recorded] = field(default_factory=dict)
    results: int = 0
    known_results: int = 0
    error_results: int = 0
    tools: list[ToolStats] = field(default_factory=list)
    histograms: dict[str, list[tuple[str, int]]] = field(default_factory=dict)


def stats(
    store: Store,
    by: Sequence[str] = ("dataset", "agent"),
    *,
    tools: int = TOP_TOOLS,
    histograms: bool = True,
) -> list[GroupStats]:
    """Numbers of a store's main lines, by group.

    Args:
        store: the store.
        by: names of `GROUPINGS`; empty makes one group of all.
        tools: how many tools of each group to list; 0 asks for none.
        histograms: whether to count lengths, for which every text is read.

    Returns:
        The groups, the biggest first.

    Raises:
        UsageError: a grouping is unknown.
    """
    for name in by:
        if name not in GROUPINGS:
            raise UsageError(unknown_name("grouping", name, GROUPINGS))
    asked = _Questions(store, list(dict.fromkeys(by)))
    groups = asked.trajectories()
    asked.steps(groups)
    asked.results(groups)
    if tools:
        asked.tools(groups, tools)
    if histograms:
        asked.histograms(groups)
    return sorted(groups.values(), key=lambda group: (-group.trajectories, str(group.key)))


Groups = dict[tuple[Any, ...], GroupStats]

_RESULTS = """
results AS (
    SELECT seq, call_step AS step, call,
        bool_or(is_error IS NOT NULL OR exit_code IS NOT NULL) AS known,
        bool_or(coalesce(is_error, false) OR coalesce(exit_code, 0) <> 0) AS error
    FROM observations WHERE call_step IS NOT NULL GROUP BY seq, call_step, call
)"""


class _Questions:
    """The SQL behind the numbers; each answer begins with the columns of the grouping."""

    def __init__(self, store: Store, by: list[str]) -> None:
        self.store = store
        self.by = by
        keys = [f"{GROUPINGS[name]} AS k{index}" for index, name in enumerate(by)]
        names = [f"k{index}" for index, _ in enumerate(by)]
        self.named = "".join(f"{name}, " for name in names)
        self.grouped = f"GROUP BY {', '.join(names)}" if names else ""
        self.main = f"t AS (SELECT {', '.join([*keys, 'seq'])} FROM trajectories)"
        self.keyed = "".join(f"{key}, " for key in keys)

    def ask(self, sql: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        """The rows of an answer: key of the group, other columns."""
        rows = self.store.query(sql).to_pylist()
        return [
            (tuple(row.pop(f"k{index}") for index, _ in enumerate(self.by)), row) for row in rows
        ]

    def trajectories(self) -> Groups:
        groups: Groups = {}
        # Rewards are added up in order: in another order the last digits differ.
        sql = f"""
            SELECT {self.keyed} count(*) AS n, count(success) AS known,
                count(*) FILTER (success) AS good, count(reward) AS rewarded,
                list_sum(list(reward ORDER BY seq)) AS reward
            FROM trajectories {self.grouped} ORDER BY ALL"""
        for key, row in self.ask(sql):
            group = GroupStats(dict(zip(self.by, key, strict=True)), trajectories=row["n"])
            group.success = _recorded(row["good"], row["known"], row["n"])
            group.reward = _recorded(row["reward"], row["rewarded"], row["n"])
            groups[key] = group
        return groups

    def steps(self, groups: Groups) -> None:
        turn = "FILTER (kind = 'llm_turn')"
        columns = ", ".join(
            f"count({name}) {turn} AS n_{name}, sum({name}) {turn} AS {name}" for name in USAGE
        )
        sql = f"""
            WITH {self.main}
            SELECT {self.named} count(*) AS steps, count(*) {turn} AS turns, {columns}
            FROM steps JOIN t USING (seq) {self.grouped} ORDER BY ALL"""
        for key, row in self.ask(sql):
            group = groups[key]
            group.steps, group.llm_turns = row["steps"], row["turns"]
            for name in USAGE:
                group.usage[name] = _recorded(row[name], row[f"n_{name}"], row["turns"])

    def results(self, groups: Groups) -> None:
        sql = f"""
            WITH {self.main}, {_RESULTS}
            SELECT {self.named} count(*) AS calls, count(known) AS results,
                count(*) FILTER (known) AS known, count(*) FILTER (known AND error) AS errors
            FROM tool_calls JOIN t USING (seq) LEFT JOIN results USING (seq, step, call)
            {self.grouped} ORDER BY ALL"""
        for key, row in self.ask(sql):
            group = groups[key]
            group.calls, group.results = row["calls"], row["results"]
            group.known_results, group.error_results = row["known"], row["errors"]

    def tools(self, groups: Groups, most: int) -> None:
        window = f"PARTITION BY {self.named.rstrip(', ')}" if self.named else ""
        sql = f"""
            WITH {self.main}, {_RESULTS},
            counted AS (
                SELECT {self.named} coalesce(name, '?') AS name, count(*) AS calls,
                    count(known) AS results, count(*) FILTER (known) AS known,
                    count(*) FILTER (known AND error) AS errors,
                    count(DISTINCT seq) AS trajectories,
                    count(*) FILTER {INVALID_ARGUMENTS} AS invalid
                FROM tool_calls JOIN t USING (seq) LEFT JOIN results USING (seq, step, call)
                GROUP BY ALL
            )
            SELECT * FROM counted
            QUALIFY row_number() OVER ({window} ORDER BY calls DESC, name) <= {most}
            ORDER BY calls DESC, name"""
        for key, row in self.ask(sql):
            groups[key].tools.append(ToolStats(**row))

    def histograms(self, groups: Groups) -> None:
        per_row = {
            "steps per trajectory": _per_trajectory("steps"),
            "calls per trajectory": _per_trajectory("tool_calls"),
            "characters per text": "SELECT seq, length(text) AS n FROM steps WHERE text <> ''",
        }
        for title, counted in per_row.items():
            sql = f"""
                WITH {self.main}, counted AS ({counted})
                SELECT {self.named}
                    CASE WHEN n = 0 THEN -1 ELSE floor(log2(n))::INTEGER END AS bucket,
                    count(*) AS rows
                FROM counted JOIN t USING (seq)
                GROUP BY {self.named} bucket ORDER BY bucket"""
            results: dict[tuple[Any, ...], dict[int, int]] = {}
            for key, row in self.ask(sql):
                results.setdefault(key, {})[row["bucket"]] = row["rows"]
            for key, buckets in results.items():
                groups[key].histograms[title] = [
                    (_range(bucket), buckets.get(bucket, 0))
                    for bucket in range(min(buckets), max(buckets) + 1)
                ]


def _per_trajectory(table: str) -> str:
    return f"""
        SELECT seq, coalesce(n, 0) AS n FROM t
        LEFT JOIN (SELECT seq, count(*) AS n FROM {table} GROUP BY seq) USING (seq)"""


def _range(bucket: int) -> str:
    """Words for the numbers from 2^bucket up to the next power of two."""
    if bucket < 1:
        return str(bucket + 1)
    return f"{2**bucket:,}-{2 ** (bucket + 1) - 1:,}"


def _recorded(total: float | None, recorded: int, of: int) -> Recorded:
    return Recorded(total if recorded else None, recorded, of)
