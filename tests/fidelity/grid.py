"""The grid: every file of a folder, every record of it, every target."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fidelity import exact
from tests.fidelity.check import Bounds, Finding, Notes, Source, Trial
from tests.fidelity.product import LINES, Product, Reading, names
from tests.fidelity.promises import check_promises, check_same
from tests.fidelity.structure import check_structure

SMALL = 40_000
"""Characters of a record whose structure is changed too."""

LARGEST = 30_000_000


@dataclass
class Grid:
    """What was seen of a folder.

    Attributes:
        files: files by what became of them.
        records: (source, target) -> number of records that were checked.
        findings: what is lost in silence, with the file's name.
        alarms: reports of losses that are none.
        cut: places that were not tried, for want of time.
    """

    files: Counter[str] = field(default_factory=Counter)
    records: Counter[tuple[str, str]] = field(default_factory=Counter)
    findings: list[tuple[str, Finding]] = field(default_factory=list)
    alarms: list[tuple[str, Finding]] = field(default_factory=list)
    cut: int = 0
    seconds: float = 0.0

    def take(self, name: str, notes: Notes, targets: list[str]) -> None:
        """Add what was found."""
        self.records.update((notes.source.format, target) for target in targets)
        self.findings += [(name, finding) for finding in notes.findings]
        self.alarms += [(name, finding) for finding in notes.alarms]


def check_folder(folder: Path, seconds: float, seed: int = 1, report: Any = None) -> Grid:
    """Check the files of a folder until the time is up.

    Args:
        folder: files of any format; what the product refuses is counted.
        seconds: time for all of them; each file gets an equal share of what is left.
        seed: chooses the records of a large file.
        report: called with a line for each file.
    """
    grid, product = Grid(), Product()
    started = time.monotonic()
    try:
        known = _recognised(grid, product, folder)
        for number, (path, reading) in enumerate(known):
            left = started + seconds - time.monotonic()
            share = 2 * left / (len(known) - number)
            before = len(grid.findings)
            grid.files[_check_file(grid, product, path, reading, folder, share, seed)] += 1
            if report:
                report(f"{path.relative_to(folder)}: {len(grid.findings) - before} silent")
    finally:
        product.close()
    grid.seconds = time.monotonic() - started
    return grid


def _recognised(grid: Grid, product: Product, folder: Path) -> list[tuple[Path, Reading]]:
    """The files that the product reads; what it refuses is counted."""
    results = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        reading = None if path.stat().st_size > LARGEST else product.read_path(path, None)
        if reading is None:
            grid.files["refused by the product, with a reason, or over 30 MB"] += 1
        else:
            results.append((path, reading))
    return results


def _check_file(
    grid: Grid,
    product: Product,
    path: Path,
    reading: Reading,
    folder: Path,
    share: float,
    seed: int,
) -> str:
    """Check one file; the answer says what became of it."""
    name = str(path.relative_to(folder))
    try:
        raw = path.read_bytes().decode("utf-8-sig")
        records = list(split(raw, reading.format))
    except (ValueError, RecursionError):
        product.forget(reading)
        return "read, but not walked (no plain JSON)"
    bounds = Bounds(1, time.monotonic() + share)
    whole = Notes(Source(reading.format, [], path.suffix, raw))
    check_same(whole, reading, raw)
    grid.take(name, whole, [])
    product.forget(reading)
    random.Random(seed).shuffle(records)
    for number, source in enumerate(records):
        if number and time.monotonic() > (bounds.deadline or 0):
            grid.cut += 1
            continue
        check_record(grid, product, source, bounds, name, names())
    grid.cut += bounds.cut
    return "checked"


def check_record(
    grid: Grid, product: Product, source: Source, bounds: Bounds, name: str, targets: list[str]
) -> None:
    """Try one record in all targets."""
    trial = Trial(product, source, targets, bounds)
    if trial.base is None:
        return
    trial.values()
    check_promises(trial)
    if len(source.text(source.tree)) < SMALL:
        check_structure(trial)
    trial.close()
    grid.take(name, trial, targets)


def split(raw: str, name: str) -> Iterator[Source]:
    """The records of a file, each as a file of its own.

    Raises:
        ValueError: the file is no JSON and no JSON Lines.
    """
    lines = [line for line in raw.split("\n") if line.strip()]
    if name in LINES:
        yield Source(name, [exact.parse(line) for line in lines], ".jsonl")
        return
    try:
        tree = exact.parse(raw)
    except ValueError:
        for line in lines:
            yield Source(name, [exact.parse(line)], ".jsonl")
        return
    if isinstance(tree, list):
        yield from (Source(name, [record]) for record in tree if isinstance(record, dict))
    else:
        yield Source(name, tree)
