"""Rules for the person who publishes: the own home folder and user name, taken when it runs."""

from __future__ import annotations

import getpass
import os
import re
from pathlib import Path

from adp.stores.redact.home_paths import GENERIC
from adp.stores.redact.rules import Rule

_BEFORE = r"(?:(?<![0-9A-Za-z])|(?<=\\[nrtfb]))"
_AFTER = r"(?![0-9A-Za-z])"

CurrentUser = tuple[tuple[str, ...], tuple[str, ...]]
"""Home folders and user names."""


def surroundings() -> CurrentUser:
    """The home folders and the user names of this process."""
    homes = {os.environ.get("HOME", ""), os.environ.get("USERPROFILE", "")}
    names = {os.environ.get(name, "") for name in ("USER", "LOGNAME", "USERNAME")}
    try:
        homes.add(str(Path.home()))
        names.add(getpass.getuser())
    except (RuntimeError, OSError, KeyError, ImportError):
        pass  # a process of no known user has neither
    homes = {home.rstrip("/\\") for home in homes}
    names |= {re.split(r"[/\\]", home)[-1] for home in homes if _is_home(home)}
    return (
        tuple(sorted(home for home in homes if _is_own(home))),
        tuple(sorted(name for name in names if len(name) > 2 and name.lower() not in GENERIC)),
    )


def _is_home(path: str) -> bool:
    """Whether a folder lies where home folders do, so that its name is a user's."""
    return re.search(r"(?i)(?:^|[/\\])(?:home|users)[/\\][^/\\]+$", path) is not None


def _is_own(home: str) -> bool:
    """Whether a home folder tells who it is: ``/root`` and ``/home/user`` do not."""
    parts = [part for part in re.split(r"[/\\]", home) if part]
    return len(parts) > 1 and parts[-1].lower() not in GENERIC


def own_rules(user: CurrentUser) -> tuple[Rule, ...]:
    """The rules for some home folders and user names."""
    homes, names = user
    rules = [
        Rule("own-home", "own", "Your own home folder",
             f"{_path(home)}{_AFTER}", gate=_path(home))
        for home in homes
    ]  # fmt: skip
    rules += [
        Rule("own-name", "own", "Your own user name",
             f"{_BEFORE}{re.escape(name)}{_AFTER}", (name,))
        for name in names
    ]  # fmt: skip
    return tuple(rules)


def _path(home: str) -> str:
    """A pattern of a path, whatever its separators look like in JSON text."""
    parts = [re.escape(part) for part in re.split(r"[/\\]+", home)]
    return r"(?:/|\\{1,4}/?)".join(parts)
