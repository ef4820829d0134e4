"""The command line of bubblewrap: what the program inside can see.

It sees the programs and libraries of the system and a standard library, read-only; an empty
``/tmp`` of limited size in memory; a ``/proc`` and a ``/dev`` of its own. It has no network, no
environment, no other processes, no installed packages of any Python, and nothing of ``/home``,
``/root``, ``/opt``, ``/etc``, ``/run``, ``/var`` or ``/usr/local``. An interpreter that is not that
of the system is shown at ``/python``, so that the place where it is installed is not there. What
the program may ask of the kernel is limited by `adp.rollouts.sandbox.seccomp`.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adp.rollouts.sandbox import seccomp
from adp_schema.errors import UsageError

_SHARED = (
    *("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec"),
    *("/usr/share/zoneinfo", "/usr/share/terminfo", "/usr/share/locale"),
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64"),
)
_PACKAGES = ("site-packages", "dist-packages")
_DEPTH = 8
"""Folders above one in which packages are looked for."""
_PYTHON = "/python"
"""Where an interpreter is shown that is not that of the system."""
_FILES = ("/etc/ld.so.cache", "/etc/localtime")
# Not /dev/zero: it can be mapped as shared memory, which no limit counts.
_DEVICES = ("null", "full", "random", "urandom")
_LINKS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}
_MASKED = ("/proc/keys", "/proc/key-users", "/proc/cmdline")

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
            done = subprocess.run(
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
    return None if done.returncode == 0 else done.stderr.strip()[:200] or "it fails"


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
    options += ["--perms", "0755", "--dir", "/usr", "--perms", "0755", "--dir", "/usr/share"]
    for place in _SHARED:
        options += _mounted(place)
    for name in _FILES:
        options += ["--ro-bind-try", name, name]
    options += [*_without_packages(), *_interpreter()]
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
    """Files of the kernel that name the keys of the user, or how the machine was started."""
    names = [name for name in _MASKED if Path(name).exists()]
    return [word for name in names for word in ("--ro-bind", "/dev/null", name)]


def _devices() -> list[str]:
    """A ``/dev`` of few devices. The one of bubblewrap could be filled with files."""
    options = ["--perms", "0755", "--tmpfs", "/dev"]
    for name in _DEVICES:
        options += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for name, end in _LINKS.items():
        options += ["--symlink", f"/proc/self/fd{end}", f"/dev/{name}"]
    return options


@functools.cache
def _packages_of_system() -> list[str]:
    """Folders of packages of the Pythons that the system's libraries hold."""
    results = []
    for library in ("/usr/lib", "/usr/lib64", "/lib", "/lib64"):
        if Path(library).is_symlink():
            continue
        for folder, below, _ in os.walk(library):
            results += [f"{folder}/{name}" for name in below if name in _PACKAGES]
            deep = folder.count("/") > _DEPTH
            below[:] = [] if deep else [name for name in below if name not in _PACKAGES]
    return sorted(folder for folder in results if not Path(folder).is_symlink())


def _without_packages() -> list[str]:
    """Hide what is installed for the Pythons of the system."""
    return [word for folder in _packages_of_system() for word in _emptied(folder)]


def _emptied(folder: str) -> list[str]:
    """An empty folder in place of one that is there."""
    return ["--perms", "0555", "--size", "4096", "--tmpfs", folder, "--remount-ro", folder]


def _of_system() -> bool:
    """Whether the interpreter is that of the system, which is shown where it is."""
    return os.path.realpath(sys.base_prefix) == "/usr"


def _interpreter() -> list[str]:
    """The interpreter and its standard library at `_PYTHON`, without its installed packages."""
    if _of_system():
        return []
    program = _program()
    library = Path(os.path.realpath(Path(os.__file__).parent))
    shown = f"{_PYTHON}/{library.parent.name}/{library.name}"
    options = [*_parents(f"{_PYTHON}/bin/python"), *_parents(shown)]
    options += ["--ro-bind", str(program), f"{_PYTHON}/bin/{program.name}"]
    options += ["--ro-bind", str(library), shown]
    for name in _PACKAGES:
        if (library / name).is_dir():
            options += _emptied(f"{shown}/{name}")
    for entry in sys.path:
        modules = Path(os.path.realpath(entry))
        if modules.name == "lib-dynload" and modules.parent != library and modules.is_dir():
            place = f"{_PYTHON}/{modules.parent.parent.name}/{library.name}/lib-dynload"
            options += [*_parents(place), "--ro-bind", str(modules), place]
    # Shared libraries of the interpreter, such as conda's, are found beside it.
    for folder in dict.fromkeys((library.parent, program.parent.parent / "lib")):
        for path in sorted(folder.glob("lib*.so*")):
            if path.is_file():
                options += ["--ro-bind-try", str(path), f"{_PYTHON}/lib/{path.name}"]
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        options += ["--setenv", "LD_LIBRARY_PATH", f"{_PYTHON}/lib"]
    return options


def _parents(folder: str) -> list[str]:
    """The folders above, empty and open to all: bubblewrap would make them for root alone."""
    above = [str(parent) for parent in reversed(Path(folder).parents) if str(parent) != "/"]
    return [part for parent in above for part in ("--perms", "0755", "--dir", parent)]


def _program() -> Path:
    """The file of the interpreter below any virtual environment."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    result = Path(os.path.realpath(sys.base_prefix)) / "bin" / f"python{version}"
    return Path(os.path.realpath(result if result.exists() else sys.executable))


def python() -> str:
    """The interpreter that runs inside, by the path that it has there."""
    program = _program()
    return str(program) if _of_system() else f"{_PYTHON}/bin/{program.name}"
