"""Run one command with some of its surroundings broken; the last line printed is its memory.

The plan is a JSON object: ``words`` of the command; ``ordinary`` to give up root first;
``file_bytes`` that a file may have; ``meddle`` with a file when the first shard is begun.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import tempfile
from pathlib import Path
from typing import Any

from adp.cli import main as cli
from adp.converters import run, shard


def warm(good: str) -> None:
    """Import all that a conversion needs, before the surroundings break.

    An ordinary user may not see where Python lies.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        path = Path(folder, "a.jsonl")
        path.write_text(good, encoding="utf-8")
        assert cli.main(["convert", str(path), "-o", f"{folder}/out", "--json"]) == 0
        assert cli.main(["convert", str(path), "-o", f"{folder}/out", "--json"]) == 5


def become_ordinary(uid: int) -> None:
    """Give up root for good."""
    if os.geteuid() != 0:
        return
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    assert os.geteuid() == uid, "still root: the test would show nothing"


def meddle(
    path: str, append: str = "", text: str = "", remove: bool = False, become: str = ""
) -> None:
    """Change, remove or swap a file when the conversion of the first shard begins."""
    convert_shard = shard.convert_shard

    def changed(job: shard.ConvertJob) -> shard.ShardResult:
        if remove or become:
            Path(path).unlink(missing_ok=True)
        if become == "pipe":
            os.mkfifo(path)
        elif become:
            Path(path).symlink_to(Path(path).parents[1] / "private.jsonl")
        elif remove:
            pass
        elif text:
            Path(path).write_text(text, encoding="utf-8")
        else:
            with Path(path).open("a", encoding="utf-8") as file:
                file.write(append)
        return convert_shard(job)

    run.convert_shard = changed


def most_memory() -> int:
    """The greatest memory of this process so far, in MB."""
    try:
        # `ru_maxrss` would hold the memory of the process that started this one.
        status = Path("/proc/self/status").read_bytes()
        return int(status.partition(b"VmHWM:")[2].split()[0]) // 1024
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def follow(plan: dict[str, Any]) -> int:
    """Follow the plan and return the exit code of the command."""
    tempfile.tempdir = None  # the environment of this process names another one
    if plan.keys() & {"meddle", "ordinary", "file_bytes"}:
        with contextlib.redirect_stderr(io.StringIO()):
            warm(plan["good"])
    if "meddle" in plan:
        meddle(**plan["meddle"])
    if plan.get("ordinary"):
        become_ordinary(plan["nobody"])
    if "file_bytes" in plan:
        resource.setrlimit(resource.RLIMIT_FSIZE, (plan["file_bytes"], resource.RLIM_INFINITY))
    code = cli.main(plan["words"])
    print(most_memory(), flush=True)
    return code
