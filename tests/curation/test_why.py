"""The story of a trajectory, and how two curations differ."""

from __future__ import annotations

import polars as pl
import pytest

from adp.curation.diff import ABSENT, diff
from adp.curation.why import why
from adp_schema.errors import StoreError
from adp_schema.store import Store
from tests.curation.recipes import curate
from tests.stores import any_store
from tests.stores.any_store import Run

RUNS = [[Run(name=f"r{n}") for n in range(6)]]


@pytest.fixture
def curated(tmp_path):
    (tmp_path / "own.py").write_text(
        "import polars as pl\n"
        "from adp.curation.op import OpResult\n"
        "def drop(pool, options):\n"
        "    gone = pool.where(options['sql']).with_columns(\n"
        "        pl.lit(options['sql']).alias('reason'), pl.lit('{}').alias('evidence'))\n"
        "    return OpResult(dropped=gone)\n"
    )
    store = any_store.write(tmp_path / "runs", RUNS, "word")

    def make(name: str, *conditions: str):
        ops = [{"annotate": {"expressions": {"n": "rows"}}}]
        ops += [
            {"python": {"function": "own.py:drop", "options": {"sql": sql}}, "as": f"s{number}"}
            for number, sql in enumerate(conditions)
        ]
        more = {"allow_python": True, "folder": tmp_path}
        return curate({"runs": store.root}, tmp_path / name, *ops, **more)

    make("a", "source_id IN ('r1', 'r2')", "source_id = 'r3'")
    make("b", "source_id IN ('r2', 'r3')")
    return tmp_path


def test_the_story_names_the_stage_that_dropped_it(curated):
    story = why(str(curated / "a"), "r3")
    assert story.verdict == "dropped"
    notes = {stage["name"]: [n["verdict"] for n in stage["notes"]] for stage in story.stages}
    assert notes == {"annotate": [], "s0": [], "s1": ["dropped"], "output": []}
    assert story.columns["n"] == story.columns["rows"]
    assert story.provenance == {}


def test_the_story_of_one_that_is_kept_goes_back_to_its_file(curated):
    story = why(str(curated / "a"), "r0")
    assert story.verdict == "kept"
    assert story.provenance["source_file"] == "x0.jsonl"
    assert story.lineage == ["convert", "curate"]


def test_any_store_has_a_story(curated):
    story = why(str(curated / "runs"), "r1")
    assert story.verdict is None
    assert story.provenance["source_file"] == "x0.jsonl"


def test_what_is_not_there_is_said(curated):
    with pytest.raises(StoreError, match="no trajectory 'zzz'"):
        why(str(curated / "a"), "zzz")
    with pytest.raises(StoreError, match="is not a store"):
        why(str(curated), "r1")


def test_the_matrix_counts_every_trajectory_once(curated):
    result = diff(str(curated / "a"), str(curated / "b"))
    cells = {(cell["a"], cell["b"]): cell for cell in result.cells}
    assert sum(cell["count"] for cell in result.cells) == 6
    assert (result.same, result.changed) == (3, 3)
    gone = "dropped by s0: source_id IN ('r1', 'r2')"
    there = "dropped by s0: source_id IN ('r2', 'r3')"
    assert cells["kept", "kept"]["count"] == 3
    assert cells[gone, "kept"]["examples"] == ["d1/r1"]
    assert cells[gone, there]["examples"] == ["d0/r2"]
    assert cells["dropped by s1: source_id = 'r3'", there]["examples"] == ["d1/r3"]
    coarse = diff(str(curated / "a"), str(curated / "b"), detail=False)
    assert {(c["a"], c["b"]) for c in coarse.cells} >= {("dropped by s0", "kept")}


def test_a_plain_store_can_be_compared(curated):
    result = diff(str(curated / "runs"), str(curated / "a"))
    assert (result.same, result.changed) == (3, 3)
    other = any_store.write(curated / "other", [[Run(name="q")]], "else")
    cells = diff(other.root, str(curated / "a")).cells
    assert {"a": ABSENT, "b": "kept"}.items() <= cells[0].items()
    assert pl.DataFrame(cells)["count"].sum() == 7


def test_a_copy_has_the_story_of_what_it_repeats(tmp_path):
    from tests.curation.small_runs import make

    runs = make(tmp_path, tasks=5, attempts=1)
    mix = {"mix": {"by": "dataset", "method": "balanced", "epochs": 3, "total": 15}}
    curate({"runs": str(runs / "store")}, tmp_path / "out", mix)
    names = Store.open(str(tmp_path / "out")).scan("trajectories").collect()["trajectory_id"]
    copy = next(name for name in names if name.endswith("#2"))
    story = why(str(tmp_path / "out"), copy)
    assert (story.trajectory_id, story.copy_of, story.verdict) == (copy, copy[:-2], "kept")
    assert story.provenance
    with pytest.raises(StoreError):
        why(str(tmp_path / "out"), f"{copy[:-2]}#x")


@pytest.mark.parametrize("name", ["ledger.parquet", "annotations.parquet", "report.json"])
def test_a_damaged_record_is_one_sentence(curated, name):
    a, b = str(curated / "a"), str(curated / "b")
    (curated / "a" / "curation" / name).write_text("junk")
    with pytest.raises(StoreError, match="is damaged or not whole; make it anew") as error:
        why(a, "r1")
    assert "\n" not in str(error.value)
    if name != "report.json":
        with pytest.raises(StoreError, match="is damaged or not whole; make it anew"):
            diff(a, b)
        with pytest.raises(StoreError, match=r"cannot read .*which the view") as error:
            Store.open(a).query("SELECT 1")
        assert "\n" not in str(error.value)


def test_a_record_that_is_not_whole_is_one_sentence(curated):
    (curated / "a" / "curation" / "annotations.parquet").unlink()
    a, b = str(curated / "a"), str(curated / "b")
    for ask in (lambda: why(a, "r1"), lambda: diff(a, b)):
        with pytest.raises(StoreError, match="is damaged or not whole"):
            ask()
