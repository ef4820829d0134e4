"""The episodes of a store, one row each, as far as a report needs them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from adp.eval.metrics import is_number
from adp.eval.scorer import Score, Scored
from adp.rollouts.collecting.assisted import ALONE, Assisted
from adp.rollouts.collecting.attempts import BROKEN, IS_ATTEMPT, superseded, tries_of
from adp.rollouts.experts.history import EXPERT
from adp.stores.composition.model import Count
from adp.stores.composition.questions import ranked as most_frequent
from adp.stores.composition.questions import rows, short
from adp.stores.stats import Recorded
from adp.stores.tasks import NONE, find_tasks
from adp.stores.tasks.rows import extra_value
from adp.workflows.report_eval.model import ToolUse
from adp_schema.store import Store

LIMIT = 12
"""How many names of something are listed."""

_SOLVED = """coalesce(t.success, CASE WHEN isfinite(t.reward)
            THEN t.reward BETWEEN 1 - 1e-6 AND 1 + 1e-6 END)"""
"""Whether an episode is a success: as recorded, else by its reward; as the scorer outcome does."""

_EPISODES = f"""
    WITH own AS (
        SELECT seq, count(*) FILTER (source = 'agent' AND kind = 'llm_turn'
            AND is_copied_context IS DISTINCT FROM true) AS turns,
            count(*) FILTER (source = 'agent'
            AND is_copied_context IS DISTINCT FROM true) AS steps,
            count(*) FILTER (source = 'agent' AND actor = 'expert'
            AND is_copied_context IS DISTINCT FROM true) AS expert_steps
        FROM steps GROUP BY seq),
    made AS (SELECT seq, count(*) AS calls FROM tool_calls GROUP BY seq)
    SELECT t.seq, t.trajectory_id, t.dataset, t.split, t.task_id, t.attempt,
        coalesce(t.agent_name, t.agent_model) AS agent, t.agent_model AS model,
        {_SOLVED} AS success, t.success IS NULL AS by_reward, t.reward,
        t.terminated, t.truncated, t.error_type, t.stop_reason,
        t.total_tokens_in AS tokens_in, t.total_tokens_out AS tokens_out,
        t.total_tokens_cached AS tokens_cached, t.total_cost_usd AS cost,
        epoch(t.ended_at) - epoch(t.started_at) AS seconds,
        TRY(json_extract_string(t.extra, '$.environment')) AS environment,
        TRY(json_extract_string(t.extra, '$.seed')) AS seed,
        TRY(json_extract_string(t.extra, '$.run_metadata.expert_assistance.mode')) AS mode,
        coalesce(o.steps, 0) AS steps, coalesce(o.expert_steps, 0) AS expert_steps,
        coalesce(o.turns, 0) AS turns, coalesce(m.calls, 0) AS calls
    FROM all_trajectories t
    LEFT JOIN own o USING (seq)
    LEFT JOIN made m USING (seq)
    WHERE {IS_ATTEMPT}
    ORDER BY t.seq
