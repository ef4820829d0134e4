"""The cases: a number and a seed give the same record on every machine."""

from __future__ import annotations

import random
import resource
from collections import Counter
from functools import cache
from typing import Any

from adp.converters.readers import READERS
from adp.converters.registry import BUILTIN
from tests.fuzz import readers
from tests.fuzz.check import Outcome, check
from tests.fuzz.mutate import mutate
from tools.tables.field_table import load_probe


@cache
def seeds(name: str) -> list[Any]:
    """The records that are mutated: the probe of the format, which has every field."""
    probe = load_probe(name)
    return [*probe["records"], *([probe["example"]] if "example" in probe else [])]


def make(name: str, seed: int, case: int) -> tuple[bytes, str]:
    """The record of a case, and the other format that it is written in; "" for one only read."""
    chance = random.Random(f"{name} {seed} {case}")
    if name in READERS:
        records = readers.seeds(name)
        return mutate(chance.choice(records), records, chance) if records else b"{}", ""
    records = seeds(name)
    others = [name for name in sorted(BUILTIN) if name != ""]
    target = chance.choice([other for other in others if other != name])
    strangers = seeds(chance.choice(others))
    return mutate(chance.choice(records), strangers, chance), target


def run_case(name: str, seed: int, case: int) -> tuple[bytes, Outcome]:
    """The record or the container of a case, and what became of it."""
    if "." in name:
        from tests.fuzz import containers  # it takes a while to import

        data = containers.make(name, seed, case)
        return data, containers.check_container(name, data)
    data, target = make(name, seed, case)
    return data, check(name, target, data) if target else readers.check_reader(name, data)


def run_chunk(job: tuple[str, int, int, int]) -> dict[str, Any]:
    """Check a run of cases."""
    name, seed, first, last = job
    counts: Counter[str] = Counter()
    results: list[tuple[int, str]] = []
    for case in range(first, last):
        _, outcome = run_case(name, seed, case)
        counts["read" if outcome.read else "rejected"] += 1
        if outcome.wrong:
            results.append((case, outcome.wrong))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"name": name, "counts": counts, "found": results, "memory": memory}
