"""What a worker of a Ray cluster does with a part of a stage.

Only plain values come and go, so that a worker with another version of this package can still say
what is wrong.
"""

from __future__ import annotations

import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from stat import S_ISDIR
from typing import Any

from adp.version import __version__

PACKAGES = (
    "duckdb", "jinja2", "msgspec", "numpy", "phonenumbers", "polars", "pyarrow", "python-stdnum",
    "tokenizers", "transformers",
)  # fmt: skip
"""Packages that the bytes of a stage may depend on."""

MADE, RAISED, UNFIT, MISSING = "made", "raised", "unfit", "missing"
"""What a reply says: the result, an exception of the work, why this worker cannot do it, a path
that it does not see."""

_fit: list[dict[str, Any]] = []
"""What this worker was last asked to have, and has."""


def installed() -> dict[str, str]:
    """Versions of Python, of this package and of those that the bytes may depend on."""
    versions = {"Python": "{}.{}".format(*sys.version_info[:2]), "adp": __version__}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def state(path: str) -> tuple[int, int] | None:
    """Size and time of change of a file; zeros of a folder, None where nothing is."""
    try:
        status = Path(path).lstat()
    except OSError:
        return None
    return (0, 0) if S_ISDIR(status.st_mode) else (status.st_size, status.st_mtime_ns)


def do_part(
    needs: dict[str, Any],
    work: bytes,
    part: bytes,
    reads: Sequence[tuple[str, tuple[int, int] | None]],
) -> Any:
    """Do a part, unless this worker cannot.

    Args:
        needs: what a worker must have: ``versions``; ``folder``, the present one; ``path``, where
            modules are looked for; ``variables`` of the environment; ``probe``, a file that it
            must see, or an empty text; ``seconds`` that it may take to be seen.
        work: the function, pickled.
        part: its argument, pickled.
        reads: paths that it reads, with their `state` where it was asked for.

    Returns:
        What kind of reply it is, and the reply: pickled, or a sentence.
    """
    from ray import cloudpickle

    from adp_schema.verification import hash_nothing

    if needs not in _fit:
        if why := _unfit(needs):
            return UNFIT, f"the machine {platform.node()} of the Ray cluster {why}"
        _fit[:] = [needs]
    hash_nothing()  # the process that it works for did
    for path, known in reads:
        here = state(path)
        if here != known:
            return MISSING, (platform.node(), path, here)
    try:
        call: Callable[[Any], Any] = cloudpickle.loads(work)
        return MADE, cloudpickle.dumps(call(cloudpickle.loads(part)))
    except BaseException as error:
        error.add_note(f"on {platform.node()}:\n{traceback.format_exc()}")
        try:
            return RAISED, cloudpickle.dumps(error)
        except Exception:  # what it holds cannot be sent
            return RAISED, cloudpickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))


def _unfit(needs: dict[str, Any]) -> str:
    """Make this process like the one that it works for; the reason when it cannot be."""
    here = installed()
    for name, wanted in needs["versions"].items():
        if here.get(name) != wanted:
            known = f"has {name} {here[name]}" if name in here else f"does not have {name}"
            return f"{known} and this process has {wanted}; install the same versions on all"
    os.environ.update(needs["variables"])
    sys.path += [place for place in needs["path"] if place not in sys.path]
    try:
        os.chdir(needs["folder"])
    except OSError as error:
        return (
            f"does not see the present folder {needs['folder']} ({error.strerror}); call from a "
            "folder that all machines share"
        )
    probe = Path(needs["probe"]) if needs["probe"] else None
    if probe is not None and not _seen(probe, needs["seconds"]):
        return (
            f"does not see {probe.parent}; put the output into a folder that all machines see "
            "under the same path"
        )
    return ""


def _seen(path: Path, seconds: float) -> bool:
    """Whether a file is there, or comes within some seconds."""
    end = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True
