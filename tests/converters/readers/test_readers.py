"""What holds for every format that is only read: its examples, a proof by change, and mutations."""

from __future__ import annotations

from pathlib import Path

import pytest

import adp
from adp.converters.conformance import conformance
from adp.converters.files.limits import ConvertLimits
from adp.converters.framing import SIDE_FRAMINGS
from adp.converters.inputs import collect
from adp.converters.plan import choose
from adp.converters.readers import READERS
from adp.converters.registry import formats
from tests.effort import examples
from tests.fuzz.cases import make
from tests.fuzz.leaves import lost, read_lines
from tests.fuzz.readers import (
    EXAMPLES,
    check_reader,
    example_files,
    example_records,
    missing_values,
    seeds,
)

MUTATIONS = examples(24)


def main_files(name: str) -> list[Path]:
    """The examples of a format, but for those that are read with another one."""
    planned = choose(collect([str(EXAMPLES / name)]), None, None, ConvertLimits())
    side_files = {it.source_file for it in planned if it.framing in SIDE_FRAMINGS}
    return [
        it
        for it in example_files(name)
        if it.relative_to(EXAMPLES / name).as_posix() not in side_files
    ]


FILES = [path for name in sorted(READERS) for path in main_files(name)]


@pytest.mark.parametrize("name", sorted(READERS))
def test_every_reader_has_an_example(name):
    assert example_files(name)


@pytest.mark.parametrize("name", sorted(READERS))
def test_examples_are_recognised_and_read_whole(name, tmp_path):
    """Each by its own format, and no record is put aside."""
    manifest = adp.convert([str(EXAMPLES / name)], str(tmp_path / "store")).manifest
    assert manifest.counts.used == manifest.counts.records > 0
    planned = choose(collect([str(EXAMPLES / name)]), None, None, ConvertLimits())
    # A recipe may stand over a reader: it names the data set.
    names = {formats.get(file.format).stored_as or file.format for file in planned}
    assert names == {{"swe_agent_rows": "nebius_swe_agent"}.get(name, name)}


@pytest.mark.parametrize("name", sorted(READERS))
def test_no_leaf_is_lost_in_silence(name):
    report = conformance(name, [str(EXAMPLES / name)], tries=1)
    assert report.used
    assert [path.path for path in report.silent()] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_every_value_of_an_example_is_in_the_rows(path):
    for data in example_records(path):
        name = path.relative_to(EXAMPLES).parts[0]
        assert missing_values(name, data, read_lines(name, data)) == []


@pytest.mark.parametrize("name", sorted(READERS))
def test_mutations(name):
    """Whatever happens to a record: it is refused in a sentence, or nothing of it is lost."""
    for number in range(MUTATIONS if seeds(name) else 0):
        data, _ = make(name, 7, number)
        assert check_reader(name, data).wrong is None, data


def test_a_lost_value_is_noticed():
    data = b'[{"type": "session", "id": "s", "cwd": "/x"}]'
    reading = read_lines("pi", data)
    assert lost(data, reading) == []
    assert lost(data.replace(b"/x", b"/elsewhere"), reading) == ["$[0].cwd = /elsewhere"]
