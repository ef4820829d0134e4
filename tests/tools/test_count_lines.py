from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "count_lines.py"

MODULE = '''"""A module.

Its docstring has three lines."""

import json  # code

# a comment
WORDS = {
    "a": 1,
    "b": 2,
    "c": 3,
    "d": 4,
    "e": 5,
    "f": 6,
}
SHORT = [
    1,
]


def words(
    text: str,
) -> str:
    """One line."""
    return """
not a docstring
""" + text  # its comment is no code of its own
'''


def test_code_tables_docstrings_and_the_rest(tmp_path):
    package = tmp_path / "src" / "adp" / "core"
    package.mkdir(parents=True)
    (package / "words.py").write_text(MODULE)
    done = subprocess.run(
        [sys.executable, TOOL, tmp_path / "src"], capture_output=True, text=True, check=True
    )
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    assert rows["package"] == ["files", "total", "code", "table", "docstring"]
    # import 1, SHORT 3, signature 3, return 3
    assert rows["adp.core"] == ["1", str(MODULE.count("\n")), "10", "8", "4"]
    assert rows["all"] == rows["adp.core"]