"""

Row = dict[str, Any]

GROUPINGS = ("difficulty", "category", "split", "dataset", "environment")
"""What episodes are grouped by, where there is more than one of it."""


@dataclass(frozen=True)
class Episodes:
    """The episodes of one run.

    Attributes:
        store: the store.
        agent: name of the policy; None when there is none.
        mode: how an expert acted beside it; None when it was alone.
        rows: one row an episode, in order; of several tries at one, the last.
        again: tries that broke and were made again; they count for nothing.
        complete: whether the rows are all trajectories of the store that are no branches.
    """

    store: Store
    agent: str | None
    mode: str | None
    rows: list[Row]
    again: int
    complete: bool

    @property
    def assisted(self) -> Assisted | None:
        """How much an expert did; None when the policy was alone."""
        if self.mode is None:
            return None
        steps, experts = (sum(row[name] for row in self.rows) for name in ("steps", "expert_steps"))
        return Assisted(self.mode, len(self.rows), steps, experts)

    def counts(self, column: str) -> tuple[Count, ...]:
        """How often each value of a column is there, those without one left out."""
        return ranked(row[column] for row in self.rows)

    def recorded(self, column: str) -> Recorded:
        """Sum of a column over the rows that record it."""
        known = [row[column] for row in self.rows if is_number(row[column])]
        return Recorded(sum(known) if known else None, len(known), len(self.rows))

    def scored(self, metric: str) -> list[Scored]:
        """A column as scores: ``success`` or ``reward``."""
        return [
            Scored(row["trajectory_id"], row["task_id"], row["attempt"], _score(row, metric),
                   row["task"])
            for row in self.rows
        ]  # fmt: skip


def _score(row: Row, metric: str) -> Score:
    if row["error_type"] in BROKEN:
        return Score(metric, None, f"{row['error_type']} failed", infrastructure=True)
    if not is_number(row[metric]):
        return Score(metric, None, f"{metric} is not recorded")
    return Score(metric, float(row[metric]))


def read_episodes(store: Store) -> list[Episodes]:
    """The episodes of each policy in a store, in the order in which they come up.

    A policy by itself and the same policy with an expert are two.
    """
    left_out = superseded(tries_of(store))
    results: dict[tuple[str | None, str | None], list[Row]] = {}
    again: Counter[tuple[str | None, str | None]] = Counter()
    for row in _episodes(store):
        key = (row["agent"], _mode(row))
        kept = results.setdefault(key, [])
        if row["trajectory_id"] in left_out:
            again[key] += 1
        else:
            kept.append(row)
    complete = len(results) == 1 and not again
    return [
        Episodes(store, agent, mode, native, again[agent, mode], complete)
        for (agent, mode), native in results.items()
        if native
    ]


def _episodes(store: Store) -> Iterator[Row]:
    """The rows of all episodes, with what the tasks of these say."""
    tasks = find_tasks(store)
    columns = store.scan("tasks").select("difficulty", "environment", "extra").collect()
    records = columns.rows(named=True)
    for row in rows(store, _EPISODES):
        task = tasks.get(row["trajectory_id"], NONE)
        known = {} if task.row is None else records[task.row]
        row["task"] = task.key
        if task.key is not None:
            row["dataset"] = task.key.dataset  # That of a rollout is named after the run.
        row["environment"] = row["environment"] or known.get("environment")
        row["difficulty"] = known.get("difficulty")
        row["category"] = _category(known.get("extra"))
        yield row


def _category(extra: str | None) -> str | None:
    """The key ``category`` of what a task holds besides its columns."""
    category = extra_value(extra, "category")
    return category if category is None or isinstance(category, str) else json.dumps(category)


def _mode(row: Row) -> str | None:
    """The mode of assistance of an episode; see `adp.rollouts.collecting.assisted`."""
    if row["mode"] not in (None, ALONE):
        return str(row["mode"])
    return EXPERT if row["expert_steps"] else None


def ranked(names: Iterable[str | None] | Counter[str]) -> tuple[Count, ...]:
    """The most frequent names, then by name."""
    counts = Counter(names)
    return most_frequent({name: n for name, n in counts.items() if name is not None}, LIMIT).rows


def asked(episodes: Episodes, sql: str) -> list[Row]:
    """The rows of an answer about a run; ``{mine}`` stands for its trajectories, called t."""
    ours = "true" if episodes.complete else "t.seq IN (SELECT unnest(?))"
    text = sql.replace("{mine}", ours)
    parameters = [] if episodes.complete else [[row["seq"] for row in episodes.rows]]
    answer: list[Row] = episodes.store.query(text, parameters).to_pylist()
    return answer


def tools(episodes: Episodes, limit: int = 40) -> tuple[ToolUse, ...]:
    """How each tool was used, the most used first."""
    result = asked(
        episodes,
        f"""
        SELECT c.name, count(DISTINCT (c.seq, c.step, c.call)) AS calls,
            count(coalesce(c.is_error, c.exit_code <> 0)) AS results,
            count(*) FILTER (c.is_error OR c.exit_code <> 0) AS errors,
            count(DISTINCT c.seq) AS episodes,
            count(DISTINCT (c.seq, c.step, c.call)) FILTER ({_SOLVED})
                AS solved_calls
        FROM calls_with_results c JOIN trajectories t USING (seq) WHERE {{mine}}
        GROUP BY c.name ORDER BY calls DESC, c.name NULLS LAST""",
    )
    return tuple(ToolUse(**row | {"name": short(row["name"])}) for row in result[:limit])


def errors(episodes: Episodes) -> tuple[tuple[Count, ...], int, int]:
    """Types of the errors that an agent met, results in all, and errors among them."""
    result = asked(
        episodes,
        """
        SELECT coalesce(o.error_type, 'no type') AS name, count(*) AS n,
            bool_or(o.is_error OR o.exit_code <> 0 OR o.error_type IS NOT NULL) AS wrong
        FROM observations o JOIN trajectories t USING (seq) WHERE {mine}
        GROUP BY o.error_type, coalesce(o.is_error, false), coalesce(o.exit_code <> 0, false)""",
    )
    counts: Counter[str] = Counter()
    for row in result:
        if row["wrong"]:
            counts[row["name"]] += row["n"]
    return ranked(counts), sum(row["n"] for row in result), counts.total()


def attempts(rows_of: Sequence[Row]) -> tuple[int, tuple[int, int] | None]:
    """Number of tasks, and the fewest and most episodes of one."""
    counts = Counter(row["task"].name for row in rows_of if row["task"] is not None)
    return len(counts), (min(counts.values()), max(counts.values())) if counts else None
