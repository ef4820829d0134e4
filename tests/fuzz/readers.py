"""Mutations of formats that are only read: refused in a sentence, or every value is in the rows."""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from adp.converters.framing import lines_as_array, text_as_record
from adp.converters.plan import first_level
from adp.converters.registry import formats
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.jsontext import replace_surrogates
from adp_schema.protocols import SkipRecordError
from tests.fuzz.check import SECONDS, Outcome
from tests.fuzz.leaves import Reading, lost, read_lines

EXAMPLES = Path(__file__).parents[1] / "converters" / "readers" / "examples"


def example_files(name: str) -> list[Path]:
    """The examples of a format."""
    return sorted(path for path in (EXAMPLES / name).rglob("*") if path.is_file())


def example_records(path: Path) -> list[bytes]:
    """The records of an example, as the reader gets them; none of a database or an archive."""
    data = path.read_bytes()
    if formats.get(path.relative_to(EXAMPLES).parts[0]).container == "text":
        return [text_as_record(data)]
    if data.lstrip()[:1] not in (b"{", b"["):
        return []
    if path.suffix != ".jsonl":
        return [data]
    container = formats.get(path.relative_to(EXAMPLES).parts[0]).container
    lines = [line for line in data.splitlines() if line]
    return [lines_as_array(data)] if container == "session" else lines


@cache
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


def missing_values(name: str, data: bytes, reading: Reading) -> list[str]:
    """What of a record is neither in its rows nor reported: its values, or the lines of a text."""
    if formats.get(name).container != "text":
        return lost(data, reading)
    record = json.loads(data)
    text = record.pop("text") if isinstance(record, dict) else record
    if any(loss["path"] == "$.text" for loss in reading.losses):
        return lost(json.dumps(record).encode(), reading)
    cells = [word for rows in reading.rows.values() for row in rows for word in row.values()]
    kept = "\n".join(str(cell) for cell in cells)
    lines = {re.sub("^(#### ?|> ?|# aider chat started at)", "", it).strip()
             for it in text.split("\n")}  # fmt: skip
    rest = lost(json.dumps(record).encode(), reading)
    lines = {replace_surrogates(line) for line in lines if ";base64," not in line}
    return [*rest, *sorted(line for line in lines if line not in kept)]


ALL = [formats.get(name) for name in formats if formats.get(name).container != "text"]


def _recognise(name: str, data: bytes) -> None:
    """Show the beginning of a record to every format: none of them may raise anything."""
    items = [data] if formats.get(name).container != "text" else []
    if data[:1] == b"[":
        with suppress(msgspec.DecodeError, RecursionError):  # a list that ends too early
            items = jsontext.decode_array(data)[:2]
    for item in items:
        if (record := first_level(bytes(item))) is not None:
            for converter in ALL:
                converter.sniff(record)


def check_reader(name: str, data: bytes) -> Outcome:
    """Read a record and look for each of its values in the rows."""
    started = time.process_time()
    try:
        _recognise(name, data)
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
    missing = missing_values(name, data, reading)
    return Outcome(read=True, wrong=f"lost: {missing}" if missing else None)
