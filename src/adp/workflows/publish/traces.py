"""The second data set of a publication: one session a file, for the Hub's trace viewer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from adp.converters.file_names import safe_name, session_name
from adp.converters.sts.keys import HARNESS
from adp.converters.sts.trace import Form, trace_lines
from adp.core.progress import Progress, Silent
from adp.stores.locks import alone
from adp.stores.markdown_text import escape
from adp.stores.shards import open_finished
from adp.version import __version__
from adp.workflows.publish.card import size_category
from adp.workflows.publish.checksums import SUMS, check_names, check_sums, write_sums
from adp.workflows.publish.repo import HUB, TRACES
from adp_schema.errors import OutputExistsError
from adp_schema.ids import digest
from adp_schema.losses import Losses
from adp_schema.manifest import write_atomic
from adp_schema.model import Trajectory
from adp_schema.store import Store
from adp_schema.verification import cannot_write

CARD = "README.md"

FOLDER = "traces"
"""The folder of the sessions."""

FILES_A_FOLDER = 1000
"""Sessions in one folder. The Hub asks for less than 10,000 files in a folder."""

MANY_FILES = 100_000
"""More files than this are too many for one repository, as the Hub sees it."""

TAG = "format:agent-traces"
"""The tag by which the Hub lists data sets of agent traces."""


@dataclass(frozen=True)
class TracesOptions:
    """How to write the sessions.

    Attributes:
        repo_id: ``OWNER/NAME`` of the main data set, for the link to it; None leaves it out.
        license: id of the license on the Hub; None leaves it out.
        notes: what the data card says of licenses and redaction, in Markdown.
        title: name of the data set for people; None takes it from ``repo_id``.
        harness: id of the harness in the header of each session.
        form: ``sts``, or ``pi`` for the form of Pi's sessions; see `adp.converters.sts.trace`.
    """

    repo_id: str | None = None
    license: str | None = None
    title: str | None = None
    notes: str = ""
    harness: str = HARNESS
    form: Form = "sts"


@dataclass
class TracesWritten:
    """What was written.

    Attributes:
        folder: the folder that is to be uploaded.
        files: number of sessions, one a file.
        size: their size in bytes.
        datasets: data set -> number of its sessions.
        losses: what the form could not hold: ``path: reason`` -> number of times.
        warnings: what the user should know before uploading.
    """

    folder: str
    files: int = 0
    size: int = 0
    datasets: dict[str, int] = field(default_factory=dict)
    losses: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


@alone
def write_traces(
    store_path: str,
    out: str,
    *,
    options: TracesOptions | None = None,
    progress: Progress | None = None,
) -> TracesWritten:
    """Write every trajectory of a store as a session, and a card for the data set.

    The folder holds ``traces/<data set>/<number>/<id>.jsonl``, ``README.md`` and
    ``SHA256SUMS``, and ``.run``, which is not uploaded. A run that was stopped goes on where it
    stopped when it is called in the same way again; one that was done has no session left to
    write, and with other words writes the data card anew.

    Args:
        store_path: path or URL of a finished store.
        out: the folder; it must be empty or absent.
        options: how to write it.
        progress: told how far it is, in trajectories.

    Raises:
        StoreError: there is no finished store.
        OutputExistsError: the folder holds something else, its files were changed, or it cannot
            be written.
    """
    wanted = options or TracesOptions()
    store = open_finished(store_path)
    reporter = progress or Silent()
    reporter.total(store.manifest.rows("trajectories"))
    try:
        return _Run(store, Path(out), wanted).write(reporter)
    except OSError as error:
        raise cannot_write(out, error) from error


class _Run:
    """Writes the files; every thousand it notes how far it is."""

    def __init__(self, store: Store, folder: Path, options: TracesOptions) -> None:
        self._store = store
        self._folder = folder
        self._options = options
        self._scratch = folder / ".run"
        self._plan = self._scratch / "plan.json"
        self._note = self._scratch / "done.json"
        self._written = TracesWritten(str(folder))
        self._datasets: Counter[str] = Counter()
        self._losses = Losses()

    def write(self, progress: Progress) -> TracesWritten:
        self._begin()
        progress.advance(self._written.files)
        for trajectory in _trajectories(self._store, self._written.files):
            self._session(trajectory)
            progress.advance(1)
            if self._written.files % FILES_A_FOLDER == 0:
                write_atomic(self._note, json.dumps(self._state()))
        return self._finish()

    def _begin(self) -> None:
        """Make the folder, or go on in that of a run that was stopped."""
        manifest = digest(self._store.manifest.text().encode("utf-8"))
        key = {"adp": __version__, "store": manifest}
        key |= {"harness": self._options.harness, "form": self._options.form}
        text = json.dumps(key, sort_keys=True)
        if self._plan.exists():
            if self._plan.read_text(encoding="utf-8") != text:
                raise OutputExistsError(
                    f"{self._folder} holds the traces of another store, or with other options; "
                    "remove it or choose another folder"
                )
        elif self._folder.exists() and (
            not self._folder.is_dir() or any(self._folder.glob("[!.]*"))
        ):
            raise OutputExistsError(f"{self._folder} is there and not empty; choose another folder")
        if (self._folder / SUMS).exists():
            check_sums(self._folder)
        self._scratch.mkdir(parents=True, exist_ok=True)
        write_atomic(self._plan, text)
        if self._note.exists():
            state = json.loads(self._note.read_text(encoding="utf-8"))
            self._written.files, self._written.size = state["files"], state["size"]
            self._datasets.update(state["datasets"])
            self._losses.counts.update(state["losses"])

    def _state(self) -> dict[str, Any]:
        files, size = self._written.files, self._written.size
        losses = dict(self._losses.counts)
        return {"files": files, "size": size, "datasets": dict(self._datasets), "losses": losses}

    def _session(self, trajectory: Trajectory) -> None:
        dataset = trajectory.dataset or "data"
        number = self._datasets[dataset] // FILES_A_FOLDER
        folder = self._folder / FOLDER / safe_name(dataset) / f"{number:05d}"
        folder.mkdir(parents=True, exist_ok=True)
        name = session_name(trajectory.trajectory_id or "", dataset)
        target = folder / f"{name}.jsonl"
        lines = trace_lines(trajectory, self._losses, self._options.harness, self._options.form)
        data = b"".join(line + b"\n" for line in lines)
        staged = target.with_name(target.name + ".tmp")
        staged.write_bytes(data)
        staged.replace(target)
        self._losses.take()
        self._datasets[dataset] += 1
        self._written.files += 1
        self._written.size += len(data)

    def _finish(self) -> TracesWritten:
        written = self._written
        written.datasets = dict(sorted(self._datasets.items()))
        written.losses = dict(sorted(self._losses.counts.items()))
        if written.files > MANY_FILES:
            written.warnings.append(
                f"{written.files:,} files are more than the Hub wants in one data set "
                f"({MANY_FILES:,}); publish the traces of a part of the store"
            )
        write_atomic(self._note, json.dumps(self._state()))
        self._list(card(written, self._options))
        return written

    def _list(self, text: str) -> None:
        """Write the data card and the hashes, if they are not there."""
        readme, sums = self._folder / CARD, self._folder / SUMS
        if sums.exists() and readme.read_text(encoding="utf-8") == text:
            return
        sums.unlink(missing_ok=True)
        write_atomic(readme, text)
        result = write_sums(self._folder, [CARD, FOLDER], last=False)
        if len(result) != self._written.files + 1:
            raise OutputExistsError(
                f"{self._folder / FOLDER} holds files that adp did not write; remove "
                f"{self._folder}, then call again"
            )
        write_sums(self._folder, [CARD, FOLDER], last=True)
        check_names(self._folder)


def _trajectories(store: Store, start: int) -> Iterator[Trajectory]:
    """The trajectories from a place on; a branch begins with the steps of its parent."""
    shards = zip(store.manifest.tables.get("trajectories", []), store.shards(), strict=True)
    for shard, reader in shards:
        if start < shard.rows:
            for trajectory in islice(reader.trajectories(), start, None):
                yield store.resolve(trajectory)
        start = max(0, start - shard.rows)
        reader.close()


def card(written: TracesWritten, options: TracesOptions) -> str:
    """The data card of the sessions.

    Args:
        written: what was written; its folder is not named.
        options: how it was written.
    """
    title = options.title or (options.repo_id or "Agent").split("/")[-1]
    head: dict[str, Any] = {
        "license": options.license,
        "pretty_name": f"{title}: traces",
        "tags": [TAG, "agent-traces", "agent", "tool-use"],
        "size_categories": [size_category(written.files)],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": "train", "path": f"{FOLDER}/**/*.jsonl"}],
            }
        ],
    }
    if options.license == "other":
        head |= {"license_name": "mixed"}
        if options.repo_id is not None:
            head["license_link"] = f"{HUB}/{options.repo_id}{TRACES}#licenses"
    front = {key: value for key, value in head.items() if value is not None}
    text = yaml.safe_dump(front, sort_keys=False, allow_unicode=True)
    return f"---\n{text}---\n\n{_body(written, options)}"


def _body(written: TracesWritten, options: TracesOptions) -> str:
    rows = "\n".join(f"| {escape(name)} | {n:,} |" for name, n in written.datasets.items())
    main, repo = "the main data set", "OWNER/NAME"
    if options.repo_id is not None:
        main, repo = f"[{options.repo_id}]({HUB}/{options.repo_id})", options.repo_id
    text = _CARD.format(
        files=f"{written.files:,}", main=main, rows=rows, folder=FOLDER, repo=f"{repo}{TRACES}",
        form=_FORMS[options.form],
    )  # fmt: skip
    return f"{text}\n{options.notes}" if options.notes else text


_FORMS = {
    "sts": (
        "the [Session Trace Simple Format]"
        "(https://huggingface.co/docs/hub/session-traces-format) of the Hub. "
        "`datasets` does not see the tool calls of this format; the viewer does"
    ),
    "pi": (
        "the form of Pi's sessions, which the Hub names as the alternative to its "
        "[Session Trace Simple Format](https://huggingface.co/docs/hub/session-traces-format)"
    ),
}

_CARD = """# Agent traces

{files} agent sessions to look at in the Hub's trace viewer, one a file. To train on them, or to
query them, take {main}: it holds the same trajectories with all that is known of them.

| data set | sessions |
| --- | ---: |
{rows}

The sessions are under `{folder}/`, in {form}.

```python
from datasets import load_dataset  # needs: pip install datasets teich

sessions = load_dataset("{repo}", split="train")
```
"""
