"""A folder that a run has begun to write: the call that made it, and the advice to go on.

A run keeps a plan below ``.run`` in the folder that it writes until all is there. Beside it the
command line notes its call. Calls of the library note none: nobody can type them again.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PLAN, CALL = "plan.json", "call.json"
_LONGEST = 400

_calls: list[Sequence[str]] = []
_plans: list[Path] = []
"""Plans of the runs that the call has begun, the newest last."""


@contextmanager
def calling(words: Sequence[str]) -> Iterator[None]:
    """Say which call of the command line works until the end of the block.

    Args:
        words: its words after ``adp``.
    """
    _calls.append(words)
    _plans.clear()
    try:
        yield
    finally:
        _calls.pop()


def note_call(scratch: Path) -> None:
    """Note the call that works beside its plan.

    Args:
        scratch: the folder ``.run`` of what it writes.
    """
    if _calls:
        from adp_schema.manifest import write_atomic

        facts = {"call": shlex.join(["adp", *_calls[-1]]), "folder": str(Path.cwd())}
        write_atomic(scratch / CALL, json.dumps(facts))
        _plans.append(scratch / PLAN)


def goes_on() -> bool:
    """Whether the call, or the last one, left a run that the same call goes on with."""
    return any(plan.is_file() for plan in _plans)


def unfinished(root: str | os.PathLike[str]) -> str | None:
    """Why a folder is no store yet and what to do; None when no run has begun to write it.

    Args:
        root: a local folder.
    """
    scratch = Path(root) / ".run"
    if not (scratch / PLAN).is_file():
        return None
    try:
        facts = json.loads((scratch / CALL).read_text(encoding="utf-8"))
        call, folder = str(facts["call"]), str(facts["folder"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return f"{root} is unfinished; make the call that began it again to go on, or remove it"
    if len(call) > _LONGEST:
        call = f"{call[:_LONGEST]}..."
    place = "" if folder == str(Path.cwd()) else f" in {folder}"
    return f"{root} is unfinished, made by `{call}`{place}; call it again to go on"
