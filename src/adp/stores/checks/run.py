"""Running checks over a store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adp.stores.checks import call_pass, text_pass
from adp.stores.checks.files import is_readable
from adp.stores.checks.model import (
    CallRule,
    Check,
    CheckCounts,
    CheckResult,
    Finding,
    FunctionCheck,
    SqlCheck,
    TextRule,
    tally,
)
from adp.stores.checks.registry import CHECKS
from adp.stores.checks.scope import Scope, pieces, whole_store
from adp_schema.errors import UsageError, unknown_name
from adp_schema.store import Store

EXAMPLES = 3
"""Examples that are kept of each check unless the caller says otherwise."""


def chosen(ids: Sequence[str]) -> list[Check]:
    """The checks of these names in the order of the registry; all of them without names.

    Raises:
        UsageError: there is no check of a name.
    """
    for name in ids:
        if name not in CHECKS:
            raise UsageError(unknown_name("check", name, CHECKS))
    return [check for check in CHECKS.values() if not ids or check.id in ids]


def run_checks(
    store: Store, ids: Sequence[str] = (), *, examples: int = EXAMPLES, verify: bool = False
) -> tuple[list[CheckResult], list[str]]:
    """Run checks over a store.

    When its files are missing, cannot be read or have other columns, the checks that read rows
    are left out: there is nothing to be said about their rows.

    Args:
        store: the store.
        ids: names of the checks; none means all.
        examples: how many examples to keep of each.
        verify: hash every file again.

    Returns:
        One result a check that was run, in the order of the registry, and the names of the
        checks that were left out.

    Raises:
        UsageError: there is no check of a name.
    """
    every = whole_store(store, verify=verify)
    readable = is_readable(every)
    wanted = chosen(ids)
    checks = [check for check in wanted if readable or check.on_damage]
    results = {check.id: CheckResult(check=check) for check in checks}
    try:
        for check in checks:
            if isinstance(check.how, SqlCheck | FunctionCheck) and check.how.whole_store:
                results[check.id].add(_alone(check.how, every, examples), examples)
    finally:
        every.close()
    if readable:
        for piece in pieces(store):
            try:
                for name, part in _in_piece(checks, piece, examples):
                    results[name].add(part, examples)
            finally:
                piece.close()
    return list(results.values()), [check.id for check in wanted if check not in checks]


def _in_piece(checks: list[Check], piece: Scope, limit: int) -> Iterator[tuple[str, CheckCounts]]:
    """What the checks find in a few shards."""
    texts = {check.id: check.how for check in checks if isinstance(check.how, TextRule)}
    calls = {check.id: check.how for check in checks if isinstance(check.how, CallRule)}
    if texts:
        yield from text_pass.run(texts, piece, limit)
    if calls:
        yield from call_pass.run(calls, piece, limit)
    for check in checks:
        if isinstance(check.how, SqlCheck | FunctionCheck) and not check.how.whole_store:
            yield check.id, _alone(check.how, piece, limit)


def _alone(how: SqlCheck | FunctionCheck, scope: Scope, limit: int) -> CheckCounts:
    """What one check finds."""
    if isinstance(how, FunctionCheck):
        return tally(how.find(scope), limit)
    wrapped = f"""
        WITH found AS ({how.query}),
        keyed AS (
            SELECT *, {{'seq': seq, 'step': coalesce(step, -2), 'place': place, 'path': path}} AS k,
                {{'trajectory_id': trajectory_id, 'step': step, 'path': path,
                'excerpt': left(excerpt, 600)}} AS example
            FROM found
        )
        SELECT count(*) AS findings,
            count(DISTINCT CASE WHEN trajectory_id IS NOT NULL THEN seq END) AS trajectories,
            arg_min(example, k, {max(1, limit)}) AS examples
        FROM keyed"""
    (row,) = scope.gate.trusted(wrapped)
    first = [Finding.at(example) for example in (row["examples"] or [])[:limit]]
    return CheckCounts(row["findings"], row["trajectories"], first)
