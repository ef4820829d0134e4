"""What the store of a replay buffer knows of itself."""

from __future__ import annotations

from adp_schema.store import Store


def offered_before(store: Store, held: int) -> int:
    """How many were offered to a buffer, by its lineage; at least those that it holds.

    Args:
        store: the buffer.
        held: how many it holds.
    """
    lineage = store.manifest.lineage
    facts = lineage[-1].options.get("buffer") if lineage else None
    seen = facts.get("seen") if isinstance(facts, dict) else None
    return max(seen, held) if isinstance(seen, int) else held
