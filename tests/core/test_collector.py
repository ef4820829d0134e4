"""The collector of cyclic garbage, as a process ends."""

from __future__ import annotations

import subprocess
import sys

import pytest

_CODE = """
import atexit, gc, sys
atexit.register(lambda: print(gc.get_freeze_count() > 0))  # handlers run in reverse order
from adp.core.collector import collect_seldom, leave_what_is_imported
collect_seldom()
{more}
"""

_QUERY = "import duckdb; duckdb.connect().sql('SELECT 1').fetchall()"


@pytest.mark.parametrize(
    ("more", "frozen"),
    [
        ("import pyarrow", "True"),
        (_QUERY, "False"),
        (f"{_QUERY}; leave_what_is_imported()", "False"),
        (f"import pyarrow; leave_what_is_imported(); {_QUERY}", "True"),
    ],
)
def test_nothing_is_collected_at_the_end_unless_duckdb_would_call_that_a_leak(
    more: str, frozen: str
) -> None:
    """DuckDB prints on stderr what it takes for leaks."""
    command = [sys.executable, "-c", _CODE.format(more=more)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (run.stdout.strip(), run.stderr) == (frozen, "")
