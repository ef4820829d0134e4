"""Bringing a published store back from the Hugging Face Hub, hash for hash."""

from __future__ import annotations

import os
from pathlib import Path

from adp.converters.hub_files import fetch, fetch_all
from adp.core.progress import Progress, Silent
from adp.stores.locks import alone
from adp.stores.staged import StagedRun
from adp_schema import hub
from adp_schema.errors import StoreError
from adp_schema.hub import HubPath
from adp_schema.ids import digest_file
from adp_schema.manifest import MANIFEST, Manifest, Shard
from adp_schema.store import Store

_HERE = "hub"
"""Folder of the run that files come to first."""


@alone
def pull(
    url: str, out: str | os.PathLike[str], *, progress: Progress | None = None
) -> tuple[Manifest, HubPath]:
    """Bring a published store here.

    Each file is hashed before it is taken; the manifest is written last. When it was stopped, the
    same call goes on, and brings no file twice.

    Args:
        url: ``hf://datasets/OWNER/NAME[@REVISION][/PATH]``.
        out: folder of the store; it must not hold anything else.
        progress: told how far it is, in bytes.

    Returns:
        The manifest, and where the store came from: its folder, at a commit.

    Raises:
        UsageError: the URL is none of the Hub.
        StoreError: there is no published store, or it is damaged on the Hub.
        OutputExistsError: the output holds a store, or something that is none.
        HubError: the Hub refuses, or cannot be reached. What came is kept.
    """
    report = progress or Silent()
    place = hub.parse(url)
    run = StagedRun(os.fspath(out), {"act": "pull", "from": place.url()}, None)
    if run.finished is not None:
        return run.finished, place
    try:
        root = hub.store_place(url)
        with hub.quiet(report.note):
            return _pull(run, root, report), root
    except BaseException:
        _tidy(run)
        raise


def _pull(run: StagedRun, root: HubPath, report: Progress) -> Manifest:
    here = run.scratch / _HERE
    for half in here.glob(".cache/**/*.incomplete"):
        # Of a run that was killed; huggingface_hub cannot go on with it.
        half.unlink(missing_ok=True)
    came = fetch(root.below(MANIFEST), here, anew=True)
    manifest = Store.open(str(here / root.path), check=False).manifest
    text = came.read_bytes().decode("utf-8")
    shards = {shard.path: shard for table in manifest.tables.values() for shard in table}
    report.total(sum(shard.size for shard in shards.values()))
    _check_listed(root, shards)
    missing = {}
    for path, shard in shards.items():
        if _is_whole(run.folder / path, shard):
            report.advance(shard.size)
        else:
            missing[root.below(path).path] = shard

    def take(path: str, file: Path) -> None:
        shard = missing[path]
        if not _is_whole(file, shard):
            file = fetch(root.at(path), here, anew=True)
        if not _is_whole(file, shard):
            raise StoreError(
                f"{root.at(path).url()} is damaged: its bytes differ from the manifest"
            )
        target = run.folder / shard.path
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)
        report.advance(shard.size)

    fetch_all(root, list(missing), take, here)
    for file in run.folder.glob("*/*.parquet"):
        if file.relative_to(run.folder).as_posix() not in shards:
            file.unlink()  # of an earlier commit, which a stopped run began with
    run.finish(manifest, text)
    return manifest


def _check_listed(root: HubPath, shards: dict[str, Shard]) -> None:
    """Check that the repository has all files of the store, in their sizes.

    Raises:
        StoreError: it has not.
    """
    there = hub.files(root)
    for path, shard in shards.items():
        file = there.get(root.below(path).path)
        if file is None:
            raise StoreError(f"{root.below(path).url()} is missing; the published store is damaged")
        if file.size != shard.size:
            raise StoreError(
                f"{root.below(path).url()} is damaged: it has {file.size:,} bytes, not "
                f"{shard.size:,}"
            )


def _is_whole(file: Path, shard: Shard) -> bool:
    return (
        file.is_file()
        and file.stat().st_size == shard.size
        and digest_file(str(file)) == shard.hash
    )


def _tidy(run: StagedRun) -> None:
    """Leave no empty folder behind when nothing came."""
    came = any(path.name.endswith(".parquet") for path in run.folder.rglob("*"))
    if not came and not (run.folder / MANIFEST).exists():
        run.drop()
