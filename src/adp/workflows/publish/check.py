"""What may be refused before any work is done: names, rights and privacy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from adp_schema import hub
from adp_schema.errors import HubError, UsageError
from adp_schema.hub import HubPath
from adp_schema.retries import retried

if TYPE_CHECKING:
    from huggingface_hub import HfApi


def check_tag(tag: str | None) -> None:
    """Check that a text can be the name of a tag.

    Raises:
        UsageError: it cannot.
    """
    if tag is not None and not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", tag, re.ASCII):
        raise UsageError(f"'{tag}' is no name of a tag; write letters, digits, '.', '-' and '_'")


def check(
    repo_id: str, private: bool = False, tag: str | None = None, *, others: Sequence[str] = ()
) -> None:
    """Ask the Hub whether an upload is allowed, as far as it says so before the upload.

    Args:
        repo_id: ``OWNER/NAME``.
        private: whether the repository is to be private.
        tag: the tag that the commit is to get.
        others: other repositories of the same owner that are uploaded too.

    Raises:
        UsageError: a name is not valid, or the repository is public and ``private`` was asked.
        HubError: there is no token, it may not write there, or the Hub cannot be reached.
    """
    for name in (repo_id, *others):
        hub.check_repo_id(name)
    place = HubPath(repo_id)
    check_tag(tag)
    check_token()
    with hub.explained(place, writing=True):
        api = hub.client()
        check_owner(api, repo_id)
        for name in (repo_id, *others):
            is_there(api, name, private)


def check_owner(api: HfApi, repo_id: str) -> None:
    """Check that the user, or an organisation of the user, has the name before the slash.

    Raises:
        HubError: it is somebody else's.
    """
    me = retried(api.whoami)
    owner = repo_id.split("/")[0]
    names = [str(me["name"]), *(str(org["name"]) for org in me.get("orgs") or ())]
    if owner.casefold() not in {name.casefold() for name in names}:
        raise HubError(
            f"your token is that of {me['name']}, who may not write to {repo_id}; write one "
            f"of your names before the slash ({', '.join(names[:10])}), or log in as another "
            "user: hf auth login"
        )


def check_token() -> None:
    """Check that a token is at hand.

    Raises:
        HubError: there is none.
    """
    if not hub.token_there():
        raise HubError(hub.NO_TOKEN)


def is_there(api: HfApi, repo_id: str, private: bool) -> bool:
    """Whether a repository is there.

    Raises:
        UsageError: it is public, and ``private`` was asked.
    """
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        result = retried(lambda: api.repo_info(repo_id, repo_type="dataset"))
    except RepositoryNotFoundError:
        return False
    if private and not result.private:
        raise UsageError(
            f"{repo_id} is public already; make it private in its settings, or publish without "
            "--private"
        )
    return True
