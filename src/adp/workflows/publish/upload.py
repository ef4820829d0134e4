"""Bringing a folder to the Hugging Face Hub, so that a stop at any moment does no harm.

What the Hub has is looked at first; only what differs is uploaded and committed. So a call that
was stopped goes on when it is made again, and one with nothing new makes no commit.

- Large files are uploaded some at a time, before the commit that names them. The Hub keeps them,
  and says so when it is asked again.
- A folder of usual size is one commit: a reader sees the old publication or the new one. A larger
  one takes several. The last one brings README, metadata and manifest. When it replaces an
  earlier publication, the first one removes the manifest of that, so that nobody takes half of
  each for a store.
- Each commit names the one before it. When somebody else commits meanwhile, or the answer to a
  commit gets lost, the Hub refuses, and what it has is looked at anew.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from adp.core.progress import Progress, Silent
from adp.workflows.publish.check import check_tag, check_token, is_there
from adp.workflows.publish.local import LocalFile, groups, scan
from adp_schema import hub
from adp_schema.errors import HubError, OutputExistsError
from adp_schema.hub import HubFile, HubPath
from adp_schema.manifest import MANIFEST
from adp_schema.retries import TRIES, retried, status_of, transient, wait

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

COMMIT_FILES = 250
"""Files of a commit, but for the last one's few. The Hub gives up on much larger ones."""

COMMIT_BYTES = 64 << 20
"""Bytes of a commit that lie in it, not in large objects."""

SEND_FILES, SEND_BYTES = 64, 256 << 20
"""What is uploaded before progress is told."""

LAST = ("README.md", "croissant.json", "SHA256SUMS", f"store/{MANIFEST}", MANIFEST)
"""What is committed last: without these, nobody takes the repository for a publication."""

OWNED = re.compile(
    rf"store/{re.escape(MANIFEST)}|store/[a-z_]+/part-\d+\.parquet"
    r"|messages/\w+-\d+\.parquet|croissant\.json|SHA256SUMS|traces/.+\.jsonl"
)
"""What an earlier publication wrote, and a new one removes when it has no such file. Everything
else in the repository belongs to people."""


@dataclass(frozen=True)
class Uploaded:
    """A folder that is on the Hub.

    Attributes:
        repo_id: ``OWNER/NAME``.
        url: its page.
        commit: hash of the commit that holds the folder.
        tag: name of that commit, if one was asked for.
        files: files of the folder.
        bytes: their bytes.
        commits: commits that this call made; 0 when all was there.
        sent: files that this call committed.
        deleted: files of an earlier publication that this call removed.
    """

    repo_id: str
    url: str
    commit: str
    tag: str | None
    files: int
    bytes: int
    commits: int
    sent: int
    deleted: int


class _Commit(NamedTuple):
    """What one commit is to do: files to add, and paths to remove."""

    files: list[LocalFile]
    gone: list[str]


def upload(
    folder: str | os.PathLike[str],
    repo_id: str,
    *,
    private: bool = False,
    tag: str | None = None,
    message: str | None = None,
    progress: Progress | None = None,
) -> Uploaded:
    """Bring a folder to a data set repository on the Hub.

    The repository is made when it is missing. Call it again when it was stopped: nothing that is
    there is uploaded or committed twice. Files that people added to the repository stay.

    Args:
        folder: what is uploaded: what its ``SHA256SUMS`` lists. Without such a file all of it,
            but for hidden files and ``run.json``.
        repo_id: ``OWNER/NAME``.
        private: make the repository private; one that is there keeps what it is.
        tag: a name for the commit. When it is taken, the folder must be what it names.
        message: title of the commits.
        progress: told how far it is, in bytes.

    Raises:
        UsageError: the name is not valid, or the repository is public and ``private`` was asked.
        InputError: the folder is missing or empty.
        OutputExistsError: the tag names something else, or the folder holds something that is
            not in its list.
        HubError: the Hub refuses, or cannot be reached. What is done is kept.
    """
    place = HubPath(hub.check_repo_id(repo_id))
    check_tag(tag)
    local = scan(Path(folder))
    report = progress or Silent()
    check_token()
    with hub.quiet(report.note):
        return _Upload(place, local, message or "Publish with adp", report).run(private, tag)


