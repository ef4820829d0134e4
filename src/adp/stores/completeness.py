"""How complete the runs of a store are: what their sources recorded, by group, in figures.

One number would hide which part is missing, so there is one a part; the view ``completeness`` has
them for each trajectory, and says where what is missing would be.
"""

from __future__ import annotations

from dataclasses import dataclass

from adp_schema.store import Store

_COUNTED = {
    "system_prompts": "count(*) FILTER (system_prompt <> 'missing')",
    "tool_schemas": "count(*) FILTER (tool_schemas <> 'missing')",
    "compacted": "count(*) FILTER (history = 'compacted')",
    "cut": "count(*) FILTER (history = 'cut')",
    "turns": "sum(turns)::BIGINT",
    "empty_turns": "sum(empty_turns)::BIGINT",
    "calls": "sum(calls)::BIGINT",
    "calls_without_results": "sum(calls_without_results)::BIGINT",
    "results_without_calls": "sum(results_without_calls)::BIGINT",
    "truncated_results": "sum(truncated_results)::BIGINT",
    "subagents": "sum(subagents)::BIGINT",
    "subagents_missing": "sum(subagents_missing)::BIGINT",
}


@dataclass
class CompletenessFigures:
    """How complete the trajectories of a group are.

    Attributes:
        group: the value that they share.
        trajectories: how many there are, branches included.
        system_prompts: those with a system prompt.
        tool_schemas: those with the schemas of their tools.
        compacted: those whose context was compacted.
        cut: those that continue something that is not in the store.
        turns: turns of the model.
        empty_turns: of these, those whose content was not captured.
        calls: calls.
        calls_without_results: of these, those that nothing answers.
        results_without_calls: results that name a call that is not there.
        truncated_results: results that were cut.
        subagents: runs of subagents that they refer to.
        subagents_missing: of these, those that are not in the store.
    """

    group: str
    trajectories: int
    system_prompts: int
    tool_schemas: int
    compacted: int
    cut: int
    turns: int
    empty_turns: int
    calls: int
    calls_without_results: int
    results_without_calls: int
    truncated_results: int
    subagents: int
    subagents_missing: int

    def missing(self) -> list[str]:
        """What is missing, the parts that nobody recorded first; empty for complete runs."""
        lacking = [
            (self.trajectories - self.system_prompts, self.trajectories, "system prompts"),
            (self.trajectories - self.tool_schemas, self.trajectories, "tool schemas"),
            (self.cut, self.trajectories, "beginnings of the history"),
            (self.empty_turns, self.turns, "contents of turns"),
            (self.calls_without_results, self.calls, "results of calls"),
            (self.subagents_missing, self.subagents, "runs of subagents"),
        ]
        words = [f"{count:,} of {of:,} {what}" for count, of, what in lacking if count]
        if self.results_without_calls:
            words.append(f"the calls of {self.results_without_calls:,} results")
        if self.truncated_results:
            words.append(f"the rest of {self.truncated_results:,} cut results")
        return words


def completeness_figures(store: Store, by: str = "source_format") -> list[CompletenessFigures]:
    """Count what is recorded and what is missing.

    Args:
        store: the store.
        by: column of the view ``completeness`` or of the table of trajectories to group by.

    Returns:
        The figures of each group, in the order of its values.
    """
    columns = ", ".join(f"{sql} AS {name}" for name, sql in _COUNTED.items())
    sql = f"""
        SELECT coalesce(t.{by}, '') AS "group", count(*) AS trajectories, {columns}
        FROM (SELECT * EXCLUDE (source_format, dataset, trajectory_id) FROM completeness) c
        JOIN all_trajectories t USING (seq)
        GROUP BY 1 ORDER BY 1"""
    return [CompletenessFigures(**row) for row in store.query(sql).to_pylist()]
