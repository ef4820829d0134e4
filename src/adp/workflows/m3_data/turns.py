"""From files of M3's raw benchmark to a store of ground truth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adp.core.progress import Progress, Silent
from adp.workflows.m3_data.folder import check_output, write_store
from adp.workflows.m3_data.raw import LeftOutError, ground_truth_of
from adp.workflows.m3_data.report import M3DataReport
from adp_schema.errors import InputError


def make_turns(
    sources: Sequence[str],
    out: str,
    *,
    dataset: str | None = None,
    progress: Progress | None = None,
) -> M3DataReport:
    """Make turns of raw samples. A sample that cannot be used is left out, counted and named.

    Args:
        sources: JSON files, each a list of samples of one domain; or folders of them.
        out: folder of the new store.
        dataset: name of the data set.
        progress: told how far it is, in samples.

    Raises:
        InputError: a file is missing or no list of samples.
        OutputExistsError: the output holds something.
        EmptyResultError: no sample is left.
    """
    check_output(out)
    files = _files(sources)
    watch, report = progress or Silent(), M3DataReport()
    records: dict[str, list[Any]] = {}
    for name, path in files.items():
        samples = _samples(path)
        watch.total(len(samples))
        report.total[name] = len(samples)
        records[name] = []
        for number, sample in enumerate(samples, 1):
            try:
                record = ground_truth_of(sample)
            except LeftOutError as error:
                report.leave_out(name, number, sample, error)
            else:
                records[name].append(record)
                answers = [turn[-1]["answer"] for turn in record["trajectory"]]
                report.keep(name, record, [length_of(answer) for answer in answers])
            watch.advance(1)
    write_store(out, records, report, dataset=dataset)
    return report


def length_of(answer: Any) -> int:
    """Items of a raw answer; 1 for what is no list."""
    return len(answer) if isinstance(answer, list) else 1


def _files(sources: Sequence[str]) -> dict[str, Path]:
    """The files by the names that they get."""
    files: dict[str, Path] = {}
    for source in map(Path, sources):
        if not source.exists():
            raise InputError(f"there is no {source}")
        found_files = sorted(source.rglob("*.json")) if source.is_dir() else [source]
        for path in found_files:
            name = str(path.relative_to(source)) if source.is_dir() else f"{path.stem}.json"
            if name in files:
                raise InputError(f"{files[name]} and {path} have one name; rename one of them")
            files[name] = path
    if not files:
        raise InputError(f"there is no JSON file in {', '.join(sources)}")
    return files


def _samples(path: Path) -> list[Any]:
    try:
        samples = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(samples, list):
        raise InputError(f"{path} is no list of samples; M3's raw files are one list a domain")
    return samples
