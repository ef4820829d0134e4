"""One pass over the texts of a store for all checks that are a condition on a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from adp.stores.checks.model import CheckCounts, Finding, TextRule, excerpt
from adp.stores.checks.scope import Scope

_PLACE = {"steps": "0", "observations": '"order"', "tool_calls": "call"}
_PATHS = {
    "steps": "$.steps[{step}].{column}",
    "observations": "$.steps[{step}].observations[{place}].{column}",
    "tool_calls": "$.steps[{step}].calls[{place}].{column}",
}


def run(
    rules: Mapping[str, TextRule], scope: Scope, limit: int
) -> Iterator[tuple[str, CheckCounts]]:
    """Count the texts that fulfil the condition of each rule.

    Args:
        rules: the rules by name.
        scope: where to look.
        limit: how many examples to keep.
    """
    places = sorted({column for rule in rules.values() for column in rule.columns})
    tables = sorted({table for table, _ in places})
    selects = [
        _hits(table, [name for where, name in places if where == table], rules, places)
        for table in tables
    ]
    key = "{'seq': seq, 'step': step, 'origin': origin, 'place': place}"
    sql = f"""
        WITH flagged AS ({" UNION ALL ".join(selects)}),
        hits AS (
            SELECT unnest(flags) AS hit, seq, step, place FROM flagged WHERE len(flags) > 0
        ),
        named AS (
            SELECT hit // {len(places)} AS rule, hit % {len(places)} AS origin, seq, step, place
            FROM hits
        )
        SELECT rule, count(*) AS findings, count(DISTINCT seq) AS trajectories,
            arg_min({key}, {key}, {max(1, limit)}) AS examples
        FROM named GROUP BY rule ORDER BY rule"""
    names = list(rules)
    for row in scope.gate.trusted(sql):
        name = names[row["rule"]]
        examples = [
            _example(scope, rules[name], places[hit["origin"]], hit)
            for hit in row["examples"][:limit]
        ]
        yield name, CheckCounts(row["findings"], row["trajectories"], examples)


def _hits(
    table: str, columns: list[str], rules: Mapping[str, TextRule], places: list[tuple[str, str]]
) -> str:
    """SELECT of the rows of a table, each with the numbers of what it fulfils."""
    flags = []
    for number, rule in enumerate(rules.values()):
        for column in columns:
            if (table, column) not in rule.columns:
                continue
            condition = rule.where.format(x=column)
            code = number * len(places) + places.index((table, column))
            # Not AND: of that, every part is computed for every row.
            asked = f"source = '{rule.source}'" if rule.source and table == "steps" else "true"
            flags.append(f"CASE WHEN {asked} THEN CASE WHEN {condition} THEN {code} END END")
    kept = f"list_filter([{', '.join(flags)}], lambda flag: flag IS NOT NULL)"
    return f"SELECT seq, step, {_PLACE[table]} AS place, {kept} AS flags FROM {table}"


def _example(scope: Scope, rule: TextRule, place: tuple[str, str], hit: dict[str, int]) -> Finding:
    """A finding with the words around it."""
    table, column = place
    sql = f"""
        SELECT trajectory_id, {column} AS x FROM {table}
        WHERE seq = $seq AND step = $step AND {_PLACE[table]} = $place LIMIT 1"""
    values = {name: hit[name] for name in ("seq", "step", "place")}
    (row,) = scope.gate.batches(sql, values).read_all().to_pylist()
    match = re.search(rule.pattern, row["x"])
    path = _PATHS[table].format(step=hit["step"], place=hit["place"], column=column)
    if hit["step"] < 0:
        path = f"$.early_observations[{hit['place']}].{column}"
    text = excerpt(row["x"], match.start() if match else 0)
    return Finding(row["trajectory_id"], hit["step"], path, text)
