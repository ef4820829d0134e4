"""Ctrl-C at moments when a library, or Python itself, gets it: the command ends as stopped."""

from __future__ import annotations

import subprocess
import sys

import pytest

from adp.cli import main
from tests import kill
from tests.waiting import PATIENCE

PROGRAM = """
import atexit, os, signal, sys, threading, time
from adp.cli import entry

def press(*_):
    os.kill(os.getpid(), signal.SIGINT)

def instead(work):
    from adp.cli import main
    main._call = work
{before}
sys.exit(entry.run())
"""

IMPORTING = """
class Finder:
    def find_spec(self, name, path, target=None):
        if name == "typer":
            press()
sys.meta_path.insert(0, Finder())
"""
HIDDEN = """
def work(_):
    try:
        press()
    except KeyboardInterrupt:
        pass
    raise RuntimeError("Query interrupted")
instead(work)
"""
LOST = """
class Last:
    __del__ = press
def work(_):
    Last()
    time.sleep(60)
instead(work)
"""
TWICE = """
from adp.cli import main
def way_on(_):
    press()
    return "; once"
main._way_on = way_on
instead(press)
"""
THREADS = """
def work(_):
    threading.Thread(target=time.sleep, args=(60,)).start()
    press()
atexit.register(print, "cleaned")
instead(work)
"""


def call(before):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before), "--version"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        preexec_fn=kill.listen,
    )


def test_it_changes_neither_the_exit_code_nor_what_is_said():
    ran = call("atexit.register(press)")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("adp ")


@pytest.mark.parametrize(
    ("before", "message"),
    [
        pytest.param(IMPORTING, "stopped before it began", id="while adp is imported"),
        pytest.param(HIDDEN, "stopped", id="a library made another error of it"),
        pytest.param(LOST, "stopped", id="in a finalizer, which cannot raise"),
        pytest.param(TWICE, "stopped; once", id="again, while the first one is answered"),
        pytest.param(THREADS, "stopped", id="while a thread works"),
    ],
)
def test_it_ends_the_command_in_one_sentence(before, message):
    ran = call(before)
    assert (ran.returncode, ran.stderr) == (130, f"{message}\n")
    assert ran.stdout == ("cleaned\n" if before is THREADS else "")


def test_an_error_that_a_library_made_of_it_is_no_bug(monkeypatch, capsys):
    def interrupted(_):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as stop:
            raise RuntimeError("a worker ended") from stop

    monkeypatch.setattr(main, "_call", interrupted)
    assert main.main(["query", "store"]) == 130
    assert capsys.readouterr().err == "stopped\n"
