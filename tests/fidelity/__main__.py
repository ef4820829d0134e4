"""Check over a folder of files that nothing is lost in silence.

python -m tests.fidelity --data DIR --seconds 600 --out found.json

Without --data the records of the tests are checked.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from tests.fidelity.grid import Grid, check_folder
from tests.fidelity.product import names

RECORDS = Path(__file__).parent / "records"


def main() -> int:
    """Run, print the table, and return the exit status: 1 when something is silent."""
    parser = argparse.ArgumentParser(prog="python -m tests.fidelity", description=__doc__)
    parser.add_argument("--data", type=Path, default=RECORDS, help="folder of files")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write all findings as JSON to this file")
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"{options.data} is no folder; name one with files to check")
    grid = check_folder(options.data, options.seconds, options.seed, report=_say)
    print(table(grid))
    for name, finding in grid.findings[:100]:
        print(f"silent: {name}: {finding.line()}")
    for name, finding in grid.alarms[:20]:
        print(f"false alarm: {name}: {finding.line()}")
    if options.out:
        options.out.write_text(json.dumps(figures(grid), indent=1) + "\n", encoding="utf-8")
    return 1 if grid.findings or grid.alarms else 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def table(grid: Grid) -> str:
    """Format by format: records checked, silent losses, false alarms."""
    silent = Counter((finding.source, finding.target) for _, finding in grid.findings)
    alarms = Counter((finding.source, finding.target) for _, finding in grid.alarms)
    lines = ["records/silent/false alarms; a row is a source, a column a target", ""]
    lines.append("".join(f"{word:>16}" for word in ["", *names()]))
    for source in names():
        cells = [
            f"{grid.records[source, target]}/{silent[source, target]}/{alarms[source, target]}"
            for target in names()
        ]
        lines.append("".join(f"{word:>16}" for word in [source, *cells]))
    lines += ["", *(f"{count} files: {what}" for what, count in grid.files.most_common())]
    lines.append(f"{grid.cut} records or places not tried, for want of time; {grid.seconds:.0f} s")
    return "\n".join(lines)


def figures(grid: Grid) -> dict[str, object]:
    """All that was found, for a file."""
    return {
        "files": grid.files,
        "records": {f"{result} -> {two}": count for (result, two), count in grid.records.items()},
        "silent": [{"file": name, **asdict(finding)} for name, finding in grid.findings],
        "false alarms": [{"file": name, **asdict(finding)} for name, finding in grid.alarms],
        "not tried": grid.cut,
        "seconds": round(grid.seconds, 1),
    }


if __name__ == "__main__":
    sys.exit(main())
