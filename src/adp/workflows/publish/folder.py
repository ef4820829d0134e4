"""The folder that is uploaded: a store, rows for training, a data card and Croissant metadata.

    store/        the store, redacted; without the tables raw and rejects
    messages/     the config messages, made from that store
    README.md     the data card
    croissant.json
    SHA256SUMS    hashes of all other files, written last

The same store, options and package versions give the same bytes. A stopped call goes on when it
is made again; ``.run`` holds what it needs for that, and is not uploaded.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from adp.core.progress import Progress, Silent
from adp.stores import shards
from adp.stores.composition import CompositionOptions, composition
from adp.stores.licenses import assess
from adp.stores.locks import alone
from adp.stores.redact import redact
from adp.stores.staged import versions
from adp.workflows.publish import findings, staged_store
from adp.workflows.publish.card import Facts, write_card
from adp.workflows.publish.checksums import (
    SCRATCH,
    SUMS,
    Sum,
    check_names,
    check_sums,
    read_sums,
    write_sums,
)
from adp.workflows.publish.configs import STORE, configs_of
from adp.workflows.publish.croissant import write_croissant
from adp.workflows.publish.findings import StoreFindings
from adp.workflows.publish.messages import FOLDER, Messages, write_messages
from adp.workflows.publish.options import PublishOptions, license_error, title_line
from adp.workflows.publish.repo import TRACES, RepoId
from adp_schema.errors import OutputExistsError, StoreError
from adp_schema.manifest import MANIFEST, RUN, write_atomic
from adp_schema.store import Store
from adp_schema.unfinished import note_call
from adp_schema.verification import verified

CARD, CROISSANT = "README.md", "croissant.json"


@dataclass
class Prepared(Facts):
    """A folder that is ready to be uploaded, and what its card says.

    Attributes:
        folder: the folder.
        reused: whether all of it was there already.
        files: what is to be uploaded, with sizes and hashes, in the order of their paths.
    """

    folder: Path
    reused: bool
    files: list[Sum] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


@alone
def prepare(
    path: str,
    repo: RepoId,
    out: Path,
    options: PublishOptions | None = None,
    progress: Progress | None = None,
) -> Prepared:
    """Write the folder that is uploaded, or take it as it is when it is there.

    Args:
        path: path or URL of a finished store.
        repo: where it will go.
        out: the folder; it must not hold anything else.
        options: how to publish.
        progress: told how far it is.

    Raises:
        StoreError: there is no finished store, it is damaged, or it holds no trajectories.
        FindingsError: a license, a secret or personal data stands in the way.
        OutputExistsError: the folder holds something else.
    """
    return _Folder(path, repo, out, options or PublishOptions(), progress or Silent()).prepare()


STAGED_PLAN = "plan.json.tmp"
"""What a call that is stopped while it writes its plan may leave of it."""


class _Folder:
    """One publication."""

    def __init__(
        self, path: str, repo: RepoId, out: Path, options: PublishOptions, progress: Progress
    ) -> None:
        self.source = shards.open_finished(path)
        self.repo = repo
        self.out = out
        self.options = options
        self.progress = progress
        self.search = replace(options.search, workers=options.workers)
        self.scratch = out / SCRATCH
        self.about, self.in_about = self._about()
        if not self.source.manifest.rows("trajectories"):
            raise StoreError(f"{path} holds no trajectories; there is nothing to publish")

    def prepare(self) -> Prepared:
        """Do what is not done yet."""
        before = assess(self.source, self.options.license)
        if before.refused() and not self.options.accept_licenses:
            raise license_error(before, self.options.license)
        self._begin()
        self._check_files()
        store, in_store = self._store()
        result = in_store.plus(self.in_about)
        reused = (self.out / SUMS).exists()
        messages = self._messages(store)
        prepared = Prepared(
            folder=self.out,
            repo=self.repo,
            title=title_line(self.options.title) or self.repo.name,
            tag=self.options.tag,
            date=self.options.date,
            license=self.options.license,
            configs=configs_of(self.out, store, messages.files),
            assessment=assess(store, self.options.license),  # names may have been redacted
            findings=result,
            redacted=self._redacts(result),
            composition=composition(store, CompositionOptions(name=self.repo.name)),
            manifest_hash=shards.manifest_hash(store),
            losses=messages.losses,
            left_out=self._left_out(),
            about=self.about,
            traces=f"{self.repo}{TRACES}" if self.options.traces else None,
            reused=reused,
        )
        if not reused:
            self._describe(prepared, messages)
        check_names(self.out)
        prepared.files = read_sums(self.out)
        return prepared

    def _about(self) -> tuple[str | None, StoreFindings]:
        """The text of the publisher as it is published, and what was found in it."""
        text = self.options.about
        if text is None:
            return None, StoreFindings({})
        cleaned, result = findings.in_text(text, self.options.search)
        if result.total and not (self.options.redact or self.options.allow_findings):
            raise findings.stop_text(result)
        return (cleaned if self._redacts(result) else text).strip(), result

    def _begin(self) -> None:
        """Take the folder, or go on with what an earlier call made of the same store.

        Raises:
            OutputExistsError: it holds something else.
        """
        if self.out.exists() and not self.out.is_dir():
            raise OutputExistsError(f"{self.out} is a file; choose a folder for --out")
        plan = self.scratch / "plan.json"
        known = json.loads(plan.read_text(encoding="utf-8")) if plan.exists() else None
        held = {path.name for path in self.out.iterdir()} if self.out.exists() else set()
        if held == {SCRATCH} and {path.name for path in self.scratch.iterdir()} <= {STAGED_PLAN}:
            held = set()  # a call was stopped before it could say what it does
        if (known is None and held) or (known is not None and "content" not in known):
            raise OutputExistsError(f"{self.out} is not empty; choose another --out")
        content, words = self._keys()
        if known is not None and known["content"] != content:
            if held != {SCRATCH}:
                raise OutputExistsError(
                    f"{self.out} holds what was made from another store, or with other --kinds, "
                    "--rules, --all-tables or versions; remove it or choose another --out"
                )
            # A call that was stopped by what it found: nothing of it is of use.
            self._remove(SCRATCH)
            known = None
        if (self.out / SUMS).exists():
            self.progress.note("checking the files of the folder")
            check_sums(self.out)
        try:
            if known is not None and known["words"] != words:
                self._remove(SUMS, CARD, CROISSANT)
            self.scratch.mkdir(parents=True, exist_ok=True)
            write_atomic(plan, json.dumps({"content": content, "words": words}))
            note_call(self.scratch)
        except OSError as error:
            raise OutputExistsError(f"cannot write to {self.out}: {error.strerror}") from error

    def _keys(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the data depend on, and what only the data card and the metadata do."""
        content = {
            "store": shards.manifest_hash(self.source),
            "all_tables": self.options.all_tables,
            "search": self.options.search.fingerprint(),
            "versions": versions("duckdb", "msgspec", "datasets"),
        }
        names = ("title", "license", "tag", "date", "about", "traces")
        words = {name: getattr(self.options, name) for name in names}
        if self.options.about is not None:
            words["allow_findings"] = self.options.allow_findings
            words["redact"] = self.options.redact
        return content, {**words, "repo": str(self.repo)}

    def _remove(self, *names: str) -> None:
        """Remove files and folders that this program made."""
        for name in names:
            path = self.out / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def _check_files(self) -> None:
        """Check the files of the store against its manifest.

        Raises:
            DamagedStoreError: they differ.
        """
        self.progress.note("checking the files of the store")
        with verified():
            self.source.check()

    # ---- the store -------------------------------------------------------------------------

    def _store(self) -> tuple[Store, StoreFindings]:
        """The store that is published, and what was found in it before."""
        noted = self.scratch / "findings.json"
        kept, target = self.scratch / "kept", self.out / STORE
        if not noted.exists():
            staged_store.stage(self.source, kept, all_tables=self.options.all_tables)
            self.progress.note("looking for secrets and personal data")
            store_findings = findings.scan(Store.open(str(kept)), self.search, self.progress)
            write_atomic(noted, json.dumps(asdict(store_findings)))
        noted_state = json.loads(noted.read_text(encoding="utf-8"))
        store_findings = StoreFindings(noted_state["kinds"], tuple(noted_state["places"]))
        if store_findings.total and not (self.options.redact or self.options.allow_findings):
            raise findings.stop(store_findings)
        wanted = self._redacts(store_findings)
        placed = self.scratch / "placed.json"
        state = json.loads(placed.read_text(encoding="utf-8")) if placed.exists() else None
        if state is not None and state["redacted"] != wanted:
            # Begun with another answer to the findings: what hangs from it goes too.
            self._remove(SUMS, CARD, CROISSANT, FOLDER, STORE, f"{SCRATCH}/messages.json")
            state = None
        if state is None or not state["done"]:
            write_atomic(placed, json.dumps({"redacted": wanted, "done": False}))
            staged_store.stage(self.source, kept, all_tables=self.options.all_tables)
            self._place_store(kept, target, store_findings)
            write_atomic(placed, json.dumps({"redacted": wanted, "done": True}))
            self._remove(f"{SCRATCH}/kept")
        return Store.open(str(target)), store_findings

    def _redacts(self, store_findings: StoreFindings) -> bool:
        return bool(store_findings.total) and self.options.redact

    def _place_store(self, kept: Path, target: Path, store_findings: StoreFindings) -> None:
        """Put the store in its place, or write it there without what was found."""
        if not self._redacts(store_findings):
            staged_store.stage(Store.open(str(kept)), target, all_tables=True, link=False)
            return
        if not (target / MANIFEST).exists() or (target / SCRATCH).exists():
            self.progress.note("replacing what was found")
            redact(Store.open(str(kept)), str(target), self.search, self.progress)
        (target / RUN).unlink(missing_ok=True)  # names the host

    # ---- what stands beside it ---------------------------------------------------------------

    def _messages(self, store: Store) -> Messages:
        noted = self.scratch / "messages.json"
        if noted.exists():
            done = Messages.parse(noted.read_text(encoding="utf-8"))
            if all((self.out / file.path).is_file() for file in done.files):
                return done
        self.progress.note("writing the rows for training")
        messages = write_messages(
            store, self.out, workers=self.options.workers, progress=self.progress
        )
        write_atomic(noted, messages.text())
        self._remove(f"{SCRATCH}/{FOLDER}")
        return messages

    def _describe(self, prepared: Prepared, messages: Messages) -> None:
        """Write the data card, the metadata and the hashes."""
        self.progress.note("writing the data card")
        tables = Store.open(str(self.out / STORE), check=False).manifest.tables.values()
        # By name: what somebody else put there must not be taken for ours.
        names = [f"{STORE}/{shard.path}" for table in tables for shard in table]
        names += [f"{STORE}/{MANIFEST}", *(file.path for file in messages.files)]
        data = write_sums(self.out, names, last=False)
        write_croissant(self.out / CROISSANT, prepared, data)
        write_card(self.out / CARD, prepared)
        write_sums(self.out, [*names, CARD, CROISSANT], last=True)

    def _left_out(self) -> list[str]:
        if self.options.all_tables:
            return []
        return [name for name in staged_store.LEFT_OUT if self.source.manifest.rows(name)]


def facts_of_folder(prepared: Prepared) -> dict[str, Any]:
    """What a program wants to know about a folder."""
    return {
        "repo": str(prepared.repo),
        "folder": str(prepared.folder),
        "reused": prepared.reused,
        "manifest_hash": prepared.manifest_hash,
        "files": [asdict(file) for file in prepared.files],
        "bytes": prepared.size,
        "configs": {config.name: config.as_json() for config in prepared.configs},
        "licenses": [asdict(row) for row in prepared.assessment.rows],
        "findings": prepared.findings.kinds,
        "redacted": prepared.redacted,
        "not_in_messages": prepared.losses,
    }
