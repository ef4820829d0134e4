"""Records of ground truth become files of M3, and a store of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adp.converters.run import ConvertOptions, convert
from adp.core.progress import Progress
from adp.stores.staged import check_free
from adp.workflows.m3_data.report import M3DataReport
from adp_schema.errors import EmptyResultError, OutputExistsError

RECORDS, LEFT_OUT, STATISTICS = "ground_truth", "left_out.jsonl", "statistics.json"


def files_of(out: str) -> Path:
    """The folder with the files of a store: STORE.m3."""
    path = Path(out)
    return path.with_name(f"{path.name}.m3")


def check_output(out: str) -> None:
    """Check that a store and its files may be written, before anything is asked.

    Raises:
        OutputExistsError: there is a store, or something that is none.
    """
    check_free(Path(out))
    folder = files_of(out)
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if (folder.exists() and not folder.is_dir()) or names - {RECORDS, LEFT_OUT, STATISTICS}:
        raise OutputExistsError(f"{folder} holds something else; choose another -o")


def write_store(
    out: str,
    records: Mapping[str, Sequence[Any]],
    report: M3DataReport,
    *,
    dataset: str | None = None,
    progress: Progress | None = None,
) -> None:
    """Write the files of M3 and the statistics, and convert them into a store.

    Args:
        out: folder of the store; the files come into STORE.m3.
        records: file -> its ground truth.
        report: what became of the samples.
        dataset: name of the data set; None takes it from the store.
        progress: told how far it is.

    Raises:
        EmptyResultError: no sample is left; the files say why.
        OutputExistsError: something cannot be written.
    """
    folder = files_of(out)
    try:
        shutil.rmtree(folder / RECORDS, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / STATISTICS, json.dumps(report.plain(), indent=2) + "\n")
        _write(folder / LEFT_OUT, "".join(json.dumps(line) + "\n" for line in report.lines))
        for name, listed in sorted(records.items()):
            if listed:
                _write(folder / RECORDS / name, json.dumps(listed, indent=1) + "\n")
    except OSError as error:
        raise OutputExistsError(f"cannot write to {folder}: {error.strerror}") from error
    if not report.kept.total():
        raise EmptyResultError(f"no sample is left; {folder / LEFT_OUT} says why of each")
    options = ConvertOptions("m3", dataset=dataset or Path(out).name)
    convert([str(folder / RECORDS)], out, options=options, progress=progress)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
