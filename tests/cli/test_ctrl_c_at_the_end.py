"""Ctrl-C at moments when a library, or Python itself, is told of it."""

import subprocess
import sys

from adp.cli import main

LATE = """
import atexit, os, signal, sys
from adp.cli.main import main
atexit.register(os.kill, os.getpid(), signal.SIGINT)
sys.exit(main())
"""


def test_it_changes_neither_the_exit_code_nor_what_is_said():
    ran = subprocess.run(
        [sys.executable, "-c", LATE, "--version"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("adp ")


def test_an_error_that_a_library_made_of_it_is_no_bug(monkeypatch, capsys):
    def interrupted(_):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as stop:
            raise RuntimeError("a worker ended") from stop

    monkeypatch.setattr(main, "_call", interrupted)
    assert main.main(["query", "store"]) == 130
    assert capsys.readouterr().err == "stopped\n"
