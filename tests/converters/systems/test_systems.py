"""What holds for every format of the systems: equal again, nothing lost, nothing invented."""

from __future__ import annotations

import json
import random

import pytest

import adp
from adp.converters.conformance import conformance
from adp.converters.registry import BUILTIN, formats
from adp.converters.systems import SYSTEMS
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.protocols import Match
from tests.conservation import missing, nest, tokens, write_back
from tests.converters.systems.records import RECORDS
from tests.converters.test_edits import runs_of
from tests.effort import examples
from tests.fuzz.check import check
from tests.fuzz.mutate import mutate
from tests.roundtrip import read_one
from tools.tables.column_table import column_table

CASES = [(name, n) for name in sorted(RECORDS) for n in range(len(RECORDS[name]()))]
MUTATIONS = examples(60)


def data_of(name: str, number: int) -> bytes:
    return json.dumps(RECORDS[name]()[number], ensure_ascii=False).encode()


def test_each_format_has_records():
    assert sorted(RECORDS) == sorted(SYSTEMS)


@pytest.mark.parametrize(("name", "number"), CASES)
def test_a_record_comes_back_equal(name, number):
    data, losses = data_of(name, number), Losses()
    written, _ = write_back(name, read_one(formats.get(name), data), losses)
    assert [tokens(record) for record in written] == [tokens(data)]
    assert losses.items == []


@pytest.mark.parametrize(("name", "number"), CASES)
def test_a_record_is_recognised_by_its_format_alone(name, number):
    record = jsontext.decode_object(data_of(name, number))
    marks = {other: formats.get(other).sniff(record) for other in formats}
    best = max(marks.values())
    assert [other for other, mark in marks.items() if mark == best] == [name]


@pytest.mark.parametrize("layout", ["lines", "array", "indented"])
@pytest.mark.parametrize("name", sorted(RECORDS))
def test_files_come_back_byte_for_byte(name, layout, tmp_path):
    records = RECORDS[name]()
    source = tmp_path / "in" / ("rows.jsonl" if layout == "lines" else "rows.json")
    source.parent.mkdir()
    if layout == "lines":
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in records)
    else:
        text = json.dumps(records, indent=4 if layout == "indented" else None, ensure_ascii=False)
    source.write_text(text, "utf-8")
    store = adp.convert(source, tmp_path / "store")
    assert store.manifest.counts.used == len(records)
    report = adp.export(store, name, tmp_path / "out")
    assert report.losses == {}
    assert (tmp_path / "out" / source.name).read_bytes() == source.read_bytes()


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_no_leaf_is_lost_in_silence(name, tmp_path):
    lines = [data_of(name, n) for n in range(len(RECORDS[name]()))]
    (tmp_path / "rows.jsonl").write_bytes(b"\n".join(lines))
    report = conformance(name, [str(tmp_path)], tries=2)
    assert report.used
    assert [path.path for path in report.silent()] == []


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_mutations(name):
    """Refused in a sentence; or equal again, and every word is in another format or reported."""
    chance, records = random.Random(name), RECORDS[name]()
    others = sorted(BUILTIN)
    strangers = [row for rows in RECORDS.values() for row in rows()]
    for _ in range(MUTATIONS):
        data = mutate(chance.choice(records), strangers, chance)
        assert check(name, chance.choice(others), data).wrong is None, data


@pytest.mark.parametrize("name", sorted(RECORDS))
@pytest.mark.parametrize("source", sorted(BUILTIN))
def test_runs_of_other_formats_arrive_or_are_reported(source, name):
    converter = formats.get(name)
    for run in nest(runs_of(source), converter):
        losses = Losses()
        record = converter.write(run, losses)
        data = jsontext.encode(record)
        back = read_one(converter, data)
        assert converter.sniff(jsontext.decode_object(data)) > Match.NO
        gone = [piece for piece, _ in missing([run], back, losses)]
        # Calls and results stand in the texts of these formats, as they do in the source.
        texts = " ".join(map(str, _words(back)))
        assert [piece for piece in gone if not _stands_in(piece, texts)] == []


def _words(runs):
    """What the steps say, their thoughts, and the final answers."""
    for run in runs:
        yield run.final_answer or ""
        for step in run.steps:
            yield from (step.text or "", step.reasoning or "")


def _stands_in(piece, texts: str) -> bool:
    kind, value = piece
    if kind == "argument":
        value = json.loads(value[1]) if value[1][:1] == '"' else value[1]
    return str(value) in texts or json.dumps(value)[1:-1] in texts


def test_every_column_is_written_or_reported():
    table = column_table({name: formats.get(name) for name in SYSTEMS})
    assert all(word.startswith("written") for word in table["steps.text"].values())
