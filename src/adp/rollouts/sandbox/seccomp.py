"""The system calls that a program in the sandbox may not use.

A filter of the kernel (seccomp, in the language of the Berkeley Packet Filter) reads the number of
each system call and, for a few, an argument. It refuses what reaches past the walls, what takes
memory that no limit counts, and parts of the kernel in which faults are found again and again. The
rest is allowed.

The numbers are those of Linux (arch/x86/entry/syscalls/syscall_64.tbl for x86_64,
include/uapi/asm-generic/unistd.h for aarch64; the same on both from 424 on); the layout of the
program is that of linux/filter.h and linux/seccomp.h.
"""

from __future__ import annotations

import errno
import os
import struct

from adp_schema.errors import UsageError

NEWEST = 457
"""System calls from here on are younger than the lists below; they are said not to exist."""

_AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""How the kernel names an architecture. Calls of 32-bit programs come under another name."""

# Numbers on x86_64 and on aarch64; -1: it is not there.
DENIED: dict[str, tuple[int, int]] = {
    # Keys of the kernel belong to a user or a session, not to a namespace.
    "add_key": (248, 217),
    "request_key": (249, 218),
    # Memory that belongs to no process, so that nothing counts it.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "mq_open": (240, 180),
    "vmsplice": (278, 75),
    "remap_file_pages": (216, 234),
    "io_setup": (206, 0),
    # Namespaces and mounts: the walls are not built anew from inside.
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    # Other processes.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    # Parts of the kernel that few programs need.
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "fanotify_init": (300, 262),
    "modify_ldt": (154, -1),
    # The machine as a whole.
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "syslog": (103, 116),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "acct": (163, 89),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
}
# Those of which an argument decides.
ASKED: dict[str, tuple[int, int]] = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "mmap": (9, 222),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "keyctl": (250, 219),
}

_NEW_NAMESPACE = 0x7E02_0000
"""CLONE_NEWNS, -CGROUP, -UTS, -IPC, -USER, -PID, -NET of linux/sched.h."""
_SHARED, _ANONYMOUS, _HUGE = 0x01, 0x20, 0x4_0000
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_JOIN_SESSION = 1

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_AND = 0x54
_ALLOW, _REFUSE, _KILL = 0x7FFF_0000, 0x0005_0000, 0x8000_0000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16

Step = tuple[int, int, int, int]
"""One instruction: code, steps to skip if true, steps to skip if false, value."""


def machine() -> str:
    """The architecture, of those that the lists are of.

    Raises:
        UsageError: it is another one.
    """
    result = os.uname().machine
    if result not in _AUDIT:
        raise UsageError(
            f"the sandbox does not know the system calls of {result}; run it on x86_64 or aarch64, "
            "or say unsafe=true (adp: --unsafe-python) to run Python of a model unprotected"
        )
    return result


def number(name: str, architecture: str) -> int:
    """The number of a listed system call; -1 when it is not there."""
    return {**DENIED, **ASKED}[name][0 if architecture == "x86_64" else 1]


def program(architecture: str) -> bytes:
    """The filter, as ``bwrap --seccomp`` takes it: instructions of eight bytes.

    Args:
        architecture: ``x86_64`` or ``aarch64``.
    """
    steps: list[Step] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        # 32-bit programs would have other numbers.
        (_EQUAL, 1, 0, _AUDIT[architecture]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        # The x32 calls of x86_64 are among these; their numbers have the bit 30.
        *_if(_AT_LEAST, NEWEST, errno.ENOSYS),
        # Its arguments lie in memory, where no filter can look; without it clone is used.
        *_if(_EQUAL, number("clone3", architecture), errno.ENOSYS),
    ]
    for numbers in DENIED.values():
        denied = numbers[0 if architecture == "x86_64" else 1]
        if denied >= 0:
            steps += _if(_EQUAL, denied, errno.EPERM)
    for name, child in (
        ("clone", _clone()),
        ("mmap", _mmap()),
        ("socket", _socket()),
        ("socketpair", _socket()),
        ("keyctl", _keyctl()),
    ):
        steps += [(_EQUAL, 0, len(child), number(name, architecture)), *child]
    steps.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _if(test: int, value: int, reason: int) -> list[Step]:
    return [(test, 0, 1, value), (_RETURN, 0, 0, _REFUSE | reason)]


def _argument(place: int) -> Step:
    """Load the lower half of an argument; both architectures store it first."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * place)


def _clone() -> list[Step]:
    return [
        _argument(0),
        *_if(_ANY_BIT, _NEW_NAMESPACE, errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _mmap() -> list[Step]:
    """No shared memory without a file: one mapped page would hold all of it, uncounted."""
    return [
        _argument(3),
        *_if(_ANY_BIT, _HUGE, errno.EPERM),
        (_AND, 0, 0, _SHARED | _ANONYMOUS),
        *_if(_EQUAL, _SHARED | _ANONYMOUS, errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _socket() -> list[Step]:
    """Only families that a network namespace holds in; others reach the host of a machine."""
    return [
        _argument(0),
        (_EQUAL, 6, 0, _UNIX),
        (_EQUAL, 5, 0, _INET),
        (_EQUAL, 4, 0, _INET6),
        (_EQUAL, 0, 2, _NETLINK),
        _argument(2),  # its protocol; 0 is the one that lists networks
        (_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _REFUSE | errno.EAFNOSUPPORT),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _keyctl() -> list[Step]:
    """Nothing but a new session without a name, which has no keys."""
    return [
        _argument(0),
        (_EQUAL, 0, 5, _JOIN_SESSION),
        _argument(1),
        (_EQUAL, 0, 3, 0),
        (_LOAD, 0, 0, _ARGUMENTS + 8 + 4),
        (_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE | errno.EPERM),
    ]
