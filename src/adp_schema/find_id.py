"""Finding a trajectory by a part of its id."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from adp_schema.errors import StoreError, UsageError

NEAR = 20_000
"""Ids among which the nearest ones are looked for."""


def find_id(ids: Sequence[str], text: str, count: int | None = None) -> str:
    """The one id that a text names: an id, a source id, the begin of one or the end.

    Args:
        ids: all ids; or, where none of all is like the text, the first `NEAR` of them.
        text: what is looked for.
        count: how many there are; None: as many as are given.

    Raises:
        StoreError: none, with the nearest ones.
        UsageError: more than one, with the first of them.
    """
    if text in set(ids):
        return text
    source = [name for name in ids if name.endswith("/" + text)]
    result = source or [name for name in ids if name.startswith(text) or name.endswith(text)]
    result = result or [name for name in ids if name.partition("/")[2].startswith(text)]
    if len(result) == 1:
        return result[0]
    if result:
        more = f" and {len(result) - 5:,} more" if len(result) > 5 else ""
        raise UsageError(
            f"'{text}' names {len(result):,} trajectories: {', '.join(result[:5])}{more}"
        )
    near = difflib.get_close_matches(text, ids[:NEAR], n=3, cutoff=0.6)
    if not near:
        short = {name.partition("/")[2]: name for name in ids[:NEAR]}
        near = [short[name] for name in difflib.get_close_matches(text, short, n=3)]
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    else:
        hint = f"it holds {', '.join(ids[:3])}" if ids else "it holds none"
        left = (len(ids) if count is None else count) - 3
        hint += f" and {left:,} more" if left > 0 else ""
    raise StoreError(f"the store has no trajectory '{text}'; {hint}")
