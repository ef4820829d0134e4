"""A store of 100,000 or a million small trajectories: `adp stats`, other commands, ten questions.

    python benchmarks/bench_big.py [--counts 100000,1000000] [--data DIR]

Each runs in a process of its own: CPU seconds with the start of Python, wall, and the peak of
memory. Ten million (--counts 10000000) take 5 GB of disk.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from big_store import make_big
from measure import Goal, command, print_goals, run_command, save

MEMORY = 4_000
"""MB that each may take."""

LAST = "set-0/0999-{group:05d}"
QUESTIONS = {
    "calls by tool": "SELECT name, count(*) AS n FROM calls GROUP BY name ORDER BY n DESC, name",
    "success by model": "SELECT agent_model, avg(success::INT) AS rate, count(success) AS known "
    "FROM trajectories GROUP BY ALL ORDER BY ALL",
    "length distribution": "SELECT n, count(*) AS trajectories FROM (SELECT seq, count(*) AS n "
    "FROM steps GROUP BY seq) GROUP BY n ORDER BY n",
    "errors by tool": "SELECT name, avg(is_error::INT) AS rate, count(*) AS results "
    "FROM observations GROUP BY name ORDER BY rate DESC, name",
    "one trajectory by id": "SELECT type, step, name, text FROM transcript "
    "WHERE trajectory_id = '{last}' ORDER BY step, rank, place",
    "pass@k of the tasks": "SELECT solved, count(*) AS tasks FROM (SELECT task_id, "
    "count(*) FILTER (success) AS solved FROM trajectories GROUP BY dataset, task_id) "
    "GROUP BY solved ORDER BY solved",
    "top error texts": "SELECT text, count(*) AS n FROM observations WHERE is_error "
    "GROUP BY text ORDER BY n DESC, text LIMIT 10",
    "tokens by model": "SELECT model, sum(tokens_in) AS read, sum(tokens_out) AS written "
    "FROM steps WHERE model IS NOT NULL GROUP BY model ORDER BY model",
    "offered and never called": "WITH offered AS (SELECT DISTINCT unnest(from_json(tools, "
    """'[{"function":{"name":"VARCHAR"}}]')).function.name AS name """
    "FROM (SELECT DISTINCT tools FROM trajectories)) SELECT name FROM offered WHERE name NOT IN "
    "(SELECT name FROM tool_calls WHERE name IS NOT NULL) ORDER BY name",
    "time per step": "SELECT step, median(duration_ms) AS ms FROM steps "
    "WHERE duration_ms IS NOT NULL GROUP BY step ORDER BY step",
}
COMMANDS = {
    "adp info": ["info", "{store}"],
    "adp head": ["head", "{store}"],
    "adp show ID": ["show", "{store}", "{last}"],
    "adp show, the end of an id": ["show", "{store}", "{end}"],
    "adp sample": ["sample", "{store}"],
    "adp stats": ["stats", "{store}"],
}


def run(data: Path, *, small: bool, counts: str = "100000,1000000") -> list[Goal]:
    """Measure, print and save; the generated files go to ``data``."""
    goals: list[Goal] = []
    numbers: dict[str, Any] = {}
    for count in [2_000] if small else [int(word) for word in counts.split(",")]:
        store = make_big(data / f"big-{count}", count)
        last = LAST.format(group=count // 1_000 - 1)
        names = {"store": str(store), "last": last, "end": last.partition("/")[2]}
        calls = {name: [word.format(**names) for word in words] for name, words in COMMANDS.items()}
        for name, sql in QUESTIONS.items():
            calls[name] = ["query", str(store), "-c", sql.format(**names)]
        for name, words in calls.items():
            used = run_command([sys.executable, "-m", "adp.cli.entry", *words])
            numbers[f"{name}, {count:,}"] = {
                "cpu": round(used.cpu, 2), "wall": round(used.wall, 2), "mb": round(used.max_rss)
            }  # fmt: skip
            note = f"{used.cpu:.2f} CPU s, {used.wall:.1f} s"
            goals.append(Goal(f"{name}, {count:,}", used.max_rss, MEMORY, "MB", True, note))
            print(f"  {name}, {count:,}: {note}, {used.max_rss:.0f} MB", flush=True)
    print_goals("Many small trajectories", goals)
    save("big", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__)
