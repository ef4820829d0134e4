"""Render the picture of a report in the README, with Chromium: `python -m tools.report_image`.

The report compares the two made-up agents of ``examples/curation/make_runs.py``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGE = ROOT / "docs" / "images" / "report.png"
WIDTH, HEIGHT = 1100, 1000


def main() -> None:
    """Write the picture anew; exit with a sentence where Chromium is not installed."""
    import adp

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("chromium is not installed; on Debian: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        make_runs = ROOT / "examples" / "curation" / "make_runs.py"
        subprocess.run([sys.executable, make_runs, f"{folder}/runs"], check=True)
        adp.convert([f"{folder}/runs/chats"], f"{folder}/store")
        command = [Path(sys.executable).parent / "adp", "report", "eval", f"{folder}/store"]
        subprocess.run([*command, "--name", "Travel agents", "-o", page], check=True)
        options = ["--headless", "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}"]
        # Chromium has no sandbox for the superuser, whom containers often run as.
        options += ["--no-sandbox"] if os.getuid() == 0 else []
        IMAGE.parent.mkdir(exist_ok=True)
        subprocess.run([chromium, *options, f"--screenshot={IMAGE}", page.as_uri()], check=True)


if __name__ == "__main__":
    main()
