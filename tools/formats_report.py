"""Name every file of a folder: read by which format, known but not read, no trace, or unreadable.

    python -m tools.formats_report DATA [--expected FILE]

Run by `make formats-report DATA=...`. A file counts as read when `adp convert` takes it with no
`--from` and uses at least one record. The answers are compared with a list of expected ones, by
path; a difference, or a file that the list does not have, is a failure.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import adp
from adp.converters.files.limits import ConvertLimits
from adp.converters.framing import SIDE_FRAMINGS
from adp.converters.inputs import collect
from adp.converters.known import KnownFormat, kinds_of
from adp.converters.known.head import read_head
from adp.converters.plan import choose
from adp.workflows.doctor import diagnose
from adp_schema.errors import AdpError
from tools.markdown import table

TABLES = ("formats", "formats_new")
"""Folders of samples of formats, of which each file gets a row."""

EXPECTED = Path(__file__).parents[1] / "tests" / "formats_expected.json"


@dataclass
class Answer:
    """What a file is.

    Attributes:
        text: the answer: ``read as FORMAT``, ``known: KIND``, ``no trace: KIND``, ``malformed``,
            ``unknown``, or a fault such as two kinds at once.
        why: more about it.
    """

    text: str
    why: str = ""


def name_file(path: Path) -> Answer:
    """What one file is."""
    kinds = kinds_of(read_head(path.resolve()))
    if len(kinds) > 1:
        return Answer("two kinds at once", ", ".join(kind.name for kind in kinds))
    try:
        files = choose(collect([str(path)]), None, None, ConvertLimits())
    except AdpError as error:
        return _not_read(path, kinds[0] if kinds else None, str(error))
    chosen = next((file for file in files if file.format), files[0])
    return _read(path, str(chosen.format), chosen.why)


def _read(path: Path, name: str, why: str) -> Answer:
    """Convert a file that a format claims, to see that it is really read."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            counts = adp.convert([str(path)], str(Path(folder) / "store")).manifest.counts
        except AdpError as error:
            return Answer(f"claimed by {name}, and not read", str(error))
    numbers = f"used {counts.used} of {counts.records} records, {why}"
    if counts.used == 0:
        return Answer(f"claimed by {name}, and not read", numbers)
    return Answer(f"read as {name}", numbers)


def _not_read(path: Path, kind: KnownFormat | None, why: str) -> Answer:
    if kind is not None:
        return Answer(f"{'known' if kind.is_trace else 'no trace'}: {kind.name}")
    text = path.read_bytes().removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] in (b"{", b"["):
        try:
            _parse(text)
        except (ValueError, RecursionError) as error:
            return Answer("malformed", str(error))
    return Answer("unknown", why.removeprefix(f"{path}: "))


def _parse(text: bytes) -> None:
    """Parse a document, or lines that are one each."""
    try:
        json.loads(text)
    except ValueError:
        first, *more = text.splitlines()
        if not more:
            raise
        for line in (first, *more):
            if line.strip():
                json.loads(line)


def compare(answers: dict[str, Answer], expected: dict[str, str]) -> list[str]:
    """The differences, a sentence each."""
    results = []
    for path, answer in answers.items():
        note = f" ({answer.why})" if answer.why else ""
        if path not in expected:
            results.append(f"{path}: {answer.text}{note}; the list does not have it")
        elif answer.text != expected[path]:
            results.append(f"{path}: {answer.text}{note}; expected: {expected[path]}")
    return results + [f"{path}: is not there" for path in sorted(set(expected) - set(answers))]


def folder_table(folder: Path) -> list[str]:
    """A row a file of a folder: its format and counts, and how complete its runs are; Markdown."""
    report = diagnose([str(folder)])
    heads = (
        *("file", "format", "version", "agent", "records = used + skipped + rejected", "steps"),
        *("calls", "answered", "reasoning", "errors", "missing, or why it is not read"),
    )
    rows = []
    for file in report.files:
        lacking = "; ".join(file.figures.missing()) if file.figures else ""
        form = "beside another" if file.framing in SIDE_FRAMINGS else file.format or "-"
        sums = f"{file.records} = {file.used} + {file.skipped} + {file.rejected}"
        counts = (file.steps, file.calls, file.answered, file.reasoning, file.errors)
        why = lacking or (file.reason or "")
        rows.append(
            (
                file.source_file,
                form,
                file.version or "",
                file.agent or "",
                sums,
                *map(str, counts),
                why,
            )
        )
    lines = [f"## {folder.name}", "", *table(heads, rows), ""]
    lines += [f"- kept, not understood: {kind}: {count}" for kind, count in report.unknown.items()]
    read = len({file.source_file.split("/")[0] for file in report.files if file.trajectories})
    folders = len({file.source_file.split("/")[0] for file in report.files})
    return [*lines, "", f"{read} of {folders} folders give trajectories.", ""]


def main() -> int:
    """Name the files; print the differences, and the table of those in folders of formats."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("data", type=Path, help="folder of files")
    parser.add_argument("--expected", type=Path, default=EXPECTED, help="list of the answers")
    parser.add_argument("--each", action="store_true", help="also print the answer for each file")
    parser.add_argument("--table", nargs="*", default=[], help="folders: a row a file of them")
    options = parser.parse_args()
    for name in options.table:
        print("\n".join(folder_table(options.data / name)))
    if options.table:
        return 0
    paths = sorted(path for path in options.data.rglob("*") if path.is_file())
    if not paths:
        parser.error(f"{options.data} holds no files")
    answers = {path.relative_to(options.data).as_posix(): name_file(path) for path in paths}
    if options.each:
        for path, answer in answers.items():
            print(f"{path}: {answer.text}{f' ({answer.why})' if answer.why else ''}")
    counts = Counter(answer.text for answer in answers.values())
    for text, count in sorted(counts.items()):
        print(f"{count:6} {text}")
    expected = json.loads(options.expected.read_text(encoding="utf-8"))
    wrong = compare(answers, expected)
    for line in wrong:
        print(f"WRONG {line}")
    for name in TABLES:
        if (options.data / name).is_dir():
            print("\n".join(folder_table(options.data / name)))
    print(f"{len(answers)} files, {len(wrong)} answers that differ from {options.expected.name}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
