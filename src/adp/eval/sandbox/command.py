"""The command line of bubblewrap: what the program inside can see.

It sees ``/usr`` and the interpreter, read-only; an empty ``/tmp`` of limited size in memory; a
``/proc`` and a ``/dev`` of its own. It has no network, no environment, no other processes, and
nothing of ``/home``, ``/root``, ``/etc``, ``/run`` or ``/var``. What it may ask of the kernel is
limited by `adp.eval.sandbox.seccomp`.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adp.eval.sandbox import seccomp
from adp_schema.errors import UsageError

_SHARED = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
_FILES = ("/etc/ld.so.cache", "/etc/localtime")
# Not /dev/zero: it can be mapped as shared memory, which no limit counts.
_DEVICES = ("null", "full", "random", "urandom")
_LINKS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}
_MASKED = ("/proc/keys", "/proc/key-users")

NO_BUBBLEWRAP = (
    "running Python of a model needs bubblewrap, and {why}; install it (Debian, Ubuntu: "
    "apt install bubblewrap), or say unsafe=true (adp: --unsafe-python) to run it unprotected "
    "with all rights of this process"
)


def bubblewrap() -> str:
    """The path of bubblewrap, which is known to work here.

    Raises:
        UsageError: it is not installed, the system does not let it work, or the architecture is
            one whose system calls are not known.
    """
    path = shutil.which("bwrap")
    if path is None:
        raise UsageError(NO_BUBBLEWRAP.format(why="there is no program 'bwrap'"))
    seccomp.machine()
    why = _fault(path)
    if why is not None:
        raise UsageError(NO_BUBBLEWRAP.format(why=f"it does not work here ({why})"))
    return path


@functools.cache
def _fault(path: str) -> str | None:
    """Try it once: some systems forbid what it needs."""
    try:
        with system_calls() as calls:
            found = subprocess.run(
                [path, *confined(1 << 20, calls), "true"],
                capture_output=True,
                env={},
                pass_fds=(calls,),
                timeout=30,
                check=False,
                text=True,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if found.returncode == 0 else found.stderr.strip()[:200] or "it fails"


@contextmanager
def system_calls() -> Iterator[int]:
    """An open file that holds the filter of system calls, for one start of bubblewrap."""
    read, write = os.pipe()
    try:
        # It is small enough to lie in the pipe until it is read.
        with os.fdopen(write, "wb") as stream:
            stream.write(seccomp.program(seccomp.machine()))
        yield read
    finally:
        os.close(read)


def confined(tmp_bytes: int, calls: int) -> list[str]:
    """Options of bubblewrap, up to the command that runs inside.

    Args:
        tmp_bytes: size of ``/tmp``, which lies in memory, in bytes.
        calls: the open file of `system_calls`.
    """
    options = [
        *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"),
        *("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv"),
        *("--hostname", "sandbox", "--cap-drop", "ALL", "--seccomp", str(calls)),
    ]
    if os.getuid() == 0:
        # Root builds the walls and then becomes a user that nobody else is: limits on the number
        # of processes do not hold for root, not even in a user namespace.
        options += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        options += ["--unshare-user", "--disable-userns", "--uid", "65534", "--gid", "65534"]
    for place in _SHARED:
        options += _mounted(place)
    for name in _FILES:
        options += ["--ro-bind-try", name, name]
    for folder in _interpreter():
        options += [*_parents(folder), "--ro-bind", folder, folder]
    return [
        *options,
        *("--proc", "/proc", *_masked(), *_devices()),
        *("--perms", "1777", "--size", str(tmp_bytes), "--tmpfs", "/tmp"),
        *("--perms", "1777", "--size", "65536", "--tmpfs", "/dev/shm"),
        *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"),
        *("--setenv", "HOME", "/tmp", "--setenv", "PATH", "/usr/bin:/bin"),
        *("--setenv", "LANG", "C.UTF-8", "--setenv", "PYTHONDONTWRITEBYTECODE", "1", "--"),
    ]


def _mounted(place: str) -> list[str]:
    """A folder of the system: as it is, or the link that it is on a merged system."""
    path = Path(place)
    if path.is_symlink():
        return ["--symlink", str(path.readlink()), place]
    return ["--ro-bind", place, place] if path.is_dir() else []


def _masked() -> list[str]:
    """Files of the kernel that name the keys of the user."""
    found = [name for name in _MASKED if Path(name).exists()]
    return [word for name in found for word in ("--ro-bind", "/dev/null", name)]


def _devices() -> list[str]:
    """A ``/dev`` of few devices. The one of bubblewrap could be filled with files."""
    options = ["--perms", "0755", "--tmpfs", "/dev"]
    for name in _DEVICES:
        options += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for name, end in _LINKS.items():
        options += ["--symlink", f"/proc/self/fd{end}", f"/dev/{name}"]
    return options


def _interpreter() -> list[str]:
    """Folders of this interpreter that ``/usr`` does not hold, without its installed packages."""
    folder = os.path.realpath(sys.base_prefix)
    return [] if folder == "/usr" or folder.startswith("/usr/") else [folder]


def _parents(folder: str) -> list[str]:
    """The folders above, empty and open to all: bubblewrap would make them for root alone."""
    above = [str(parent) for parent in reversed(Path(folder).parents) if str(parent) != "/"]
    return [part for parent in above for part in ("--perms", "0755", "--dir", parent)]


def python() -> str:
    """The interpreter that runs inside: the one below any virtual environment."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = Path(os.path.realpath(sys.base_prefix)) / "bin" / f"python{version}"
    return str(found) if found.exists() else os.path.realpath(sys.executable)
