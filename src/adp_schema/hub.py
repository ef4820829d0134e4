"""The Hugging Face Hub: locations on it, and its errors as sentences.

A location is ``hf://datasets/OWNER/NAME[@REVISION][/PATH]``. A revision is a branch, a tag or a
commit; without one it is the newest commit of ``main``. Tokens are looked up by huggingface_hub
(``HF_TOKEN``, or ``hf auth login``); they never appear in a message.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from adp_schema.errors import AdpError, HubError, StoreError, UsageError
from adp_schema.retries import chain, is_network, retried, status_of
from adp_schema.tables import MANIFEST

if TYPE_CHECKING:
    from huggingface_hub import HfApi

PREFIX = "hf://"
_URL = re.compile(
    r"hf://datasets/(?P<repo>[^/@]+/[^/@]+)"
    r"(?:@(?P<revision>refs/convert/[\w.-]+|refs/pr/\d+|[^/]+))?(?:/(?P<path>.*))?"
)
_NAME = re.compile(r"[\w.-]{1,96}", re.ASCII)
_LONGEST = 96
_QUOTA = re.compile(r"storage|quota|limit|upgrade|payment", re.IGNORECASE)


@dataclass(frozen=True)
class HubPath:
    """A place in a data set repository.

    Attributes:
        repo_id: ``OWNER/NAME``.
        revision: branch, tag or commit; None means ``main``.
        path: path in the repository without slashes at its ends; empty for all of it.
    """

    repo_id: str
    revision: str | None = None
    path: str = ""

    @property
    def name(self) -> str:
        """The last part of the repository's id."""
        return self.repo_id.split("/")[1]

    def url(self) -> str:
        """The location as it is written."""
        at = f"@{quote(self.revision, safe='')}" if self.revision else ""
        return f"{PREFIX}datasets/{self.repo_id}{at}{'/' if self.path else ''}{self.path}"

    def with_revision(self, revision: str) -> HubPath:
        """The same place at another revision."""
        return replace(self, revision=revision)

    def at(self, path: str) -> HubPath:
        """Another place of the same revision."""
        return replace(self, path=path.strip("/"))

    def below(self, path: str) -> HubPath:
        """A place below this one."""
        return self.at(f"{self.path}/{path}")


def parse(url: str) -> HubPath:
    """Read a location on the Hub.

    Raises:
        UsageError: it is not of the form ``hf://datasets/OWNER/NAME[@REVISION][/PATH]``.
    """
    match = _URL.fullmatch(url)
    if match is None:
        raise UsageError(
            f"{url} is no data set on the Hub; write hf://datasets/OWNER/NAME[@REVISION][/PATH]"
        )
    path = (match["path"] or "").strip("/")
    if ".." in path.split("/"):
        raise UsageError(f"{url} leads out of the repository; leave out the '..'")
    revision = match["revision"]
    return HubPath(check_repo_id(match["repo"]), unquote(revision) if revision else None, path)


def check_repo_id(repo_id: str) -> str:
    """Check the name of a repository, and return it.

    Raises:
        UsageError: it is not ``OWNER/NAME`` in the letters that the Hub allows.
    """
    parts = repo_id.split("/")
    wrong = len(parts) != 2 or not all(map(_NAME.fullmatch, parts))
    if wrong or len(repo_id) > _LONGEST or "--" in repo_id or ".." in repo_id or any(
        part[0] in "-." or part[-1] in "-." or part.endswith(".git") for part in parts
    ):  # fmt: skip
        raise UsageError(
            f"'{repo_id}' is no name of a repository; write OWNER/NAME, such as alice/agent-runs, "
            f"each of letters, digits, '-', '_' and '.', not at the ends and without '--' or '..', "
            f"at most {_LONGEST} characters in all"
        )
    return repo_id


def client() -> HfApi:
    """What talks to the Hub; it reads ``HF_ENDPOINT`` and finds the token by itself."""
    from huggingface_hub import HfApi

    return HfApi(library_name="adp")


def resolve(place: HubPath) -> HubPath:
    """Pin a place to the commit that its revision is now.

    Raises:
        HubError: there is no such repository or revision, it may not be read, or the Hub cannot
            be reached.
    """
    with explained(place):
        result = retried(
            lambda: client().repo_info(
                place.repo_id, revision=place.revision, repo_type="dataset", timeout=60
            )
        )
    if not result.sha:
        raise HubError(f"{place.repo_id} has no commits yet; there is nothing to read")
    return replace(place, revision=result.sha)


@dataclass(frozen=True)
class HubFile:
    """A file of a revision.

    Attributes:
        path: its path in the repository.
        size: its bytes.
        blob: hash by which git knows it.
        sha256: hash of the bytes, for a large file; else None.
    """

    path: str
    size: int
    blob: str
    sha256: str | None


def files(place: HubPath) -> dict[str, HubFile]:
    """All files of a revision: path -> file, whatever the place's path.

    Raises:
        HubError: they cannot be listed.
    """
    from huggingface_hub.hf_api import RepoFile

    def listed() -> dict[str, HubFile]:
        tree = client().list_repo_tree(
            place.repo_id, recursive=True, revision=place.revision, repo_type="dataset"
        )
        return {
            item.path: HubFile(
                item.path, item.size, item.blob_id, item.lfs.sha256 if item.lfs else None
            )
            for item in tree
            if isinstance(item, RepoFile)
        }

    with explained(place):
        return retried(listed)