class _Upload:
    """One call of `upload`.

    Attributes:
        commits: commits that it made.
        sent: files in them.
        deleted: files that they removed.
        unsure: files of a commit that may have been made: there was no answer.
        announced: files that progress was told of.
    """

    def __init__(
        self, place: HubPath, local: dict[str, LocalFile], message: str, report: Progress
    ) -> None:
        self._place = place
        self._local = local
        self._message = message
        self._report = report
        self._api = hub.client()
        self.commits = 0
        self.sent: set[str] = set()
        self.deleted: set[str] = set()
        self.unsure: list[str] | None = None
        self.announced: set[str] = set()

    def run(self, private: bool, tag: str | None) -> Uploaded:
        """Do all of it."""
        with hub.explained(self._place, writing=True):
            self._open(private)
            self._report.total(sum(file.size for file in self._local.values()))
            commit = self._tagged(tag) if tag else None
            if commit is None:
                commit = self._complete()
                if tag:
                    self._tag(tag, commit)
        return Uploaded(
            repo_id=self._place.repo_id,
            url=f"{self._api.endpoint}/datasets/{self._place.repo_id}",
            commit=commit,
            tag=tag,
            files=len(self._local),
            bytes=sum(file.size for file in self._local.values()),
            commits=self.commits,
            sent=len(self.sent),
            deleted=len(self.deleted),
        )

    def _open(self, private: bool) -> None:
        """Find the repository, or make it."""
        repo = self._place.repo_id
        if not is_there(self._api, repo, private):
            retried(
                lambda: self._api.create_repo(
                    repo, repo_type="dataset", private=private, exist_ok=True
                )
            )

    def _complete(self) -> str:
        """Upload and commit until the Hub has all; return the commit that does.

        A round begins with what the Hub has. One that fails in the middle, or that somebody
        else's commit comes before, is followed by another one.
        """
        failures = 0
        text: str | None = None
        while True:
            before = self.commits
            try:
                # After a commit of our own, that one: a branch may be told late.
                now = self._place.with_revision(text) if text else hub.resolve(self._place)
                work = self._plan(hub.files(now))
                paths = {file.path for commit in work for file in commit.files}
                self._count_unsure(paths)
                if not work:
                    return str(now.revision)
                if text:
                    raise HubError(_not_kept(self._place.repo_id, paths))
                text = self._perform(work, str(now.revision))
                failures = 0
            except Exception as error:
                text = None
                failures = 1 if self.commits > before else failures + 1
                behind = status_of(error) == 412
                if behind:
                    self.unsure = None
                if failures > TRIES or not (behind or transient(error)):
                    raise
                wait(error, failures)

    def _count_unsure(self, missing: set[str]) -> None:
        """Count the commit whose answer was lost, if the Hub made it."""
        unsure, self.unsure = self.unsure, None
        if unsure is not None and not set(unsure) & missing:
            self.commits += 1
            self.sent.update(unsure)

    def _plan(self, there: dict[str, HubFile]) -> list[_Commit]:
        """What is to be done, given what the Hub has."""
        missing = [file for path, file in self._local.items() if not file.same(there.get(path))]
        for file in self._local.values():
            if file not in missing:
                self._tell(file)
        stale = sorted(path for path in there if OWNED.fullmatch(path) and path not in self._local)
        data = [file for file in missing if file.path not in LAST]
        last = [file for file in missing if file.path in LAST]
        if not missing and not stale:
            return []
        parts = list(groups(data, COMMIT_FILES, COMMIT_BYTES, small=True))
        if len(parts) > 1:
            # Until the last commit, the manifest would be that of other files.
            changed = {file.path for file in last}
            first = [path for path in LAST if path in there and path.endswith(MANIFEST)]
            first = [path for path in first if path in changed or path not in self._local]
            rest = [path for path in stale if path not in first]
            return [
                _Commit(parts[0], first),
                *(_Commit(part, []) for part in parts[1:]),
                _Commit(last, rest),
            ]
        return [_Commit([*(parts[0] if parts else []), *last], stale)]

    def _perform(self, work: list[_Commit], parent: str) -> str:
        """Upload and make the commits, one after the other; return the last one."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        for number, (part, gone) in enumerate(work, start=1):
            operations: list[CommitOperationAdd | CommitOperationDelete] = [
                CommitOperationDelete(path) for path in gone
            ]
            for group in groups(part, SEND_FILES, SEND_BYTES):
                additions = [CommitOperationAdd(entry.path, str(entry.file)) for entry in group]
                self._send(additions)
                operations += additions
                for item in group:
                    self._tell(item)
            if not operations:
                continue
            paths = [entry.path for entry in part]
            self.unsure = paths
            numbered = f" (part {number} of {len(work)})" if len(work) > 1 else ""
            parent = self._api.create_commit(
                self._place.repo_id,
                operations,
                commit_message=f"{self._message}{numbered}",
                repo_type="dataset",
                parent_commit=parent,
            ).oid
            self.unsure = None
            self.commits += 1
            self.sent.update(paths)
            self.deleted.update(path for path in gone if path not in self._local)
        return parent

    def _send(self, additions: list[CommitOperationAdd]) -> None:
        """Upload those files that are large objects; the Hub says which."""
        retried(
            lambda: self._api.preupload_lfs_files(
                self._place.repo_id, additions, repo_type="dataset", free_memory=False
            )
        )

    def _tell(self, file: LocalFile) -> None:
        if file.path not in self.announced:
            self.announced.add(file.path)
            self._report.advance(file.size)

    def _tagged(self, tag: str) -> str | None:
        """The commit of a tag that names this very folder; None when there is no such tag.

        Raises:
            OutputExistsError: it names something else.
        """
        from huggingface_hub.errors import RevisionNotFoundError

        repo = self._place.repo_id
        try:
            result = retried(lambda: self._api.repo_info(repo, revision=tag, repo_type="dataset"))
        except RevisionNotFoundError:
            return None
        if self._plan(hub.files(HubPath(repo, result.sha))):
            raise OutputExistsError(
                f"{repo} has a revision '{tag}' already, with other contents; choose another tag"
            )
        return str(result.sha)

    def _tag(self, tag: str, commit: str) -> None:
        """Name the commit. A tag is a promise, so one that is taken is never moved."""
        repo = self._place.repo_id
        retried(
            lambda: self._api.create_tag(
                repo, tag=tag, revision=commit, repo_type="dataset", exist_ok=True
            )
        )
        result = retried(lambda: self._api.repo_info(repo, revision=tag, repo_type="dataset"))
        if result.sha != commit:
            raise OutputExistsError(
                f"somebody else gave the name '{tag}' to another commit of {repo} just now; "
                "choose another tag"
            )


def _not_kept(repo: str, left: set[str]) -> str:
    return (
        f"the Hub takes {min(left, default='the changes')} but does not have it afterwards; look "
        f"whether a .gitignore in {repo} names it"
    )
