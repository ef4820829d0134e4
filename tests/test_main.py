"""The package is the command, too."""

from __future__ import annotations

import subprocess
import sys

import adp


def test_python_m_adp_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "adp", "--version"], capture_output=True, text=True, check=True
    )
    assert adp.__version__ in done.stdout
