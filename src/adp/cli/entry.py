"""The entry of the command ``adp``: it answers Ctrl-C while all the rest is imported, too."""

from __future__ import annotations

import atexit
import gc
import sys

from adp.cli.process import STOPPED, ignore_interrupts
from adp.core.threads import let_idle_threads_sleep


def run() -> int:
    """Run the command line, and answer Ctrl-C while it is imported too."""
    # Imports make many objects and hardly any garbage, which the collector would look at each time
    # that 700 more are there: a tenth of the CPU that a small command takes.
    gc.set_threshold(50_000)
    # Else the collector looks at all that was imported once more as the process ends, for nothing.
    atexit.register(gc.freeze)
    let_idle_threads_sleep()
    try:
        from adp.cli.main import main

        return main()
    except KeyboardInterrupt:
        ignore_interrupts()
        print("stopped before it began", file=sys.stderr)
        return STOPPED


if __name__ == "__main__":
    sys.exit(run())
