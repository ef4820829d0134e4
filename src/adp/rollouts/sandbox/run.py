"""Start a program in the sandbox, and stop it at its limits."""

from __future__ import annotations

import json
import os
import secrets
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from adp.rollouts.environment import Settings
from adp.rollouts.sandbox import driver, seccomp
from adp.rollouts.sandbox.command import bubblewrap, confined, python, system_calls
from adp.rollouts.sandbox.watch import memory_of

Stopped = Literal["time", "memory", "output"]

_PAUSE = 0.05
_UIDS = (1 << 30, 1 << 31)
"""User ids that nobody has; each run draws its own, so that limits of one do not bind another."""


class SandboxLimits(Settings):
    """What a program may use up."""

    seconds: float = Field(default=30.0, gt=0)
    """Wall time, in seconds."""
    memory_mb: int = Field(default=1024, ge=64)
    """Memory of all its processes together, in MiB."""
    output_bytes: int = Field(default=65_536, ge=1)
    """Bytes of output; a program that writes more is stopped."""
    tmp_mb: int = Field(default=64, ge=1)
    """Size of /tmp, in MiB; it lies in memory."""
    processes: int = Field(default=32, ge=1)
    """Processes and threads at one time."""


@dataclass
class Completed:
    """What a program left.

    Attributes:
        stdout: its output, cut at the limit.
        stderr: its error output, cut at the limit.
        exit_code: its exit status; negative is the number of a signal.
        stopped: which limit stopped it; None when it ended by itself.
        seconds: wall time, in seconds.
    """

    stdout: str
    stderr: str
    exit_code: int
    stopped: Stopped | None
    seconds: float


@dataclass
class _Capture:
    room: int
    data: dict[int, bytearray] = field(default_factory=dict)

    def add(self, stream: int, chunk: bytes) -> bool:
        """Keep what fits; False when there was no room for all of it."""
        self.data.setdefault(stream, bytearray()).extend(chunk[: self.room])
        self.room -= len(chunk)
        return self.room >= 0

    def text(self, stream: int) -> str:
        return bytes(self.data.get(stream, b"")).decode("utf-8", "replace")


def run_python(code: str, limits: SandboxLimits, *, unsafe: bool = False) -> Completed:
    """Run Python code and return what it printed; the value of a last expression is printed too.

    Args:
        code: the code.
        limits: what it may use up.
        unsafe: run it as a plain process, with all rights of this one.

    Raises:
        UsageError: bubblewrap is not there or does not work, and ``unsafe`` is false.
    """
    source = Path(driver.__file__).read_text(encoding="utf-8")
    child = ["-I", "-S", "-c", source]
    with ExitStack() as held:
        environment: dict[str, str] | None
        passed: tuple[int, ...] = ()
        if unsafe:
            folder = held.enter_context(tempfile.TemporaryDirectory(prefix="adp-python-"))
            command, environment = [sys.executable, "-I", "-c", source], None
        else:
            bwrap = bubblewrap()
            passed = (held.enter_context(system_calls()),)
            confinement = confined(limits.tmp_mb << 20, *passed)
            # Its own environment is empty too: programs inside can read that of process 1.
            command, environment, folder = [bwrap, *confinement, python(), *child], {}, "/"
        given = _driver_input(code, limits, unsafe=unsafe)
        return _completed(command, limits, given, env=environment, cwd=folder, pass_fds=passed)


def run_command(
    command: Sequence[str],
    limits: SandboxLimits,
    *,
    environment: Mapping[str, str],
    folder: str | None = None,
) -> Completed:
    """Run a program of the user's own choice, without a shell and with all rights of this process.

    Args:
        command: the program and its arguments.
        limits: ``seconds``, ``memory_mb`` and ``output_bytes`` are kept.
        environment: its environment variables; it gets no others.
        folder: where it runs; None: in an empty folder that is removed afterwards.

    Raises:
        OSError: it cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="adp-command-") as scratch:
        return _completed(command, limits, env=dict(environment), cwd=folder or scratch)


def _driver_input(code: str, limits: SandboxLimits, *, unsafe: bool) -> bytes:
    settings = {
        "code": code,
        "uid": None if unsafe else _UIDS[0] + secrets.randbelow(_UIDS[1] - _UIDS[0]),
        "keyctl": None if unsafe else seccomp.number("keyctl", seccomp.machine()),
        "memory_bytes": limits.memory_mb << 20,
        "file_bytes": limits.tmp_mb << 20,
        "cpu_seconds": int(limits.seconds) + 1,
        # Outside it would count all processes of the user.
        "processes": None if unsafe else limits.processes,
    }
    return json.dumps(settings).encode("ascii") + b"\n"


def _completed(
    command: Sequence[str], limits: SandboxLimits, given: bytes = b"", **options: Any
) -> Completed:
    """Run a program until it ends or a limit is reached.

    Args:
        command: the program and its arguments.
        limits: the limits.
        given: what it reads.
        **options: further arguments of `subprocess.Popen`.
    """
    started = time.monotonic()
    process = subprocess.Popen(
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        **options,
    )
    capture = _Capture(limits.output_bytes)
    try:
        assert process.stdin is not None
        # When it ends before it has read all, its exit status says so.
        with suppress(BrokenPipeError):
            process.stdin.write(given)
            process.stdin.close()
        stopped = _follow(process, capture, limits, started)
    finally:
        _kill(process)
    return Completed(
        stdout=capture.text(1),
        stderr=capture.text(2),
        exit_code=process.returncode,
        stopped=stopped,
        seconds=time.monotonic() - started,
    )


def _follow(
    process: subprocess.Popen[bytes], capture: _Capture, limits: SandboxLimits, started: float
) -> Stopped | None:
    """Read what it writes until it ends or a limit is reached."""
    with selectors.DefaultSelector() as selector:
        for number, stream in ((1, process.stdout), (2, process.stderr)):
            assert stream is not None
            selector.register(stream, selectors.EVENT_READ, number)
        while selector.get_map():
            if time.monotonic() - started > limits.seconds:
                return "time"
            if memory_of(process.pid) > limits.memory_mb << 20:
                return "memory"
            for key, _ in selector.select(_PAUSE):
                chunk = os.read(key.fd, 65_536)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif not capture.add(key.data, chunk):
                    return "output"
            if process.poll() is not None and not selector.select(0):
                break  # a process that was left behind holds the pipe; it is killed
    left = limits.seconds - (time.monotonic() - started)
    try:
        process.wait(max(0.0, left))
    except subprocess.TimeoutExpired:
        return "time"
    return None


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End it and all that it started: a namespace of processes ends with its first one."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(BrokenPipeError):
                stream.close()
