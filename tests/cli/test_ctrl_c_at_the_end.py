"""Ctrl-C when a command has ended and Python has not."""

import subprocess
import sys

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
