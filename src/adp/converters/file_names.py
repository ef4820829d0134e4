"""Names of files made from ids of data: safe on every file system, and one for each id."""

from __future__ import annotations

import re

from adp_schema.ids import digest

MAX_NAME = 100
"""Characters of a name; with a folder and a suffix it stays below what file systems allow."""

_HASH_LENGTH = 12
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LOOKS_HASHED = re.compile(rf".*-[0-9a-f]{{{_HASH_LENGTH}}}")
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def session_name(trajectory_id: str, dataset: str | None) -> str:
    """A file name for a trajectory in the folder of its data set, without a suffix.

    Args:
        trajectory_id: its id, which usually begins with the data set.
        dataset: name of the data set.
    """
    prefix = f"{dataset}/"
    if trajectory_id.startswith(prefix):
        return safe_name(trajectory_id.removeprefix(prefix))
    # ``run1`` is another trajectory than ``data/run1``.
    return safe_name(f"\0{trajectory_id}")


def safe_name(text: str) -> str:
    """A file name for an id, without a suffix.

    An id of small letters, digits, ``.``, ``_`` and ``-`` is its own name. Any other one gets its
    other characters replaced, and a hash of the id. An id that looks as if it had such a hash gets
    one too, so that two ids never get the same name, even where case does not count.

    Args:
        text: any text.
    """
    name = _UNSAFE.sub("_", text[: 4 * MAX_NAME]).strip(".-_") or "unnamed"
    keeps = name == text and name == name.lower() and len(name) <= MAX_NAME
    if keeps and not _LOOKS_HASHED.fullmatch(name) and not _DEVICES.fullmatch(name):
        return name
    mark = digest(text.encode("utf-8", "surrogatepass"))[:_HASH_LENGTH]
    return f"{name[: MAX_NAME - _HASH_LENGTH - 1].rstrip('.')}-{mark}"
