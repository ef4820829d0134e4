"""The entry of the command ``adp``: it answers Ctrl-C while all the rest is imported, too."""

from __future__ import annotations

import sys

from adp.cli.process import STOPPED, ignore_interrupts


def run() -> int:
    """Run the command line, and answer Ctrl-C while it is imported too."""
    try:
        from adp.cli.main import main

        return main()
    except KeyboardInterrupt:
        ignore_interrupts()
        print("stopped before it began", file=sys.stderr)
        return STOPPED


if __name__ == "__main__":
    sys.exit(run())
