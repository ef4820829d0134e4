"""Writing a store from other stores: shards by workers, noted one by one, the manifest last.

Each shard that is done is noted under ``.run`` in the new store's folder. When the run is
stopped, the same call goes on where it stopped. The manifest comes last, so a folder without one
is no store yet. Which shards there are follows from the inputs, never from the workers, so any
number of workers writes the same bytes.
"""

from __future__ import annotations

import contextlib
import functools
import json
import platform
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from adp.core.progress import Progress
from adp.stores.stage import StagePart, run_stage
from adp.version import __version__
from adp_schema.errors import OutputExistsError
from adp_schema.journal import GROWING
from adp_schema.location import check_local
from adp_schema.manifest import MANIFEST, RUN, Manifest, Shard, write_atomic
from adp_schema.tables import TABLES
from adp_schema.unfinished import CALL, PLAN, note_call
from adp_schema.writer import ShardWriter, place, shard_scratch, writer_options

RUN_FOLDER = ".run"
"""The folder of an output that holds what only its run needs."""

_plans_stay: ContextVar[bool] = ContextVar("plans_stay", default=False)


@contextmanager
def keeping_plans() -> Iterator[None]:
    """Let finished runs keep their plan: called again, they see that all is done."""
    token = _plans_stay.set(True)
    try:
        yield
    finally:
        _plans_stay.reset(token)


_GONE = ".gone"
"""End of the names of folders that are being removed."""


class StageResult(Protocol):
    """What became of a shard; its text is noted until the manifest is written."""

    index: int

    def text(self) -> str:
        """As JSON."""
        ...


AnyJob = TypeVar("AnyJob", bound=StagePart)
AnyResult = TypeVar("AnyResult", bound=StageResult)


@dataclass
class WrittenShard:
    """A shard that is done.

    Attributes:
        index: its number.
        tables: table -> its file.
        facts: what else the worker found out; plain JSON.
    """

    index: int
    tables: dict[str, Shard]
    facts: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """As JSON."""
        tables = {name: shard.model_dump() for name, shard in self.tables.items()}
        return json.dumps({"index": self.index, "tables": tables, "facts": self.facts})

    @classmethod
    def parse(cls, text: str) -> WrittenShard:
        """The inverse of `text`."""
        plain = json.loads(text)
        tables = {name: Shard(**shard) for name, shard in plain["tables"].items()}
        return cls(plain["index"], tables, plain["facts"])


