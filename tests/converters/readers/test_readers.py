"""What holds for every format that is only read: its examples, a proof by change, and mutations."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import adp
from adp.converters.conformance import conformance
from adp.converters.files.limits import ConvertLimits
from adp.converters.framing import lines_as_array
from adp.converters.inputs import collect
from adp.converters.plan import choose
from adp.converters.readers import READERS
from adp.converters.registry import formats
from adp_schema.errors import RecordError
from adp_schema.protocols import SkipRecordError
from tests.effort import examples
from tests.fuzz.leaves import lost, read_lines
from tests.fuzz.mutate import mutate

EXAMPLES = Path(__file__).parent / "examples"
FILES = sorted(path for path in EXAMPLES.rglob("*") if path.is_file())
MUTATIONS = examples(24)


def of(name: str) -> list[Path]:
    return [path for path in FILES if path.relative_to(EXAMPLES).parts[0] == name]


def texts(path: Path) -> list[bytes]:
    """The records of an example, as the reader gets them; none of a database or an archive."""
    data = path.read_bytes()
    if data[:1] not in (b"{", b"["):
        return []
    if (
        path.suffix == ".jsonl"
        and formats.get(path.relative_to(EXAMPLES).parts[0]).container == "session"
    ):
        return [lines_as_array(data)]
    return [line for line in data.splitlines() if line] if path.suffix == ".jsonl" else [data]


@pytest.mark.parametrize("name", sorted(READERS))
def test_every_reader_has_an_example(name):
    assert of(name)


@pytest.mark.parametrize("name", sorted(READERS))
def test_examples_are_recognised_and_read_whole(name, tmp_path):
    """Each by its own format, and no record is put aside."""
    manifest = adp.convert([str(EXAMPLES / name)], str(tmp_path / "store")).manifest
    assert manifest.counts.used == manifest.counts.records > 0
    planned = choose(collect([str(EXAMPLES / name)]), None, None, ConvertLimits())
    assert {file.format for file in planned} == {name}


@pytest.mark.parametrize("name", sorted(READERS))
def test_no_leaf_is_lost_in_silence(name):
    report = conformance(name, [str(EXAMPLES / name)], tries=2)
    assert report.used
    assert [path.path for path in report.silent()] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_every_value_of_an_example_is_in_the_rows(path):
    for data in texts(path):
        assert lost(data, read_lines(path.relative_to(EXAMPLES).parts[0], data)) == []


@pytest.mark.parametrize("name", sorted(READERS))
def test_mutations(name):
    """Whatever happens to a record: it is refused in a sentence, or nothing of it is lost."""
    records = [json.loads(data) for path in of(name) for data in texts(path)]
    for number in range(MUTATIONS if records else 0):
        chance = random.Random(f"{name} {number}")
        data = mutate(chance.choice(records), records, chance)
        try:
            reading = read_lines(name, data)
        except (RecordError, SkipRecordError):
            continue
        try:
            json.loads(data)
        except (ValueError, RecursionError):
            continue  # sanitised: its words are mended
        assert lost(data, reading) == [], data
