"""The store as it is published: the same files, without the tables that are not for others."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from adp.stores import shards
from adp.stores.staged import versions
from adp_schema import location
from adp_schema.manifest import MANIFEST, Lineage, Manifest, write_atomic
from adp_schema.store import Store

LEFT_OUT = ("raw", "rejects")
"""Tables that are not published unless one asks for it: the records of the source as they were,
and those that became no trajectory. Nobody looks at them, and what an edit took out of a
trajectory is still in its record."""


def stage(store: Store, out: Path, *, all_tables: bool, link: bool = True) -> None:
    """Put the files of a store into a folder.

    Without anything to leave out, the copy is the store byte for byte. Else the manifest gets an
    entry in the lineage that says what is not there.

    Args:
        store: a finished store.
        out: folder for the copy; what is there stays if it has the right size.
        all_tables: leave out no table.
        link: link local files. Who writes to a link writes to the store, so this is for
            folders that nobody else opens.
    """
    manifest = store.manifest
    gone = [] if all_tables else [name for name in LEFT_OUT if manifest.rows(name)]
    for name, files in manifest.tables.items():
        for shard in files if name not in gone else ():
            _place(location.join(store.root, shard.path), out / shard.path, shard.size, link)
    if not gone:
        write_atomic(out / MANIFEST, location.read_text(location.join(store.root, MANIFEST)))
        return
    _without(manifest, gone, shards.manifest_hash(store)).write(out)


def _without(manifest: Manifest, gone: list[str], parent: str) -> Manifest:
    """The manifest of the store without some tables."""
    act = Lineage(act="publish", options={"left_out": gone}, versions=versions(), parents=[parent])
    tables = {name: files for name, files in manifest.tables.items() if name not in gone}
    reasons = manifest.reasons
    if "rejects" in gone:
        reasons = _plain_reasons(reasons)
    update = {"tables": tables, "reasons": reasons, "lineage": [*manifest.lineage, act]}
    return manifest.model_copy(update=update)


def _plain_reasons(reasons: dict[str, int]) -> dict[str, int]:
    """Reasons without their words, which may quote the record."""
    plain_reasons: dict[str, int] = {}
    for reason, count in sorted(reasons.items()):
        status = "skipped" if reason.startswith("skipped") else "rejected"
        name = f"{status}: left out"
        plain_reasons[name] = plain_reasons.get(name, 0) + count
    return plain_reasons


def _place(address: str, target: Path, size: int, link: bool) -> None:
    """Link a file, or copy it, whole or not at all."""
    if target.exists() and target.stat().st_size == size:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    staged = target.with_name(target.name + ".tmp")
    staged.unlink(missing_ok=True)
    if location.is_url(address):
        import fsspec

        with fsspec.open(address, "rb") as source, staged.open("wb") as file:
            shutil.copyfileobj(source, file, 1 << 20)
    elif not (link and _linked(address, staged)):
        shutil.copyfile(address, staged)
    staged.replace(target)


def _linked(address: str, target: Path) -> bool:
    """Link a file; False on another disk, or on a file system without links."""
    try:
        os.link(Path(address).resolve(), target)
    except OSError:
        return False
    return True