class StagedRun:
    """A run that writes a new store, or goes on with one that was stopped.

    Args:
        out: folder of the new store; it must not hold anything else.
        key: what this call must have in common with the one that was stopped; plain JSON.
        workers: number of processes; None takes one a core.

    Attributes:
        folder: folder of the new store.
        scratch: folder for files that only the run needs.
        key: what was given.
        workers: what was given.
        finished: the manifest, when the run was stopped after all its work was done.

    Raises:
        OutputExistsError: the output holds a store, or something that is none.
        UsageError: the output is a URL.
    """

    def __init__(self, out: str, key: dict[str, Any], workers: int | None) -> None:
        check_local(out)
        self.folder = Path(out)
        self.scratch = self.folder / RUN_FOLDER
        self.finished: Manifest | None = None
        self.key = key
        self._plan = self.scratch / PLAN
        self.workers = workers
        self._started = time.time()
        text = json.dumps(key, sort_keys=True)
        noted = self._plan.read_text(encoding="utf-8") if self._plan.exists() else None
        if noted == text and (self.folder / MANIFEST).exists():
            manifest = (self.folder / MANIFEST).read_text(encoding="utf-8")
            self.finished = Manifest.model_validate_json(manifest)
            self._forget_plan()
            return
        check_free(self.folder)
        if noted is not None and noted != text:
            raise OutputExistsError(
                f"{out} holds a stopped run with other inputs or options; "
                "remove it or choose another -o"
            )
        try:
            self.scratch.mkdir(parents=True, exist_ok=True)
            write_atomic(self._plan, text)
            note_call(self.scratch)
        except OSError as error:
            raise OutputExistsError(f"cannot write to {out}: {error.strerror}") from error

    def shards(
        self,
        jobs: Iterable[AnyJob],
        work: Callable[[AnyJob], AnyResult],
        parse: Callable[[str], AnyResult],
        report: Progress,
        *,
        total: int | None = None,
    ) -> list[AnyResult]:
        """Do the jobs that are not done yet, and return what all of them wrote, in order.

        Args:
            jobs: one a shard; a list, or one after another as there is room.
            work: does a job; called in another process when there are several workers.
            parse: the inverse of the result's `text`.
            report: told how far it is, in bytes.
            total: bytes of all jobs, when they are no list.
        """
        notes = self.scratch.glob("shard-*.json")
        noted_before = (parse(path.read_text(encoding="utf-8")) for path in notes)
        known = {result.index: result for result in noted_before}

        def noted(job: AnyJob, result: AnyResult) -> None:
            write_atomic(self._note(job.index), result.text())

        return run_stage(
            jobs, work, self.workers, report,
            total=total, folder=self.scratch, known=known, done=noted,
        )  # fmt: skip

    def is_done(self, index: int) -> bool:
        """Whether a shard is done, by this run or by the one that was stopped."""
        return self._note(index).exists()

    def _note(self, index: int) -> Path:
        return self.scratch / f"shard-{index:05d}.json"

    def lookup(self, name: str, columns: dict[str, pa.Array]) -> str:
        """Write a table that the workers look things up in; return its path."""
        path = self.scratch / f"{name}.parquet"
        staged = path.with_suffix(".tmp")
        pq.write_table(pa.table(columns), staged)
        staged.replace(path)
        return str(path)

    def sources(self, rows: pa.Table) -> list[Shard]:
        """Write the table of input files."""
        staged = self.scratch / "sources.parquet"
        pq.write_table(rows, staged, **writer_options(TABLES["sources"]))
        return [place(staged, self.folder, "sources", 0, rows.num_rows)]

    def drop(self) -> None:
        """Remove what the run made, when nothing is worth going on with."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def finish(self, manifest: Manifest, text: str | None = None) -> None:
        """Write the manifest and remove what only the run needed.

        Args:
            manifest: the manifest.
            text: its text, when that must stay as it came.
        """
        facts = {
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._started)),
            "seconds": round(time.time() - self._started, 3),
            "host": platform.node(),
            "python": sys.version.split()[0],
            "workers": self.workers,
        }
        write_atomic(self.folder / RUN, json.dumps(facts, indent=2) + "\n")
        # Before the manifest: a store that counts as finished must not keep the lookups, which
        # may name what was left out. The plan stays until the end, to recognise this run by.
        self._clear()
        write_atomic(self.folder / MANIFEST, text or manifest.text())
        self._forget_plan()

    def end(self) -> None:
        """Remove what only the run needed, when there is no manifest to write."""
        self._clear()
        self._forget_plan()

    def _forget_plan(self) -> None:
        if not _plans_stay.get():
            _remove(self.scratch)

    def _clear(self) -> None:
        """Remove all scratch files but plan and call: a run that is stopped here can go on."""
        for path in self.scratch.iterdir():
            if path.is_dir():
                # A folder that is half removed must not be taken for one that is whole.
                gone = path.with_name(f"{path.name.removesuffix(_GONE)}{_GONE}")
                if gone != path:
                    shutil.rmtree(gone, ignore_errors=True)
                    path.replace(gone)
                shutil.rmtree(gone, ignore_errors=True)
            elif path.name not in (PLAN, CALL):
                path.unlink(missing_ok=True)  # the rest of a stopped removal went with its folder


def _remove(folder: Path) -> None:
    """Remove a folder, also while a worker that was thought dead writes into it for a moment."""
    for seconds in (0.1, 0.3, 1.0):
        try:
            shutil.rmtree(folder)
            return
        except OSError:
            time.sleep(seconds)
    if folder.exists():
        shutil.rmtree(folder)


def check_free(folder: Path) -> None:
    """Check that a new store may be written to a folder, or a stopped run go on in it.

    Raises:
        OutputExistsError: it holds a store, or something that is none.
    """
    if (folder / MANIFEST).exists():
        raise OutputExistsError(
            f"{folder} holds a store already; choose another -o or remove it first"
        )
    if (folder / GROWING).exists():
        raise OutputExistsError(
            f"{folder} is a growing store, which only adp.grow adds to; choose another -o"
        )
    if folder.exists() and not folder.is_dir():
        raise OutputExistsError(f"{folder} is a file; choose a folder for -o")
    if (folder / "curation" / "report.json").exists() and not (folder / ".run").exists():
        raise OutputExistsError(
            f"{folder} holds a finished curation already; choose another -o or remove it first"
        )
    stopped = (folder / ".run" / "plan.json").exists()
    if folder.exists() and not stopped and any(path.name != ".run" for path in folder.iterdir()):
        raise OutputExistsError(f"{folder} is not empty and is no store; choose another -o")


def write_rows(
    out: str, index: int, rows: Iterable[tuple[str, pa.Table]], *, target: int | None = None
) -> dict[str, Shard]:
    """Write a shard, put its files into the new store, and describe them.

    Args:
        out: folder of the store.
        index: number of the job that makes the shard.
        rows: table and row group, table by table.
        target: number of the shard in the store, when it is another one.
    """
    writer = ShardWriter(shard_scratch(Path(out), index))
    for table, group in rows:
        writer.write(table, group)
    number = index if target is None else target
    tables = {}
    for table in writer.close():
        staged = writer.folder / f"{table}.parquet"
        tables[table] = place(staged, Path(out), table, number, writer.rows.get(table, 0))
    shutil.rmtree(writer.folder)
    return tables


def tables_of(written: Iterable[WrittenShard]) -> dict[str, list[Shard]]:
    """The files of shards, for the manifest: table -> files."""
    tables: dict[str, list[Shard]] = {}
    for shard in written:
        for table, file in shard.tables.items():
            tables.setdefault(table, []).append(file)
    return tables


def counted(written: Iterable[WrittenShard], fact: str) -> Counter[str]:
    """The sum of what the workers counted under one name."""
    total: Counter[str] = Counter()
    for shard in written:
        total.update(shard.facts[fact])
    return total


def versions(*packages: str) -> dict[str, str]:
    """Versions that the bytes of a store depend on: adp, pyarrow, the packages that are there."""
    used = {name: _version(name) for name in ("pyarrow", *packages)}
    return {"adp": __version__, **{name: text for name, text in used.items() if text is not None}}


@functools.cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
