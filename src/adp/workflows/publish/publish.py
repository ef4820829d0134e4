"""Publishing: the folder, the sessions beside it, and the upload of both."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from adp.converters.sts.trace import Form
from adp.core import shards
from adp.core.progress import Progress, Silent
from adp.core.staged import versions
from adp.workflows.publish.configs import STORE
from adp.workflows.publish.folder import Prepared, PublishOptions, prepare
from adp.workflows.publish.repo import RepoId
from adp.workflows.publish.traces import TracesOptions, TracesWritten, write_traces
from adp.workflows.publish.upload import Uploaded
from adp.workflows.publish.upload import upload as send
from adp_schema.ids import digest

TRACES = "-traces"
"""What the name of the data set of sessions ends with."""


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


def publish(
    path: str,
    repo: RepoId,
    *,
    out: Path | None = None,
    options: PublishOptions | None = None,
    upload: UploadOptions | None = None,
    traces: Form | None = None,
    progress: Progress | None = None,
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

    Raises:
        AdpError: see `prepare` and the upload.
    """
    options, told = options or PublishOptions(), progress or Silent()
    folder = out or default_folder(path, repo, options)
    prepared = prepare(path, repo, folder, options, told)
    beside = folder.with_name(folder.name + TRACES)
    written = _write_traces(prepared, beside, options, traces, told) if traces else None
    published = Published(prepared, written, [])
    if upload is None:
        return published
    targets = [(folder, str(repo))] + ([(beside, f"{repo}{TRACES}")] if traces else [])
    for each, name in targets:
        published.uploaded.append(
            send(
                each,
                name,
                private=upload.private,
                tag=options.tag,
                message=upload.message,
                progress=told,
            )
        )
    if out is None:
        for each, _ in targets:
            shutil.rmtree(each)
    return published


def _write_traces(
    prepared: Prepared, out: Path, options: PublishOptions, form: Form, told: Progress
) -> TracesWritten:
    """Write the data set of sessions beside the folder."""
    how = TracesOptions(
        repo_id=str(prepared.repo),
        license=prepared.assessment.hub_license(),
        title=options.title or prepared.repo.name,
        form=form,
    )
    return write_traces(str(prepared.folder / STORE), str(out), options=how, progress=told)
