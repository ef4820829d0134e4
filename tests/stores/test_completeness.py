"""The figures of completeness, against a count over the rows in Python."""

from __future__ import annotations

from dataclasses import asdict

from adp.stores.completeness import completeness_figures
from adp_schema.builder import RowBuilder
from adp_schema.store import Store
from tests.store_builders import write_store
from tests.stores.checks.runs import DONE, add, agent, call, link, result, run, system, user

RUNS = [
    run(system(), *DONE, source_id="main", tools='[{"type":"function"}]'),
    run(user(), agent(None), agent(None), call(), source_id="hollow"),
    run(user(), agent(None, synthetic=True), call(call_id="c"), result(), source_id="made up"),
    run(*DONE, link("subagent", "main"), link("subagent", "away"), source_id="boss"),
    run(*DONE, link("continuation", "lost.jsonl"), source_id="late"),
    run(user(), agent(), call(call_id="a"), result(answers="b"), source_id="odd"),
    run(
        user(), agent(kind="context_edit"), agent(), call(), result(truncated=True), source_id="cut"
    ),
]


def store_of(folder, runs):
    builder = RowBuilder()
    for seq, entry in enumerate(runs, 1):
        add(builder, seq, f"run{seq}", entry)
    return write_store(folder / "store", builder)


def test_figures_are_those_of_a_walk_over_the_rows(tmp_path):
    store = store_of(tmp_path, RUNS)
    (row,) = completeness_figures(store, "dataset")
    runs = list(Store.open(store.root).trajectories())
    answered = [(r.seq, o.call_step, o.call) for r in runs for s in r.steps for o in s.observations]
    calls = [(r.seq, c.step, c.call) for r in runs for s in r.steps for c in s.calls]
    turns = [s for r in runs for s in r.steps if s.kind == "llm_turn"]
    assert asdict(row) == {
        "group": "made",
        "trajectories": len(RUNS),
        "system_prompts": 1,
        "tool_schemas": 1,
        "compacted": 1,
        "cut": 1,
        "turns": len(turns),
        "empty_turns": sum(s.text is None and (not s.calls or bool(s.synthetic)) for s in turns),
        "calls": len(calls),
        "calls_without_results": sum(place not in answered for place in calls),
        "results_without_calls": 1,
        "truncated_results": 1,
        "subagents": 2,
        "subagents_missing": 1,
    }
    assert "1 of 2 runs of subagents" in row.missing()


def test_the_view_says_where_what_is_missing_would_be(tmp_path):
    store = store_of(tmp_path, RUNS)
    rows = store.query(
        "SELECT history, missing FROM completeness WHERE missing IS NOT NULL ORDER BY seq"
    ).to_pylist()
    assert [(row["history"], row["missing"]) for row in rows] == [
        ("whole", "away"),
        ("cut", "lost.jsonl"),
    ]