def store_place(url: str) -> HubPath:
    """Where the store is that a location on the Hub names, at the commit that it is now.

    It is at the path itself, or in the folder ``store`` of a publication.

    Raises:
        StoreError: there is none.
        HubError: the repository cannot be read.
    """
    place = resolve(parse(url))
    tried = [place.below("store"), place] if not place.path else [place, place.below("store")]
    wanted = [item.below(MANIFEST).path for item in tried]
    with explained(place):
        result = retried(
            lambda: client().get_paths_info(
                place.repo_id, wanted, revision=place.revision, repo_type="dataset"
            )
        )
    there = {item.path for item in result}
    for match, path in zip(tried, wanted, strict=True):
        if path in there:
            return match
    raise StoreError(
        f"{url} is no published store: it has no {wanted[0]}; convert its files with: "
        f"adp convert {url} -o STORE"
    )


@contextmanager
def explained(place: HubPath, *, writing: bool = False) -> Iterator[None]:
    """Turn errors of the Hub into one sentence each.

    Args:
        place: what is read or written.
        writing: whether the call changes something.

    Raises:
        HubError: what the Hub or the connection refused.
    """
    try:
        yield
    except AdpError:
        raise
    except Exception as error:
        sentence = explain(error, place, writing=writing)
        if sentence is None:
            raise
        raise HubError(sentence) from error


def explain(error: BaseException, place: HubPath, *, writing: bool = False) -> str | None:
    """The sentence for an error of the Hub; None when it is another one."""
    names = {kind.__name__ for item in chain(error) for kind in type(item).__mro__}
    repo = place.repo_id
    if "OfflineModeIsEnabled" in names:
        return "HF_HUB_OFFLINE is set, so the Hub may not be asked; unset it and call again"
    if "LocalTokenNotFoundError" in names:
        return NO_TOKEN
    if "GatedRepoError" in names:
        return f"{repo} is gated: ask for access on its page, log in (hf auth login), call again"
    if "RevisionNotFoundError" in names:
        return f"{repo} has no revision '{place.revision}'; check the part after @"
    if "RemoteEntryNotFoundError" in names:
        return f"{place.url()} does not exist; check the path"
    if "RepositoryNotFoundError" in names:
        return (
            f"there is no data set {repo} on the Hub that you may read; check the name, and log in "
            "if it is private: hf auth login"
        )
    if "HFValidationError" in names:
        return f"'{repo}' is no name of a repository; write OWNER/NAME"
    status = status_of(error)
    if status == 400 and "Invalid metadata in README.md" in str(error):
        return f"the Hub does not accept the head of README.md{_reason_of(error)}; mend it"
    if status == 404 and any("/xet-" in str(item) for item in chain(error)):
        return (
            f"the Hub at {_endpoint()} has no Xet storage, which huggingface_hub uses for large "
            "files; set HF_HUB_DISABLE_XET=1 and call again"
        )
    if status is not None:
        return _status_sentence(error, status, repo, writing=writing)
    if any(is_network(item) for item in chain(error)) or "LocalEntryNotFoundError" in names:
        after = ", it goes on where it stopped" if writing else " later"
        return f"cannot reach the Hub at {_endpoint()}; check the connection and call again{after}"
    return None


NO_TOKEN = (
    "you are not logged in to the Hugging Face Hub; run: hf auth login, or set HF_TOKEN to a token "
    "that may write"
)


def _status_sentence(error: BaseException, status: int, repo: str, *, writing: bool) -> str:
    message = _reason_of(error)
    if status == 401:
        return f"the Hub does not accept your token{message}; log in again: hf auth login"
    if status == 402 or (status == 403 and _QUOTA.search(message)):
        return (
            f"your account on the Hub has no room for {repo}{message}; make room or publish public"
        )
    if status == 403:
        word = "write to" if writing else "read"
        return (
            f"your token may not {word} {repo}{message}; use a token that may, or another owner "
            "before the slash"
        )
    if status == 413:
        return f"the Hub says that something in {repo} is too large{message}"
    if status == 429:
        return (
            "the Hub takes no more calls from you for now (429); what is done is kept: call again "
            "in some minutes"
        )
    if status >= 500:
        return f"the Hub fails (status {status}); what is done is kept: call again later"
    return f"the Hub refuses this for {repo} (status {status}){message}"


def _reason_of(error: BaseException) -> str:
    """What the Hub says itself, in brackets, without the token."""
    for item in chain(error):
        message = getattr(item, "server_message", None)
        if message:
            line = " ".join(str(message).split())[:300]
            return f" ({re.sub(r'hf_[A-Za-z0-9]{8,}', 'hf_...', line)})"
    return ""


def _endpoint() -> str:
    from huggingface_hub import constants

    return constants.ENDPOINT


@contextmanager
def quiet(note: Callable[[str], None]) -> Iterator[None]:
    """Keep huggingface_hub from printing: its bars, its log and its warnings.

    Args:
        note: told what it warns of.
    """
    from huggingface_hub.utils import (  # type: ignore[attr-defined]
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    logger = logging.getLogger("huggingface_hub")
    level, silent = logger.level, are_progress_bars_disabled()
    with warnings.catch_warnings(record=True) as catch_warnings:
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", "Warnings while validating metadata")
        if not silent:
            disable_progress_bars()
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)
            if not silent:
                enable_progress_bars()
    for message in dict.fromkeys(" ".join(str(item.message).split()) for item in catch_warnings):
        note(message)


def token_there() -> bool:
    """Whether a token is at hand."""
    from huggingface_hub import get_token

    return bool(get_token())
