"""Waiting for another process, thread or server: for the event itself, and never for a fixed time.

A machine may be ten times slower than the one a test was written on, and busy. So a test waits
until what it waits for is there, or until the process that should bring it about has ended.
`PATIENCE` only ends a run that hangs; no test is faster or slower by it.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

PATIENCE = 1800.0
"""Seconds after which something counts as hanging, on a slow and busy machine, too."""


def until(
    there: Callable[[], bool],
    process: subprocess.Popen[bytes] | subprocess.Popen[str] | None = None,
    *,
    pause: float = 0.02,
) -> None:
    """Wait until something is there.

    Args:
        there: asked again and again.
        process: who brings it about; when it ends first, that is a fault.
        pause: seconds between two questions.
    """
    late = time.monotonic() + PATIENCE
    while not there():
        if process is not None and process.poll() is not None and not there():
            raise AssertionError(f"it ended with {process.returncode}: {process.communicate()}")
        assert time.monotonic() < late, "it hangs"
        time.sleep(pause)
