"""Queries over a store against DuckDB over one nested Parquet file, and streaming.

    python benchmarks/bench_query.py [--count 100000] [--data DIR]

Both sides hold the same trajectories and answer with the same rows, which is checked. Both use
two threads and are warm; their runs alternate, and the best of five counts.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from generate import store_and_nested
from measure import Goal, command, print_goals, run_task, save

from adp_schema.gate import QueryGate
from adp_schema.store import Store

THREADS = 2
KINDS = ("step", "call", "observation")
ROUNDS = 5
FLAT = {
    "calls by tool": ["SELECT name, count(*) AS n FROM tool_calls GROUP BY name ORDER BY name"],
    "success by tool": [
        "SELECT c.name, count(*) AS n, count(*) FILTER (t.success) AS good "
        "FROM tool_calls c JOIN trajectories t USING (seq) GROUP BY c.name ORDER BY c.name"
    ],
    "one trajectory": [
        "SELECT * FROM transcript WHERE trajectory_id = '{id}' ORDER BY step, rank, place",
    ],
}
IN_PARTS = [
    "SELECT step, source, text, reasoning FROM steps WHERE trajectory_id = '{id}' ORDER BY step",
    "SELECT step, call, call_id, name, arguments FROM tool_calls "
    "WHERE trajectory_id = '{id}' ORDER BY step, call",
    "SELECT step, call_id, name, text FROM observations WHERE trajectory_id = '{id}' ORDER BY step",
]
"""The same trajectory table by table."""
_CALLS = (
    "SELECT success, unnest(m.tool_calls) AS c "
    "FROM (SELECT success, unnest(messages) AS m FROM nested)"
)
_NAMES = (
    "SELECT success, unnest(flatten(list_transform(messages, lambda m: "
    "list_transform(m.tool_calls, lambda c: c.name)))) AS name FROM nested"
)
NESTED = {
    "calls by tool": [
        f"SELECT c.name AS name, count(*) AS n FROM ({_CALLS}) GROUP BY name ORDER BY name",
        f"SELECT name, count(*) AS n FROM ({_NAMES}) GROUP BY name ORDER BY name",
    ],
    "success by tool": [
        "SELECT c.name AS name, count(*) AS n, count(*) FILTER (success) AS good "
        f"FROM ({_CALLS}) GROUP BY name ORDER BY name",
        "SELECT name, count(*) AS n, count(*) FILTER (success) AS good "
        f"FROM ({_NAMES}) GROUP BY name ORDER BY name",
    ],
    "one trajectory": ["SELECT messages FROM nested WHERE id = '{nested_id}'"],
}
"""Ways to write each query on the nested file; the faster one counts."""
TARGETS = {"calls by tool": 20.0, "success by tool": 20.0, "one trajectory": 3.0}

Ask = Callable[[str], pa.Table]


def make_data(data: Path, count: int) -> tuple[Path, Path, dict[str, Any]]:
    """The store, the nested file and what they hold; made when they are not there."""
    folder = data / f"trajectories-{count}"
    facts = folder / "facts.json"
    if not facts.exists():
        print(f"  making {count:,} trajectories ...", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        made = store_and_nested(folder / "store", folder / "nested.parquet", count)
        facts.write_text(json.dumps(made))
    return folder / "store", folder / "nested.parquet", json.loads(facts.read_text())


def nested_engine(path: Path) -> Ask:
    """Plain DuckDB over the nested file."""
    connection = duckdb.connect(":memory:", config={"threads": THREADS})
    quoted = str(path).replace("'", "''")
    connection.execute(f"CREATE VIEW nested AS SELECT * FROM read_parquet('{quoted}')")
    return lambda sql: connection.sql(sql).to_arrow_table()


def _seconds(ask: Callable[[], Any]) -> float:
    started = time.perf_counter()
    ask()
    return time.perf_counter() - started


def alternate(ways: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Milliseconds of each way: one run to warm up, then rounds in turn."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for ask in ways.values():
        ask()
    for _ in range(ROUNDS):
        for name, ask in ways.items():
            times[name].append(round(_seconds(ask) * 1e3, 2))
    return times


def _all_of(ask: Ask, statements: Sequence[str], names: dict[str, str]) -> Callable[[], Any]:
    ready = [statement.format(**names) for statement in statements]
    return lambda: [ask(statement) for statement in ready]


def check_equal(query: str, ours: Ask, nested: Ask, names: dict[str, str]) -> None:
    """Both sides answer the same.

    Raises:
        AssertionError: they do not.
    """
    flat = [ours(sql.format(**names)) for sql in FLAT[query]]
    for way in NESTED[query]:
        other = nested(way.format(**names))
        if query == "one trajectory":
            messages = other["messages"][0].as_py()
            texts = [m["content"] for m in messages if m["role"] != "tool"]
            results = [m["content"] for m in messages if m["role"] == "tool"]
            rows = flat[0].to_pylist()
            native = {kind: [row for row in rows if row["type"] == kind] for kind in KINDS}
            assert [row["text"] for row in native["step"]] == texts, "steps differ"
            assert [row["text"] for row in native["observation"]] == results, "observations differ"
            calls = [c["arguments"] for m in messages for c in m["tool_calls"] or ()]
            assert [row["arguments"] for row in native["call"]] == calls, "calls differ"
        else:
            assert flat[0].to_pylist() == other.to_pylist(), f"{query}: the answers differ"


def measure_queries(store: Store, nested_path: Path) -> dict[str, Any]:
    """Milliseconds of every query, both sides."""
    gate = QueryGate(store.tables_files(), threads=THREADS)
    ours, nested = gate.query, nested_engine(nested_path)
    middle = store.manifest.rows("trajectories") // 2
    trajectory_id = ours("SELECT trajectory_id FROM trajectories ORDER BY seq")[0][middle].as_py()
    names = {"id": trajectory_id, "nested_id": trajectory_id.partition("/")[2]}
    numbers: dict[str, Any] = {}
    for query, statements in FLAT.items():
        check_equal(query, ours, nested, names)
        ways = {"store": _all_of(ours, statements, names)}
        for index, way in enumerate(NESTED[query]):
            ways[f"nested, way {index + 1}"] = _all_of(nested, [way], names)
        if query == "one trajectory":
            ways["store, in three statements"] = _all_of(ours, IN_PARTS, names)
            ways["store, steps only"] = _all_of(ours, IN_PARTS[:1], names)
            ways["Store.get"] = lambda: store.get(trajectory_id)
        numbers[query] = alternate(ways)
        best = {name: min(times) for name, times in numbers[query].items()}
        print(f"  {query}: " + ", ".join(f"{n} {ms:.1f} ms" for n, ms in best.items()), flush=True)
    return numbers


def _query_goals(numbers: dict[str, Any]) -> list[Goal]:
    goals = []
    for query, times in numbers.items():
        best = {name: min(values) for name, values in times.items()}
        nested = min(ms for name, ms in best.items() if name.startswith("nested"))
        worst = max(times["store"])
        note = f"{best['store']:.1f} ms against {nested:.1f} ms; ours at worst {worst:.1f} ms"
        goals.append(Goal(query, nested / best["store"], TARGETS[query], "x", note=note))
        for name in ("store, in three statements", "store, steps only", "Store.get"):
            if name in best:
                note = f"{best[name]:.1f} ms"
                goals.append(Goal(f"  {name}", nested / best[name], None, "x", note=note))
    return goals


def measure_stream(store: Path, repeats: int) -> tuple[dict[str, Any], list[Goal]]:
    """Speed and memory of going through all trajectories, in a process of its own."""
    runs = [run_task("stream", {"store": str(store)}) for _ in range(repeats)]
    rates = [run.answer["counts"]["trajectories"] / run.answer["work"]["wall"] for run in runs]
    last = runs[-1]
    uss = {share: values["uss"] for share, values in last.answer["memory"].items()}
    listed = ", ".join(f"{value:.0f} MB at {share}" for share, value in uss.items())
    numbers = {
        "trajectories_per_second": [round(rate) for rate in rates],
        "counts": last.answer["counts"],
        "memory": last.answer["memory"],
        "max_rss": round(last.max_rss, 1),
    }
    rate_note = f"{min(rates):,.0f} to {max(rates):,.0f}"
    goals = [
        Goal("Store.trajectories()", max(rates), 2_000, "/ s", note=rate_note),
        Goal(
            "  its memory at 100 % against 10 %", uss["100 %"] / uss["10 %"], 1.2, "x", True, listed
        ),
        Goal("  its peak (ru_maxrss)", last.max_rss, None, "MB"),
    ]
    return numbers, goals


def run(data: Path, *, small: bool, count: int = 100_000) -> list[Goal]:
    """Measure, print and save; the generated files go to ``data``."""
    count = 2_000 if small else count
    folder, nested, facts = make_data(data, count)
    queries = measure_queries(Store.open(str(folder)), nested)
    streaming, stream_goals = measure_stream(folder, 2 if small else 3)
    size = facts["store_megabytes"] / facts["nested_megabytes"]
    note = f"{facts['store_megabytes']} MB against {facts['nested_megabytes']} MB"
    goals = [*_query_goals(queries), *stream_goals]
    goals.append(Goal("size on disk, store / nested", size, None, "x", note=note))
    title = f"Queries over {count:,} trajectories, {THREADS} threads, best of {ROUNDS}"
    print_goals(title + (" (small run)" if small else ""), goals)
    numbers = {"data": facts, "milliseconds": queries, "stream": streaming}
    save("query", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__)
