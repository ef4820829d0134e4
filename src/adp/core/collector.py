"""The collector of cyclic garbage: imports make many objects and hardly any garbage."""

from __future__ import annotations

import atexit
import gc
import sys

_OBJECTS = 50_000


def collect_seldom() -> None:
    """Let the collector pass less often over what is imported, and not once more at the end.

    It would look at all of it each time that 700 more objects are there, a tenth of the CPU that a
    small command takes, and as the process ends, another fifth.
    """
    gc.set_threshold(_OBJECTS)
    atexit.register(leave_what_is_imported)


def leave_what_is_imported() -> None:
    """Let the collector look no more at what is there now.

    Nothing happens once DuckDB is loaded: it takes what nobody collects for a leak, and says so.
    """
    if "_duckdb" not in sys.modules:
        gc.freeze()
