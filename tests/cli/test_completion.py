"""Completion of commands and options, asked for by a shell."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENCE

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")

COMPLETE = """\
eval "$(adp --show-completion)"
COMP_WORDS=({words})
COMP_CWORD={number}
_adp_completion adp
echo "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("adp con", {"convert", "conformance"}),
        ("adp report ''", {"data", "eval"}),
        ("adp head --j", {"--json"}),
    ],
)
def test_bash_completes(words, expected):
    place = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script = COMPLETE.format(words=words, number=len(words.split()) - 1)
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, "PATH": place},
    )  # fmt: skip
    assert (set(done.stdout.split()), done.stderr) == (expected, "")
