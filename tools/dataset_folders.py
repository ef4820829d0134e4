"""What becomes of each folder of data sets: what reads it, and its runs, tasks, pairs and calls.

    python -m tools.dataset_folders DATA [--write]

Each file is converted alone, with no options. The counts are compared with the expected ones;
``--write`` writes those, and the page with the table, anew. Part of `make formats-report`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import adp
from adp.converters.files.limits import ConvertLimits
from adp.converters.inputs import collect
from adp.converters.plan import choose
from adp_schema.errors import AdpError
from tools.markdown import table

FOLDERS = ("datasets", "datasets_new")
EXPECTED = Path(__file__).parents[1] / "tests" / "dataset_folders_expected.json"
PAGE = Path(__file__).parents[1] / "docs" / "dataset-folders.md"
COUNTED = ("records", "used", "skipped", "rejected", "runs", "tasks", "pairs", "calls", "results",
           "linked")  # fmt: skip
"""What is counted of a file; ``linked`` results are those that belong to a call."""

_NOTE = "ORIGIN.txt"
_HEADS = ("folder", "files", "read as", "records = used + skipped + rejected", "runs", "tasks",
          "pairs", "calls", "linked results", "not read")  # fmt: skip
_TEXT = """\
<!-- Written by `python -m tools.dataset_folders DATA --write`. Change the code, not this page. -->
# Folders of data sets

What `adp convert` makes, with no options, of the rows of {folders} folders of data sets that were
collected to try it. The rows are not part of this repository; `make formats-report` counts them
again, and `tests/dataset_folders_expected.json` has the counts of each file.

A file that holds no run and no task is refused with a reason, which the last column has. Runs
count branches, such as the worse answer of a preference pair. A result that is not linked is one
whose call the source does not have, or a screen that is seen before the first action.

{table}

In all: {totals}.
"""


def files_of(data: Path) -> list[Path]:
    """The files of the folders of data sets; not the notes on where they come from."""
    return [
        path
        for name in FOLDERS
        for path in sorted((data / name).rglob("*"))
        if path.is_file() and path.name != _NOTE
    ]


def count(path: Path) -> dict[str, Any]:
    """What becomes of a file: its format and the counts, or why it is not read."""
    try:
        name = choose(collect([str(path)]), None, None, ConvertLimits())[0].format
        with tempfile.TemporaryDirectory() as folder:
            return {"format": name, **_counts(path, Path(folder) / "store")}
    except AdpError as error:
        reason = str(error).removeprefix(f"{path}: ").split(";")[0]
        return {"format": None, "reason": reason.removeprefix("it looks like ")}


def _counts(path: Path, place: Path) -> dict[str, Any]:
    manifest = adp.convert([str(path)], str(place)).manifest
    counts = manifest.counts
    sums = "select count(*), count(call) from observations"
    ((results, linked),) = zip(*adp.query(str(place), sums).to_pydict().values(), strict=True)
    numbers = (
        counts.records, counts.used, counts.skipped, counts.rejected,
        *(manifest.rows(name) for name in ("trajectories", "tasks", "pairs", "tool_calls")),
        results, linked,
    )  # fmt: skip
    reasons = "; ".join(sorted(manifest.reasons))
    return dict(zip(COUNTED, numbers, strict=True)) | ({"reason": reasons} if reasons else {})


def page(counts: dict[str, dict[str, Any]]) -> str:
    """The page with the table: a row for each folder."""
    folders: dict[str, list[dict[str, Any]]] = {}
    for path, row in counts.items():
        folders.setdefault(path.rpartition("/")[0], []).append(row)
    rows = [_row(name, files) for name, files in folders.items()]
    sums = _sums(counts.values())
    totals = ", ".join(f"{sums[name]:,} {name}" for name in COUNTED)
    return _TEXT.format(folders=len(folders), table="\n".join(table(_HEADS, rows)), totals=totals)


def _sums(rows: Any) -> Counter[str]:
    sums: Counter[str] = Counter()
    for row in rows:
        sums.update({name: row.get(name, 0) for name in COUNTED})
    return sums


def _row(name: str, files: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    sums = _sums(files)
    formats = sorted({file["format"] for file in files if file["format"]})
    whole = f"{sums['records']} = {sums['used']} + {sums['skipped']} + {sums['rejected']}"
    reasons = Counter(file["reason"] for file in files if file.get("reason"))
    return (
        name.partition("/")[2], str(len(files)), ", ".join(formats), whole,
        *(str(sums[key]) for key in ("runs", "tasks", "pairs", "calls")),
        f"{sums['linked']} of {sums['results']}",
        "; ".join(f"{reason} ({number})" for reason, number in sorted(reasons.items())),
    )  # fmt: skip


def differences(counts: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Where counts are not the expected ones, a sentence each."""
    results = []
    for path in sorted({*counts, *expected}):
        if counts.get(path) != expected.get(path):
            results.append(f"{path}: {counts.get(path)}; expected: {expected.get(path)}")
    return results


def main() -> int:
    """Count, and compare or write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("data", type=Path, help="folder with the folders of data sets")
    parser.add_argument("--write", action="store_true", help="write the counts and the page")
    options = parser.parse_args()
    counts = {
        path.relative_to(options.data).as_posix(): count(path) for path in files_of(options.data)
    }
    if options.write:
        text = json.dumps(counts, indent=1, ensure_ascii=False) + "\n"
        EXPECTED.write_text(text, encoding="utf-8")
        PAGE.write_text(page(counts), encoding="utf-8")
        return 0
    wrong = differences(counts, json.loads(EXPECTED.read_text(encoding="utf-8")))
    for line in wrong:
        print(f"WRONG {line}")
    print(f"{len(counts)} files of data sets, {len(wrong)} counts that differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
