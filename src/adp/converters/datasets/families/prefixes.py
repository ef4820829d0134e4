"""Rows that repeat what was before them: those that another row begins with say nothing new."""

from __future__ import annotations

import hashlib

from adp.converters.datasets.families.steps import StepGroup
from adp.converters.datasets.paths import look
from adp.converters.datasets.turns import list_items_of
from adp.converters.kit.source_object import SourceObject
from adp_schema import jsontext


def longest(group: StepGroup, path: str) -> list[StepGroup]:
    """The rows of a group that no other row goes on from, each a run.

    The rows that such a row begins with go along, without their turns, as far as they say more.

    Args:
        group: rows in order.
        path: where their turns are.
    """
    chains = [_chain(row, path) for row in group.rows]
    passed = {state for chain in chains for state in chain[:-1]}
    results: list[StepGroup] = []
    goes_on: dict[bytes, StepGroup] = {}
    for number, chain in enumerate(chains):
        if not chain or chain[-1] not in passed:
            run = StepGroup(group.name, [group.rows[number]], [group.numbers[number]])
            results.append(run)
            for state in chain:
                goes_on.setdefault(state, run)
    for number, chain in enumerate(chains):
        if chain and chain[-1] in passed:
            row = group.rows[number].copy()
            row.drop(path)
            goes_on[chain[-1]].prefixes.append(row)
    return results


def _chain(row: SourceObject, path: str) -> list[bytes]:
    """A number for each beginning of the turns of a row, the same for the same beginning."""
    raw = look(row, path)
    state = hashlib.sha256()
    results = []
    for item in [] if raw is None else list_items_of(raw):
        state.update(jsontext.one_line(item).encode("utf-8", "surrogatepass") + b"\n")
        results.append(state.digest())
    return results
