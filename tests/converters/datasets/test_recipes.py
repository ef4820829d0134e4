"""What holds for every recipe that comes with the package: its examples, and where values go."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

import adp
from adp.converters.conformance import conformance
from adp.converters.datasets import catalogue
from adp.converters.files.limits import ConvertLimits
from adp.converters.framing import frames
from adp.converters.inputs import collect
from adp.converters.plan import choose
from adp.converters.registry import formats
from adp.converters.user_format import is_written
from adp_schema import extra_column, jsontext
from adp_schema.errors import RecordError
from adp_schema.protocols import SkipRecordError
from tests.effort import examples
from tests.fuzz.leaves import DECIDING, KeptValues, leaves, read_lines
from tests.fuzz.mutate import mutate

MUTATIONS = examples(12)
EXAMPLES = Path(__file__).parent / "examples"
NAMES = catalogue.names()


def example_files(name: str) -> list[Path]:
    return sorted(path for path in (EXAMPLES / name).rglob("*") if path.is_file())


FILES = [path for name in NAMES for path in example_files(name)]


def planned(path: Path):
    return choose(collect([str(path)]), None, None, ConvertLimits())


def records(path: Path) -> list[bytes]:
    """The records of an example, as the reader gets them."""
    (file,) = planned(path)
    return [frame.data for piece in file.pieces for frame in frames(piece)]


@pytest.mark.parametrize("name", NAMES)
def test_every_recipe_has_an_example(name):
    assert example_files(name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_examples_are_recognised_and_read(path, tmp_path):
    """Each by its own recipe alone, and every record becomes runs or tasks."""
    name = path.relative_to(EXAMPLES).parts[0]
    assert [file.format for file in planned(path)] == [name]
    store = adp.convert([str(path)], str(tmp_path / "store"))
    counts = store.manifest.counts
    assert counts.used == counts.records > 0
    assert store.manifest.rows("trajectories") + store.manifest.rows("tasks") > 0
    assert store.manifest.unknown == {}


def rebuilt_texts(reading) -> set[str]:
    """Texts that were cut into turns, put together again from the turns of each run.

    Runs that stand in one text have its name and a number as their id.
    """
    names = {
        row["trajectory_id"]: re.sub(r"_\d+$", "", row["source_id"] or "")
        for row in reading.rows["trajectories"]
    }
    texts: dict[str, list[tuple[int, int, int, str]]] = {}
    for table in ("steps", "observations"):
        for row in reading.rows[table]:
            fields = extra_column.unpack(row["extra"]).fields
            before, after = json.loads(bytes(fields["cut"])) if "cut" in fields else ("", "")
            run = row["trajectory_id"]
            key = f"{run} cut" if "cut" in fields else run
            place = (row["step"], row.get("order", -1) if table == "observations" else -1)
            text = before + (row["text"] or "") + after
            texts.setdefault(key, []).append((0, *place, text))
            number = list(names).index(run)
            texts.setdefault(names[run], []).append((number, *place, text))
    return {"".join(text for *_, text in sorted(parts)) for parts in texts.values()}


def lost(name: str, data: bytes) -> list[str]:
    """The texts and numbers of a record that stand nowhere in its rows."""
    reading = read_lines(name, data)
    kept = KeptValues(reading)
    cut = rebuilt_texts(reading)
    todo, missing = list(leaves(json.loads(data), kept=kept.words)), []
    while todo:
        path, key, value = todo.pop()
        decides = key in (*DECIDING, "channel") or (
            key == "from" and catalogue.shipped(name).recipe.overlaid
        )
        if value in ("", None) or isinstance(value, bool) or decides:
            continue
        word = str(value)
        if word in cut or kept.holds(key, word) or kept.reports(path):
            continue
        if word[:1] in "[{":
            try:
                todo.extend(leaves(json.loads(word), path, key, kept.words))
                continue
            except ValueError:
                pass
        missing.append(f"{path} = {word[:60]}")
    return missing


OVERLAID = [
    path
    for path in FILES
    if is_written(formats.get(catalogue.shipped(path.relative_to(EXAMPLES).parts[0]).stored_as))
]
"""What is written again by its format: it comes back byte by byte, which is more to ask."""


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if path not in OVERLAID],
    ids=lambda path: f"{path.parent.name}-{path.name}",
)
def test_every_value_of_an_example_is_in_the_rows(path):
    name = path.relative_to(EXAMPLES).parts[0]
    for data in records(path):
        assert lost(name, data) == []


@pytest.mark.parametrize("name", NAMES)
def test_no_leaf_is_lost_in_silence(name):
    report = conformance(name, [str(EXAMPLES / name)], tries=2)
    assert report.used
    assert [path.path for path in report.silent()] == []


@pytest.mark.parametrize("path", OVERLAID, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_a_format_reads_comes_back_byte_by_byte(path, tmp_path):
    name = path.relative_to(EXAMPLES).parts[0]
    store = adp.convert([str(path)], str(tmp_path / "store"))
    report = adp.export(store, catalogue.shipped(name).stored_as, str(tmp_path / "out"))
    assert not report.losses
    (written,) = [it for it in (tmp_path / "out").rglob("*") if it.is_file()]
    assert written.read_bytes() == path.read_bytes()


def test_a_lost_value_is_noticed(monkeypatch):
    from adp.converters.kit.source_object import SourceObject

    data = records(EXAMPLES / "api_bank" / "AddBoat-level-1-1.jsonl")[0]
    rows = json.loads(data)
    changed = json.dumps([{**rows[0], "unheard": "of"}, *rows[1:]]).encode()
    assert lost("api_bank", changed) == []
    rest = SourceObject.rest
    monkeypatch.setattr(
        SourceObject, "rest", lambda it: {k: v for k, v in rest(it).items() if k != "unheard"}
    )
    assert lost("api_bank", changed) == ["$[0].unheard = of"]


def test_the_names_of_readers_and_hooks_are_there():
    for name in NAMES:
        recipe = catalogue.shipped(name).recipe
        if recipe.overlaid is not None:
            assert recipe.overlaid in formats
        if recipe.hook is not None:
            assert re.fullmatch("[a-z0-9_]+", recipe.hook)
            __import__(f"adp.converters.datasets.hooks.{recipe.hook}")


@pytest.mark.parametrize("name", NAMES)
def test_mutations(name):
    """Whatever happens to a record: it is refused in a sentence, or nothing of it is lost.

    What an overlaid format reads has tests of its own for this; here it must not fail.
    """
    seeds = [json.loads(data) for path in example_files(name) for data in records(path)]
    is_overlaid = catalogue.shipped(name).recipe.overlaid is not None
    for number in range(MUTATIONS):
        chance = random.Random(f"{name} {number}")
        data = mutate(chance.choice(seeds), seeds, chance)
        try:
            missing = lost(name, data) if not is_overlaid and jsontext.is_valid(data) else []
            read_lines(name, data)
        except (RecordError, SkipRecordError):
            continue
        assert missing == [], data
