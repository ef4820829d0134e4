"""The command line of bubblewrap: what the program inside can see.

It sees ``/usr`` and the interpreter, read-only; an empty ``/tmp`` of limited size in memory; a
``/proc`` and a ``/dev`` of its own. It has no network, no environment, no other processes, and
nothing of ``/home``, ``/root``, ``/etc``, ``/run`` or ``/var``.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

from adp_schema.errors import UsageError

_SHARED = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
_FILES = ("/etc/ld.so.cache", "/etc/localtime")

NO_BUBBLEWRAP = (
    "running Python of a model needs bubblewrap, and {why}; install it (Debian, Ubuntu: "
    "apt install bubblewrap), or say unsafe=true (adp: --unsafe-python) to run it unprotected "
    "with all rights of this process"
)


def bubblewrap() -> str:
    """The path of bubblewrap, which is known to work here.

    Raises:
        UsageError: it is not installed, or the system does not let it work.
    """
    path = shutil.which("bwrap")
    if path is None:
        raise UsageError(NO_BUBBLEWRAP.format(why="there is no program 'bwrap'"))
    why = _fault(path)
    if why is not None:
        raise UsageError(NO_BUBBLEWRAP.format(why=f"it does not work here ({why})"))
    return path


@functools.cache
def _fault(path: str) -> str | None:
    """Try it once: some systems forbid what it needs."""
    command = [path, *confined(1 << 20), "true"]
    try:
        found = subprocess.run(
            command, capture_output=True, env={}, timeout=30, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if found.returncode == 0 else found.stderr.strip()[:200] or "it fails"


def confined(tmp_bytes: int) -> list[str]:
    """Options of bubblewrap, up to the command that runs inside.

    Args:
        tmp_bytes: size of ``/tmp``, which lies in memory, in bytes.
    """
    options = [
        *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"),
        *("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv"),
        *("--hostname", "sandbox", "--cap-drop", "ALL"),
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
        *("--proc", "/proc", "--dev", "/dev"),
        *("--perms", "1777", "--size", str(tmp_bytes), "--tmpfs", "/tmp"),
        *("--size", "65536", "--tmpfs", "/dev/shm"),
        *("--remount-ro", "/", "--chdir", "/tmp"),
        *("--setenv", "HOME", "/tmp", "--setenv", "PATH", "/usr/bin:/bin"),
        *("--setenv", "LANG", "C.UTF-8", "--setenv", "PYTHONDONTWRITEBYTECODE", "1", "--"),
    ]


def _mounted(place: str) -> list[str]:
    """A folder of the system: as it is, or the link that it is on a merged system."""
    path = Path(place)
    if path.is_symlink():
        return ["--symlink", str(path.readlink()), place]
    return ["--ro-bind", place, place] if path.is_dir() else []


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
