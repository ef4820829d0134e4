"""Full-text search: making the index of a store, and asking it.

    python benchmarks/bench_search.py [--count 20000] [--data DIR]

The words of the texts are made up, and come about as often as each other, which is harder on an
index than a language is. Each search runs once in a fresh process, with what is imported, and
again in the same one; the time is that of the CPU, which does not depend on what else runs.
"""

from __future__ import annotations

import resource
import shutil
import time
from pathlib import Path
from typing import Any

from bench_query import make_data
from measure import Goal, command, print_goals, run_task, save

SEARCHES = {
    "a rare word": "{rare}",
    "two rare words": "{rare} OR {other}",
    "a phrase": '"{rare} {next}"',
    "a beginning": "{rare:.4}*",
    "a word that most texts have": "path",
    "with a condition": "path --where success",
}


def index(store: str, folder: str) -> dict[str, Any]:
    """Make the index, in this process."""
    import adp

    started = resource.getrusage(resource.RUSAGE_SELF)
    adp.search(store, "nothing", index=folder, workers=1)
    ended = resource.getrusage(resource.RUSAGE_SELF)
    cpu = ended.ru_utime + ended.ru_stime - started.ru_utime - started.ru_stime
    return {"cpu": cpu, "bytes": sum(path.stat().st_size for path in Path(folder).iterdir())}


def ask(store: str, folder: str, words: str) -> dict[str, Any]:
    """Ask once, and a few times again: milliseconds of CPU."""
    import adp
    from adp_schema.store import Store

    words, _, where = words.partition(" --where ")
    times, matches = [], 0
    held = Store.open(store)
    for _ in range(6):
        started = time.process_time()
        result = adp.search(held, words, index=folder, where=where or None)
        times.append(1e3 * (time.process_time() - started))
        matches = len(result.matches)
    return {"first": times[0], "again": min(times[1:]), "matches": matches}


def example_words(store: Path) -> dict[str, str]:
    """Words to look for: three that follow each other somewhere in the middle."""
    from adp_schema.store import Store

    sql = "SELECT text FROM steps WHERE source = 'agent' AND length(text) > 60 LIMIT 1 OFFSET 5000"
    text = Store.open(str(store)).query(sql)["text"][0].as_py()
    words = [word for word in text.split() if word.isascii() and word.isalpha() and len(word) > 4]
    place = text.split().index(words[3])
    return {"rare": words[3], "next": text.split()[place + 1], "other": words[1]}


def run(data: Path, *, small: bool, count: int = 20_000) -> list[Goal]:
    """Measure, print and save; the generated files go to ``data``."""
    count = 2_000 if small else count
    store, _, facts = make_data(data, count)
    folder = data / "index"
    shutil.rmtree(folder, ignore_errors=True)
    made = run_task("index", {"store": str(store), "folder": str(folder)}, script=__file__)
    gigabytes = facts["content_megabytes"] / 1e3
    numbers: dict[str, Any] = {"data": facts, "index": made.answer, "searches": {}}
    goals = [
        Goal("making the index", made.answer["cpu"] / gigabytes, None, "CPU s/GB", at_most=True),
        Goal("  its size", made.answer["bytes"] / 1e9 / gigabytes, 1, "of the texts", at_most=True),
        Goal("  peak of memory", made.max_rss, 1000, "MB", at_most=True),
    ]
    words = example_words(store)
    for name, search in SEARCHES.items():
        given = {"store": str(store), "folder": str(folder), "words": search.format(**words)}
        answer = run_task("ask", given, script=__file__).answer
        numbers["searches"][name] = answer
        note = f"first time {answer['first']:.0f} ms; {answer['matches']} matches shown"
        goals.append(Goal(name, answer["again"], 200, "CPU ms", at_most=True, note=note))
    print_goals(f"Searching {gigabytes:.2f} GB of texts", goals)
    save("search", numbers, goals, small=small)
    return goals


if __name__ == "__main__":
    command(run, __doc__, {"index": index, "ask": ask})
