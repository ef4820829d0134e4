"""Threads of the libraries that we use: they must not spin when there is nothing to do."""

from __future__ import annotations

import os


def let_idle_threads_sleep() -> None:
    """Let the threads of OpenBLAS sleep soon; it holds for what is imported or spawned after this.

    By default each of them spins for 2**26 cycles after it was started, which takes a tenth of a
    second of CPU whenever numpy is imported. How many there are, and so every sum, stays the same.
    """
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
