"""The entry of the command ``adp``: it answers Ctrl-C while all the rest is imported, too."""

from __future__ import annotations

import sys

from adp.cli.process import STOPPED, ignore_interrupts
from adp.core.collector import collect_seldom, leave_what_is_imported
from adp.core.threads import let_idle_threads_sleep


def run() -> int:
    """Run the command line, and answer Ctrl-C while it is imported too."""
    collect_seldom()
    let_idle_threads_sleep()
    try:
        from adp.cli.main import main

        leave_what_is_imported()
        return main()
    except KeyboardInterrupt:
        ignore_interrupts()
        print("stopped before it began", file=sys.stderr)
        return STOPPED


if __name__ == "__main__":
    sys.exit(run())
