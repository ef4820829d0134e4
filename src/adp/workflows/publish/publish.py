"""Publishing: the folder, the sessions beside it, and the upload of both."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from adp.converters.sts.trace import Form
from adp.core.progress import Progress, Silent
from adp.stores import shards
from adp.stores.locks import held, holding
from adp.stores.staged import versions
from adp.workflows.publish.card import head_license, shared
from adp.workflows.publish.check import check
from adp.workflows.publish.configs import STORE
from adp.workflows.publish.folder import Prepared, prepare
from adp.workflows.publish.options import PublishOptions, title_line
from adp.workflows.publish.repo import TRACES, RepoId
from adp.workflows.publish.traces import TracesOptions, TracesWritten, write_traces
from adp.workflows.publish.upload import Uploaded
from adp.workflows.publish.upload import upload as send
from adp_schema.hub import check_repo_id
from adp_schema.ids import digest


@dataclass(frozen=True)
class UploadOptions:
    """How to upload.

    Attributes:
        private: only the owner sees the data set.
        message: what the commit says; None for the usual words.
    """

    private: bool = False
    message: str | None = None


@dataclass
class Published:
    """What was made, and where it went.

    Attributes:
        prepared: the folder.
        traces: what was written for the data set of sessions; None when none was asked for.
        uploaded: where it went: what the upload of each folder returned. Empty in a dry run.
    """

    prepared: Prepared
    traces: TracesWritten | None
    uploaded: list[Uploaded]


def default_folder(path: str, repo: RepoId, options: PublishOptions) -> Path:
    """The folder in the cache of the user for a store and a name.

    A later call finds it again, so a stopped publication goes on.
    """
    store = shards.manifest_hash(shards.open_finished(path))
    key = [store, str(repo), options.all_tables, options.search.fingerprint()]
    key.append(versions("duckdb", "msgspec", "datasets"))
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    name = digest(json.dumps(key, sort_keys=True).encode("utf-8"))
    return Path(cache) / "adp" / "publish" / name


def check_first(
    path: str, repo: RepoId, options: PublishOptions, upload: UploadOptions | None
) -> None:
    """Refuse what can be refused before any work is done.

    Args:
        path: path or URL of the store.
        repo: where it goes.
        options: how to make the folder.
        upload: how to upload; None only makes the folder, and the Hub is not asked.

    Raises:
        StoreError: there is no finished store.
        UsageError: a name is not valid, or a repository is public and must be private.
        HubError: there is no token, it may not write there, or the Hub cannot be reached.
    """
    shards.open_finished(path)
    extra_keys = [f"{repo}{TRACES}"] * options.traces
    for name in extra_keys:
        check_repo_id(name)
    if upload is not None:
        check(str(repo), upload.private, options.tag, others=extra_keys)


def publish(
    path: str,
    repo: RepoId,
    *,
    out: Path | None = None,
    options: PublishOptions | None = None,
    upload: UploadOptions | None = None,
    traces: Form | None = None,
    progress: Progress | None = None,
    checked: bool = False,
) -> Published:
    """Make the folder of a store, and upload it.

    Args:
        path: path or URL of a finished store.
        repo: where it goes.
        out: the folder; None takes one in the user's cache, which is removed after the upload.
        options: how to make the folder.
        upload: how to upload; None only makes the folder.
        traces: make and upload the data set of sessions too, in this form: ``sts`` or ``pi``.
        progress: told how far it is.
        checked: whether `check_first` was called already.

    Raises:
        AdpError: see `check_first`, `prepare` and the upload.
    """
    options, reporter = options or PublishOptions(), progress or Silent()
    options = replace(options, traces=traces is not None)
    if not checked:
        check_first(path, repo, options, upload)
    folder = out or default_folder(path, repo, options)
    if folder.name in ("", ".."):
        folder = folder.resolve()  # the sessions come beside it
    traces_folder = folder.with_name(folder.name + TRACES)
    with holding(folder), holding(traces_folder) if traces else nullcontext():
        prepared = held(prepare)(path, repo, folder, options, reporter)
        written = (
            _write_traces(prepared, traces_folder, options, traces, reporter) if traces else None
        )
        published = Published(prepared, written, [])
        if upload is None:
            return published
        targets = [(folder, str(repo))] + ([(traces_folder, f"{repo}{TRACES}")] if traces else [])
        for result, name in targets:
            published.uploaded.append(
                send(
                    result,
                    name,
                    private=upload.private,
                    tag=options.tag,
                    message=upload.message,
                    progress=reporter,
                )
            )
        if out is None:
            for result, _ in targets:
                shutil.rmtree(result)
    return published


def _write_traces(
    prepared: Prepared, out: Path, options: PublishOptions, form: Form, progress: Progress
) -> TracesWritten:
    """Write the data set of sessions beside the folder."""
    how = TracesOptions(
        repo_id=str(prepared.repo),
        license=head_license(prepared.assessment),
        title=title_line(options.title) or prepared.repo.name,
        notes=shared(prepared.assessment, prepared.findings, options.license, prepared.redacted),
        form=form,
    )
    return held(write_traces)(
        str(prepared.folder / STORE), str(out), options=how, progress=progress
    )
