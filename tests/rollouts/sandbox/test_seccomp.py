"""The filter of system calls, read by a slow reader of its own."""

from __future__ import annotations

import errno
import os
import re
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.sandbox import seccomp
from adp.rollouts.sandbox.command import bubblewrap
from adp_schema.errors import UsageError

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
MACHINES = pytest.mark.parametrize("machine", AUDIT)


def decided(machine, number, *arguments, audit=None):
    """What the kernel does with a call: None allows it, else the error or ``kill``."""
    filled = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<iIQ6Q", number, audit or AUDIT[machine], 0, *filled)
    steps = list(struct.iter_unpack("=HBBI", seccomp.program(machine)))
    place = held = 0
    while True:
        code, yes, no, value = steps[place]
        place += 1
        if code == 0x20:
            (held,) = struct.unpack_from("<I", data, value)
        elif code == 0x54:
            held &= value
        elif code == 0x06:
            return {0x7FFF: None, 0x5: value & 0xFFFF, 0x8000: "kill"}[value >> 16]
        else:
            true = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[code]
            place += yes if true else no


@MACHINES
def test_the_listed_calls_are_refused_and_those_of_another_architecture_kill(machine):
    for name in seccomp.DENIED:
        number = seccomp.number(name, machine)
        if number >= 0:
            assert decided(machine, number) == errno.EPERM, name
    for audit in {*AUDIT.values(), 0x40000003, 0x40000028} - {AUDIT[machine]}:
        assert decided(machine, 39, audit=audit) == "kill"


@MACHINES
def test_numbers_are_those_of_the_headers(machine):
    if not HEADERS[machine].exists():
        pytest.skip("the headers of Linux are not installed")
    text = HEADERS[machine].read_text(encoding="utf-8")
    known = {
        name: int(number)
        for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)
    }
    for name in {**seccomp.DENIED, **seccomp.ASKED}:
        assert seccomp.number(name, machine) == known.get(name, -1), name


@MACHINES
@given(number=st.integers(0, 2**31 - 1))
def test_what_is_younger_than_the_list_or_x32_is_not_there(machine, number):
    listed = {seccomp.number(name, machine) for name in {**seccomp.DENIED, **seccomp.ASKED}}
    if number >= seccomp.NEWEST:
        assert decided(machine, number) == errno.ENOSYS
    elif number not in listed:
        assert decided(machine, number) is None


@MACHINES
@given(arguments=st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6), data=st.data())
def test_arguments_decide(machine, arguments, data):
    def asked(name, *begin):
        number = seccomp.number(name, machine)
        return decided(machine, number, *begin, *arguments[len(begin) :])

    assert asked("clone3") == errno.ENOSYS
    flags = arguments[0]
    assert asked("clone") == (errno.EPERM if flags & 0x7E020000 else None)
    flags = arguments[3]
    shared = flags & 0x21 == 0x21 or flags & 0x40000
    assert asked("mmap") == (errno.EPERM if shared else None)
    family = data.draw(st.sampled_from([1, 2, 10, 16]) | st.integers(0, 50))
    protocol = data.draw(st.integers(0, 3))
    inside = family in (1, 2, 10) or (family == 16 and protocol == 0)
    for name in ("socket", "socketpair"):
        result = asked(name, family, arguments[1], protocol)
        assert result == (None if inside else errno.EAFNOSUPPORT)
    what, where = data.draw(st.integers(0, 3)), data.draw(st.sampled_from([0, 1, 1 << 40]))
    allowed = what == 1 and where == 0
    assert asked("keyctl", what, where) == (None if allowed else errno.EPERM)


def test_on_an_unknown_architecture_it_refuses(monkeypatch):
    real = os.uname()
    monkeypatch.setattr(os, "uname", lambda: type(real)([*real[:4], "riscv64"]))
    with pytest.raises(UsageError, match="system calls of riscv64"):
        seccomp.machine()
    with pytest.raises(UsageError):
        bubblewrap()
