"""``python -m adp``: the command ``adp``, where scripts are not on the path."""

import sys

from adp.cli.entry import run

if __name__ == "__main__":
    sys.exit(run())
