"""Files of agents read by adp and by two rivals, teich and atif-make, in one run.

    python -m benchmarks.rivals DATA --python RIVALS_PYTHON --out benchmarks/results/rivals.json

`make rivals DATA=...` makes the environment of the two. For each file: the calls that each found,
or why it did not read it. A file counts as read when a trajectory came out of it.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from adp.converters.framing import SIDE_FRAMINGS
from adp.workflows.doctor import FileDiagnosis, diagnose

SCRIPT = Path(__file__).with_name("rival_readers.py")
RIVALS = ("teich", "atif-make")


def main() -> int:
    """Read the files, print the table, write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("data", type=Path, help="folder of files")
    parser.add_argument("--python", required=True, help="interpreter that has the rivals")
    parser.add_argument("--out", type=Path, help="write the figures as JSON to this file")
    options = parser.parse_args()
    report = diagnose([str(options.data)])
    files = [
        file for file in report.files if file.framing not in SIDE_FRAMINGS and _is_sample(file)
    ]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rivals.json"
        paths = {file.source_file: str(options.data / file.source_file) for file in files}
        present = [path for path in paths.values() if Path(path).is_file()]
        subprocess.run([options.python, str(SCRIPT), str(out), *present], check=True)
        text = out.read_text(encoding="utf-8")
        rivals = json.loads(text.replace(f"{options.data}/", ""))  # figures name no folder of ours
    rows: dict[str, dict[str, Any]] = {}
    for file in files:
        ours = (
            {"calls": file.calls} if file.trajectories else {"error": file.reason, "crash": False}
        )
        others = rivals["files"].get(file.source_file, {})
        rows[file.source_file] = {"adp": ours, **others}
    totals = {name: summary(name, rows) for name in ("adp", *RIVALS)}
    for name, total in totals.items():
        print(f"{name}: {total}")
    if options.out:
        figures = {
            "versions": {"adp": version("adp"), **rivals["versions"]},
            "python": platform.python_version(),
            "totals": totals,
            "files": rows,
        }
        options.out.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


def _is_sample(file: FileDiagnosis) -> bool:
    """Whether a file is more than a note on the others."""
    return not file.source_file.rpartition("/")[2].startswith(("ORIGIN", "README"))


def summary(name: str, rows: dict[str, dict[str, Any]]) -> dict[str, int]:
    """How much one program read."""
    answers = [row.get(name, {}) for row in rows.values()]
    return {
        "files": len(answers),
        "read": sum("calls" in answer for answer in answers),
        "calls": sum(answer.get("calls", 0) for answer in answers),
        "crashes": sum(bool(answer.get("crash")) for answer in answers),
    }


if __name__ == "__main__":
    raise SystemExit(main())
