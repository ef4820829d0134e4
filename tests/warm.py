"""Runs in processes of their own that need not import adp first: they are forked from one that has.

Starting Python and importing adp takes a second of the processor; a test that needs a process for
what it breaks there (limits, users, files) should not pay for that each time.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

PRELOADED = ("adp.cli.main", "adp.cli.convert", "adp.converters.run", "adp_schema.store")

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(list(PRELOADED))


@dataclass
class Ended:
    """How a run ended, with what it printed."""

    code: int
    out: str
    err: str


def call(
    function: Callable[..., int], *arguments: object, env: Mapping[str, str] | None = None
) -> Ended:
    """Call a function of a module in a process of its own, and wait for its end.

    Args:
        function: returns the exit code; it is found by its name.
        arguments: can be pickled.
        env: environment variables of the process beside those of this one.
    """
    with TemporaryDirectory() as folder:
        files = [str(Path(folder, name)) for name in ("out", "err")]
        words = (function, arguments, files, {**os.environ, **(env or {})})
        process = _CONTEXT.Process(target=_begin, args=words)
        process.start()
        process.join()
        texts = [Path(name).read_text(encoding="utf-8") for name in files]
        assert process.exitcode is not None
        return Ended(process.exitcode, *texts)


def _begin(
    function: Callable[..., int],
    arguments: tuple[object, ...],
    files: list[str],
    env: Mapping[str, str],
) -> None:
    """In the new process: redirect what it prints, and call the function."""
    for number, name in enumerate(files, 1):
        target = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(target, number)
        os.close(target)
    sys.stdin = Path(os.devnull).open()  # noqa: SIM115
    os.environ.clear()
    os.environ.update(env)
    code = 70
    try:
        code = function(*arguments)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Ends as a program does that was started alone, without the exit handlers of the server.
        sys.exit(code)
