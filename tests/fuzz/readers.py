"""Mutations of formats that are only read: refused in a sentence, or every value is in the rows."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from adp.converters.framing import lines_as_array
from adp.converters.registry import formats
from adp_schema.errors import RecordError
from adp_schema.protocols import SkipRecordError
from tests.fuzz.check import SECONDS, Outcome
from tests.fuzz.leaves import lost, read_lines

EXAMPLES = Path(__file__).parents[1] / "converters" / "readers" / "examples"


def example_files(name: str) -> list[Path]:
    """The examples of a format."""
    return sorted(path for path in (EXAMPLES / name).rglob("*") if path.is_file())


def example_records(path: Path) -> list[bytes]:
    """The records of an example, as the reader gets them; none of a database or an archive."""
    data = path.read_bytes()
    if data.lstrip()[:1] not in (b"{", b"["):
        return []
    if path.suffix != ".jsonl":
        return [data]
    container = formats.get(path.relative_to(EXAMPLES).parts[0]).container
    lines = [line for line in data.splitlines() if line]
    return [lines_as_array(data)] if container == "session" else lines


def seeds(name: str) -> list[Any]:
    """The records of all examples that are strict JSON."""
    records = []
    for path in example_files(name):
        for data in example_records(path):
            try:
                records.append(json.loads(data))
            except ValueError:
                continue
    return records


def check_reader(name: str, data: bytes) -> Outcome:
    """Read a record and look for each of its values in the rows."""
    started = time.process_time()
    try:
        reading = read_lines(name, data)
    except (RecordError, SkipRecordError):
        return Outcome(read=False)
    except Exception as error:
        return Outcome(read=False, wrong=f"raised {error!r}")
    took = time.process_time() - started
    if took > SECONDS:
        return Outcome(read=True, wrong=f"took {took:.1f} s")
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return Outcome(read=True)  # sanitised, or cut into lines: its words are no longer the same
    missing = lost(data, reading)
    return Outcome(read=True, wrong=f"lost: {missing}" if missing else None)
