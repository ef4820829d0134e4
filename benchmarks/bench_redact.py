"""Redaction: megabytes of text a CPU second, against plain expressions over all cells.

python benchmarks/bench_redact.py [--megabytes 200] [--data DIR]
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import string
from pathlib import Path
from typing import Any

from generate import ChatMaker
from measure import Goal, Run, command, print_goals, run_task, save, spread

from adp_schema.store import Store
from adp_schema.tables import TABLES

ROUNDS = 3
EVERY = 50
TARGET = 20.0
MEMORY_LIMIT = 500
PERSONAL = "secrets,own,email,phone,credit-card,iban,us-ssn,home-folder"


def _key(draw: random.Random) -> str:
    """A key as a provider would make it; put together here, so that it stands in no file."""
    return "gh" + "p_" + "".join(draw.choices(string.ascii_letters + string.digits, k=36))


def _store(data: Path, megabytes: float) -> Path:
    """A store of chats, of which one in fifty says something that it should not."""
    store = data / f"redact-{megabytes:g}"
    if store.exists():
        return store
    draw = random.Random(7)
    maker = ChatMaker(1)
    source = data / "redact.jsonl"
    size = count = 0
    with source.open("w", encoding="utf-8") as file:
        while size < megabytes * 1e6:
            record = maker.record(count)
            if count % EVERY == 0:
                words = f"{_key(draw)} of ada{count}@analytical.io in /home/ada{count}/x"
                record["messages"][0]["content"] = f"Use {words}, and go on."
            size += file.write(json.dumps(record, ensure_ascii=False) + "\n")
            count += 1
    run_task("convert", {"source": str(source), "out": str(store), "workers": 1})
    source.unlink()
    return store


def _characters(store: Path) -> int:
    """Bytes of text in the tables."""
    import polars as pl

    opened = Store.open(str(store))
    total = 0
    for table in TABLES:
        names = [field.name for field in TABLES[table].schema if str(field.type) == "string"]
        sums = opened.scan(table).select(pl.col(name).str.len_bytes().sum() for name in names)
        total += sum(value or 0 for value in sums.collect().row(0))
    return total


def _mb_per_second(run: Run, size: float) -> float:
    return size / 1e6 / float(run.answer["work"]["cpu"])


def run(data: Path, *, small: bool, megabytes: float = 200) -> list[Goal]:
    """Measure, print and save; the generated files go to ``data``."""
    megabytes = 10 if small else megabytes
    plain_megabytes = 0.3 if small else 2
    store = _store(data, megabytes)
    size = _characters(store)
    out = data / "redacted"
    speeds: dict[str, list[float]] = {}
    results: dict[str, Any] = {}
    for _ in range(ROUNDS):
        shutil.rmtree(out, ignore_errors=True)
        tasks = {
            "looking for secrets": {"store": str(store), "out": "", "kinds": "secrets"},
            "looking for all": {"store": str(store), "out": "", "kinds": PERSONAL},
            "redacting": {"store": str(store), "out": str(out), "kinds": PERSONAL},
        }
        for name, arguments in tasks.items():
            done = run_task("redact", arguments)
            speeds.setdefault(name, []).append(_mb_per_second(done, size))
            results[name] = done.answer["found"]
        arguments = {"store": str(store), "megabytes": plain_megabytes, "kinds": "secrets"}
        done = run_task("redact_plain", arguments)
        speeds.setdefault("plain", []).append(_mb_per_second(done, done.answer["characters"]))
    sampled = run_task(
        "redact", {"store": str(store), "out": "", "kinds": PERSONAL}, sample=True
    )  # fmt: skip
    shutil.rmtree(out, ignore_errors=True)
    ratios = [a / b for a, b in zip(speeds["looking for secrets"], speeds["plain"], strict=True)]
    note = f"{min(ratios):.0f} to {max(ratios):.0f}"
    middle = {name: statistics.median(values) for name, values in speeds.items()}
    goals = [
        Goal(
            "looking for secrets, against plain", statistics.median(ratios), TARGET, "x", note=note
        ),
        Goal("  looking for secrets", middle["looking for secrets"], None, "MB/CPU s"),
        Goal("  plain expressions", middle["plain"], None, "MB/CPU s"),
        Goal("looking for all that is on by default", middle["looking for all"], None, "MB/CPU s"),
        Goal("redacting into a new store", middle["redacting"], None, "MB/CPU s"),
        Goal("peak uss", sampled.peaks["uss"], MEMORY_LIMIT, "MB", at_most=True),
    ]
    print_goals(f"Redaction of {size / 1e6:.0f} MB of text", goals)
    numbers = {
        "text_mb": round(size / 1e6, 1),
        "speeds": {name: spread(values) for name, values in speeds.items()},
        "found": results,
        "peak_uss": round(sampled.peaks["uss"], 1),
    }
    save("redact", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__)
