"""Checking the files of a store against its manifest."""

from __future__ import annotations

import hashlib
from pathlib import Path

from adp_schema import location
from adp_schema.ids import digest_file
from adp_schema.manifest import Shard
from adp_schema.store import Store


def verify(store: Store) -> dict[str, str]:
    """Hash every shard again.

    Returns:
        Path in the store -> what is wrong with it, only for files that differ.
    """
    found: dict[str, str] = {}
    for table in sorted(store.manifest.tables):
        for shard in store.manifest.tables[table]:
            wrong = _compare(location.join(store.root, shard.path), shard)
            if wrong:
                found[shard.path] = wrong
    return found


def _compare(address: str, shard: Shard) -> str | None:
    if not location.exists(address):
        return "missing"
    if location.is_url(address):
        return None if _digest_remote(address) == shard.hash else "its bytes differ"
    size = Path(address).stat().st_size
    if size != shard.size:
        return f"it has {size:,} bytes, not {shard.size:,}"
    return None if digest_file(address) == shard.hash else "its bytes differ"


def _digest_remote(address: str) -> str:
    hasher = hashlib.blake2b(digest_size=16)
    with location.open_stream(address) as file:
        while piece := file.read(1 << 20):
            hasher.update(piece)
    return hasher.hexdigest()
