"""The contents of a local Hub: repositories with commits, branches and tags, and large objects."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

ATTRIBUTES = b"*.parquet filter=lfs diff=lfs merge=lfs -text\n"
LFS_SUFFIXES = (".parquet", ".safetensors", ".gz", ".zip", ".zst", ".png", ".jpg", ".bin")
LFS_BYTES = 10 << 20
"""Larger files are LFS objects, whatever their name; so it is on the Hub."""


MODELS = "models/"
"""What the key of a model begins with."""


def repo_key(repo_id: str, kind: str | None) -> str:
    """The key of a repository: a data set is kept by its name alone."""
    return repo_id if kind == "datasets" else f"{MODELS}{repo_id}"


class HubRefusal(Exception):
    """An answer other than 2xx.

    Args:
        status: HTTP status.
        message: what the Hub says.
        code: its ``X-Error-Code``.
    """

    def __init__(self, status: int, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True)
class Entry:
    """A file of a commit: its bytes, or the LFS object that it points to."""

    oid: str
    size: int
    data: bytes | None = None
    lfs: str | None = None

    @property
    def etag(self) -> str:
        """What identifies the content."""
        return self.lfs or self.oid


@dataclass
class Commit:
    """One commit of a repository."""

    oid: str
    parent: str | None
    title: str
    files: dict[str, Entry]
    changed: list[str] = field(default_factory=list)


@dataclass
class Repo:
    """A repository."""

    id: str
    private: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def head(self) -> Commit:
        """The newest commit of main."""
        return self.commits[self.branches["main"]]

    def history(self) -> list[Commit]:
        """The commits of main, the newest first, without the first one, which the Hub makes."""
        history = []
        commit = self.head
        while commit.parent is not None:
            history.append(commit)
            commit = self.commits[commit.parent]
        return history

    def at(self, revision: str) -> Commit:
        """The commit that a branch, a tag or a hash names."""
        oid = self.branches.get(revision) or self.tags.get(revision) or revision
        if oid not in self.commits:
            raise HubRefusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return self.commits[oid]

    def add(self, title: str, files: dict[str, Entry], changed: list[str]) -> Commit:
        """Put a commit on main."""
        parent = self.branches.get("main")
        named = "".join(f"{path}\0{files[path].etag}\n" for path in sorted(files))
        seed = f"{parent}\0{title}\0{len(self.commits)}\0{named}"
        oid = hashlib.sha1(seed.encode()).hexdigest()
        commit = Commit(oid, parent, title, files, changed)
        self.commits[oid] = commit
        self.branches["main"] = oid
        return commit


def git_entry(data: bytes) -> Entry:
    """A file that git holds itself."""
    oid = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    return Entry(oid, len(data), data)


def lfs_entry(sha256: str, size: int) -> Entry:
    """A file that git holds a pointer of."""
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n"
    return Entry(git_entry(pointer.encode()).oid, size, lfs=sha256)


class Repos:
    """All that a local Hub keeps.

    Attributes:
        tokens: token -> (user, organisations that the user may write to).
        objects: sha256 -> bytes of the LFS objects.
        ignored: paths that the Hub leaves out of commits, as a .gitignore says.
        stored: how often each object was received whole.
        read_only: tokens that may only read.
        lock: held while something changes.
    """

    def __init__(self) -> None:
        self.tokens: dict[str, tuple[str, set[str]]] = {}
        self.read_only: set[str] = set()
        self.ignored: set[str] = set()
        self.repos: dict[str, Repo] = {}
        self.objects: dict[str, bytes] = {}
        self.stored: Counter[str] = Counter()
        self.parts: dict[str, dict[int, bytes]] = {}
        self.lock = threading.RLock()

    def user(self, token: str | None) -> str:
        """Who a token belongs to."""
        if token not in self.tokens:
            raise HubRefusal(401, "Invalid username or password.")
        return self.tokens[token][0]

    def may_write(self, token: str | None, owner: str) -> bool:
        """Whether a token may write to the repositories of an owner."""
        if token not in self.tokens or token in self.read_only:
            return False
        user, others = self.tokens[token]
        return owner == user or owner in others

    def create(
        self,
        token: str | None,
        owner: str | None,
        name: str,
        private: bool,
        kind: str = "datasets",
    ) -> Repo:
        """Create a repository with the commit that each one begins with."""
        user = self.user(token)
        owner = owner or user
        if not self.may_write(token, owner):
            raise HubRefusal(
                403,
                f'You don\'t have the rights to create a dataset under the namespace "{owner}"',
            )
        key = repo_key(f"{owner}/{name}", kind)
        if key in self.repos:
            raise HubRefusal(409, f"You already created this {kind.removesuffix('s')} repo")
        repo = self.repos[key] = Repo(f"{owner}/{name}", private)
        repo.add("initial commit", {".gitattributes": git_entry(ATTRIBUTES)}, [".gitattributes"])
        return repo

    def find(self, repo_id: str, token: str | None, *, write: bool = False) -> Repo:
        """A repository that a token may see, or write to."""
        repo = self.repos.get(repo_id)
        owner = repo_id.removeprefix(MODELS).split("/")[0]
        seen = repo is not None and (not repo.private or self.may_read(token, owner))
        if repo is None or not seen:
            # Without a token the Hub does not tell whether the repository is missing or private.
            status = 404 if token in self.tokens else 401
            raise HubRefusal(status, "Repository not found", "RepoNotFound")
        if write and token not in self.tokens:
            raise HubRefusal(401, "Invalid username or password.")
        if write and not self.may_write(token, owner):
            raise HubRefusal(403, "Forbidden: you don't have the necessary permissions")
        return repo

    def may_read(self, token: str | None, owner: str) -> bool:
        """Whether a token may read the private repositories of an owner."""
        if token not in self.tokens:
            return False
        user, others = self.tokens[token]
        return owner == user or owner in others

    def data(self, entry: Entry) -> bytes:
        """The bytes of a file."""
        return entry.data if entry.data is not None else self.objects[entry.lfs or ""]

    def files(self, repo_id: str, revision: str = "main") -> dict[str, bytes]:
        """All files of a revision, but for the one that each repository begins with."""
        commit = self.repos[repo_id].at(revision)
        return {
            path: self.data(entry)
            for path, entry in commit.files.items()
            if path != ".gitattributes"
        }

    def push(
        self, repo_id: str, files: dict[str, bytes], title: str = "by hand", deleted: Any = ()
    ) -> Commit:
        """Commit files as somebody else would; the repository is made when it is missing."""
        with self.lock:
            if repo_id not in self.repos:
                repo = self.repos[repo_id] = Repo(repo_id)
                start = {".gitattributes": git_entry(ATTRIBUTES)}
                repo.add("initial commit", start, [".gitattributes"])
            repo = self.repos[repo_id]
            entries = dict(repo.head.files)
            for path, data in files.items():
                entries[path] = self._entry(path, data)
            for path in deleted:
                del entries[path]
            return repo.add(title, entries, [*files, *deleted])

    def _entry(self, path: str, data: bytes) -> Entry:
        if not is_large(path, len(data)):
            return git_entry(data)
        sha256 = hashlib.sha256(data).hexdigest()
        self.objects[sha256] = data
        return lfs_entry(sha256, len(data))


def is_large(path: str, size: int) -> bool:
    """Whether a file becomes an LFS object."""
    return size > 0 and (path.endswith(LFS_SUFFIXES) or size > LFS_BYTES)
