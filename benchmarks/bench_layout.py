"""Parquet settings of a store: CPU, bytes, memory and three queries, one setting changed at a time.

    python benchmarks/bench_layout.py [--megabytes 60] [--repeats 3] [--data DIR]

Chats and logs of agents are converted once with the settings of `adp_schema.writer`; then the rows
are written again with others, in a process of their own for each. Nothing is chosen here: the
table is what a choice can be read from.
"""

from __future__ import annotations

import resource
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chat_shapes import write_shape
from log_shapes import LINES, RunSource, write_lines
from measure import Goal, command, print_goals, run_task, save
from tasks import cpu_seconds

DEFAULT: dict[str, Any] = {"level": 2, "dictionary": "short", "group": 32, "page": 512}
CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"level": 1},
    {"level": 3},
    {"level": 3, "page": 256},
    {"level": 6},
    {"dictionary": "none"},
    {"dictionary": "all"},
    {"group": 8},
    {"group": 16},
    {"group": 64},
    {"page": 64},
    {"page": 256},
    {"page": 1024},
)
"""Level of zstd, columns with a dictionary, MB of input in a row group, kB of a page."""
INPUTS = {"long": "openai_chat", "plain": "openai_chat", "codex": "codex", "pi": "pi"}
QUERIES = {
    "one trajectory": "SELECT * FROM '{steps}' WHERE trajectory_id = '{id}'",
    "calls by tool": "SELECT name, count(*) FROM '{tool_calls}' GROUP BY name",
    "all texts": "SELECT sum(length(CAST(text AS VARCHAR))) FROM '{steps}'",
}


def _source(data: Path, kind: str, megabytes: float) -> Path:
    """A file of chats, or a folder with sessions of 4 MB."""
    path = data / f"layout-{kind}-{megabytes:g}"
    if path.exists():
        return path
    path.mkdir()
    if kind not in LINES:
        write_shape(kind, path / "chats.jsonl", megabytes)
        return path
    for number in range(max(1, round(megabytes / 4))):
        write_lines(LINES[kind](RunSource(number)), path / f"rollout-{number}.jsonl", 4)
    return path


def make_store(source: str, out: str, name: str) -> dict[str, Any]:
    """Convert once: the store whose rows are written again."""
    from adp.converters.run import ConvertOptions, convert

    shutil.rmtree(out, ignore_errors=True)
    convert([source], out, options=ConvertOptions(format=name, workers=1))
    return {}


def _groups(folder: Path, count: int) -> Iterator[Any]:
    """The rows of a table of a store in so many row groups."""
    import pyarrow.parquet as pq

    rows = pq.read_table(sorted(folder.glob("*.parquet"))).combine_chunks()
    size = max(1, -(-rows.num_rows // count))
    for start in range(0, rows.num_rows, size):
        yield rows.slice(start, size).combine_chunks()


def write_again(store: str, out: str, megabytes: float, settings: dict[str, Any]) -> dict[str, Any]:
    """Write the tables of a store with other settings: CPU, bytes, memory, queries."""
    import pyarrow.parquet as pq

    from adp_schema.tables import TABLES
    from adp_schema.writer import writer_options

    seconds = size = 0.0
    names = [item.name for item in Path(store).iterdir() if item.name in TABLES]
    for name in sorted(names):
        options = writer_options(TABLES[name]) | {
            "compression_level": settings["level"],
            "data_page_size": settings["page"] << 10,
        }
        if settings["dictionary"] != "short":
            options["use_dictionary"] = settings["dictionary"] == "all"
        path = Path(out) / f"{name}.parquet"
        with pq.ParquetWriter(path, TABLES[name].schema, **options) as writer:
            for rows in _groups(Path(store) / name, max(1, round(megabytes / settings["group"]))):
                begun = cpu_seconds()
                writer.write_table(rows, row_group_size=rows.num_rows)
                seconds += cpu_seconds() - begun
        size += path.stat().st_size
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return {"cpu": seconds, "megabytes": size / 1e6, "rss": memory} | _ask(Path(out))


def _ask(out: Path) -> dict[str, float]:
    """CPU milliseconds of each query, the best of five."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    places = {path.stem: str(path) for path in out.glob("*.parquet")}
    ids = f"SELECT trajectory_id FROM '{places['trajectories']}' ORDER BY seq LIMIT 1 OFFSET 3"
    (chosen,) = connection.execute(ids).fetchall()[0]
    answer = {}
    for name, query in QUERIES.items():
        if "{tool_calls}" in query and "tool_calls" not in places:
            continue
        times = []
        for _ in range(5):
            begun = time.process_time()
            connection.sql(query.format(**places, id=chosen)).to_arrow_table()
            times.append((time.process_time() - begun) * 1000)
        answer[name] = min(times)
    return answer


def _label(change: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in change.items()) or "as it is"


def run(data: Path, *, small: bool, megabytes: float = 60, repeats: int = 3) -> list[Goal]:
    """Measure, print and save; the generated files go to ``data``."""
    if small:
        megabytes, repeats = 8, 1
    numbers: dict[str, Any] = {}
    for kind, name in INPUTS.items():
        store, out = data / f"layout-store-{kind}", data / "out"
        source = str(_source(data, kind, megabytes))
        given = {"source": source, "out": str(store), "name": name}
        run_task("make_store", given, script=__file__)
        done: dict[str, dict[str, float]] = {}
        for _ in range(repeats):
            for change in CHANGES:
                shutil.rmtree(out, ignore_errors=True)
                out.mkdir()
                task = {"store": str(store), "out": str(out), "megabytes": megabytes}
                task["settings"] = DEFAULT | change
                answer = run_task("write_again", task, script=__file__).answer
                before = done.get(_label(change), answer)
                done[_label(change)] = {key: min(answer[key], before[key]) for key in answer}
        numbers[kind] = done
        for label, values in done.items():
            listed = ", ".join(f"{key} {value:.2f}" for key, value in values.items())
            print(f"  {kind}, {label}: {listed}", flush=True)
    goals = [
        Goal(f"{kind}, {label}: {what}", values[what] / done["as it is"][what], None, "x")
        for kind, done in numbers.items()
        for label, values in done.items()
        for what in ("cpu", "megabytes", "rss")
        if label != "as it is"
    ]
    print_goals(f"Layout of {megabytes:g} MB" + (" (small run)" if small else ""), goals)
    save("layout", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    tasks = {"make_store": make_store, "write_again": write_again}
    command(run, __doc__ or sys.argv[0], tasks)
