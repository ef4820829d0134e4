"""Running recipes: ledger, record, links, resuming, what stops before anything is written."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from adp.core.progress import Silent
from adp.curation.apply import apply
from adp.curation.linked import materialise
from adp_schema.errors import AdpError, EmptyResultError, OutputExistsError, RecipeError, StoreError
from adp_schema.store import Store
from tests.curation.recipes import balanced, contents, curate
from tests.stores import any_store
from tests.stores.any_store import Run

HALF = {"python": {"function": "own.py:half"}}
OWN_OP = """
import polars as pl
from adp.curation.op import OpResult

def half(pool, options):
    gone = pool.members.filter(pl.col("seq") % 20 == 0).select(
        "seq", pl.lit("even").alias("reason"), pl.lit(None, dtype=pl.String).alias("evidence"))
    return OpResult(dropped=gone, lines=["dropped the even ones"])

def everything(pool, options):
    gone = pool.members.select(
        "seq", pl.lit("all").alias("reason"), pl.lit(None, dtype=pl.String).alias("evidence"))
    return OpResult(dropped=gone)

def columns(pool, options):
    return pool.members.select("seq", (pl.col("size") * options["by"]).alias("big"))

def twice(pool, options):
    return OpResult(copies=pool.members.select(
        "seq", pl.lit(2).alias("copies"), (pl.col("seq") % 3).alias("stage")))

def weigh(pool, options):
    steps = pool.query("SELECT seq, step, 0.5 AS loss_weight FROM steps ORDER BY seq, step")
    return OpResult(weights=steps, splits=pool.members.select("seq", pl.lit("dev").alias("split")))

def fails(pool, options):
    raise ValueError("no luck")

def nothing(pool, options):
    return 3

def edit(pool, options):
    steps = pool.query("SELECT seq, step, 'mended' AS text FROM steps WHERE step = 0 ORDER BY seq")
    return OpResult(edits=steps)

def foreign(pool, options):
    return OpResult(dropped=pl.DataFrame({"seq": [999], "reason": ["x"], "evidence": [None]},
        schema={"seq": pl.Int64, "reason": pl.String, "evidence": pl.String}))
"""

RUNS = [
    [Run(name=f"r{n}", branch=n in (3, 7), image=n % 3, task=n % 2) for n in range(6)],
    [Run(name=f"s{n}", task=1) for n in range(4)],
]


def python(name: str, **options) -> dict:
    return {"python": {"function": f"own.py:{name}", "options": options}}


@pytest.fixture
def runs(tmp_path) -> Store:
    (tmp_path / "own.py").write_text(OWN_OP)
    return any_store.write(tmp_path / "runs", RUNS, "word")


def do(runs: Store, out: Path | None, *ops, **more):
    folder = Path(runs.root).parent
    return curate({"runs": runs.root}, out, *ops, allow_python=True, folder=folder, **more)


def test_each_trajectory_has_one_end_and_the_stages_add_up(runs, tmp_path):
    done = do(runs, tmp_path / "out", HALF, python("columns", by=3))
    balanced(done)
    kept = Store.open(str(tmp_path / "out")).scan("trajectories").collect()["trajectory_id"]
    ledger = pl.read_parquet(tmp_path / "out/curation/ledger.parquet")
    trajectory_id = ledger.filter(pl.col("verdict") == "kept")["trajectory_id"]
    assert set(trajectory_id) <= set(kept)
    assert ledger.filter(pl.col("verdict") == "dropped")["reason"].unique().to_list() == ["even"]
    assert set(ledger["trajectory_id"]) >= set(kept)
    notes = pl.read_parquet(tmp_path / "out/curation/annotations.parquet")
    big = notes.filter(pl.col("big").is_not_null())
    assert big.height == done.report["stages"][1]["in"] < notes.height
    assert (big["big"] == big["size"] * 3).all()


def test_progress_counts_stages_from_one(runs, tmp_path):
    class Notes(Silent):
        def __init__(self):
            self.lines = []

        def note(self, message):
            self.lines.append(message)

    for count in (1, 2):
        notes = Notes()
        do(runs, None, *[HALF, python("weigh")][:count], progress=notes)
        assert [line for line in notes.lines if line.startswith("stage ")] == [
            f"stage {number} of {count}: python" for number in range(1, count + 1)
        ]


def test_a_branch_goes_with_its_parent(runs, tmp_path):
    do(runs, tmp_path / "out", HALF)
    made = Store.open(str(tmp_path / "out")).scan("trajectories").collect()
    parents = made.filter(pl.col("parent_id").is_not_null())["parent_id"]
    assert set(parents) <= set(made["trajectory_id"])
    assert made.height < runs.manifest.rows("trajectories")


def test_where_lets_an_op_see_a_part(runs, tmp_path):
    done = do(runs, None, {**HALF, "where": "source_id LIKE 's%'"})
    stage = done.report["stages"][0]
    assert 0 < stage["seen"] < stage["in"]
    assert stage["dropped"] < stage["seen"]
    gone = done.ledger.filter(pl.col("verdict") == "dropped")["trajectory_id"]
    assert gone.str.contains("/s").all()


def test_a_dry_run_writes_nothing_and_says_the_same(runs, tmp_path):
    before = sorted(tmp_path.rglob("*"))
    dry = do(runs, None, HALF)
    assert sorted(path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts) == before
    wet = do(runs, tmp_path / "out", HALF)
    assert wet.report == dry.report
    assert wet.ledger.equals(dry.ledger)


def test_copies_come_stage_after_stage_with_ids_of_their_own(runs, tmp_path):
    do(runs, tmp_path / "out", python("twice"))
    made = list(Store.open(str(tmp_path / "out")).trajectories())
    ids = [t.trajectory_id for t in made]
    assert len(set(ids)) == len(ids)
    mains = [t for t in made if t.parent_id is None]
    words = [t.notes for t in mains]
    assert all(words.count(word) == 2 for word in words)
    stages = [int(t.notes.split("-")[1]) for t in mains]
    assert stages != sorted(stages)
    assert [t.seq for t in made] == list(range(len(made)))


def test_weights_and_splits_are_in_the_store(runs, tmp_path):
    do(runs, tmp_path / "out", python("weigh"))
    made = Store.open(str(tmp_path / "out"))
    assert set(made.scan("steps").collect()["loss_weight"]) == {0.5}
    assert set(made.scan("trajectories").collect()["split"]) == {"dev"}


def test_a_repaired_step_says_where_it_comes_from(runs, tmp_path):
    do(runs, tmp_path / "out", python("edit"))
    steps = Store.open(str(tmp_path / "out")).scan("steps").filter(pl.col("step") == 0).collect()
    assert set(steps["text"]) == {"mended"}
    assert set(steps["made_by"]) == {"python"}
    assert steps["made_from_trajectory"].to_list() == steps["trajectory_id"].to_list()


def test_outputs_share_out_what_is_left(runs, tmp_path):
    outputs = {"small": {"where": "source_id LIKE 'r%'"}, "rest": {"where": "source_id LIKE 's%'"}}
    done = do(runs, tmp_path / "out", HALF, outputs=outputs)
    balanced(done)
    small, rest = (Store.open(str(tmp_path / "out" / name)) for name in outputs)
    whole = done.report["stages"][0]["out"]
    assert sum(entry["trajectories"] for entry in done.report["outputs"]) == whole
    assert (
        small.query("SELECT count(*) FROM ledger").to_pylist()
        == rest.query("SELECT count(*) FROM ledger").to_pylist()
    )


def test_a_link_makes_the_same_stores(runs, tmp_path):
    ops = [HALF, python("weigh"), python("twice")]
    do(runs, tmp_path / "direct", *ops)
    do(runs, tmp_path / "linked", *ops, link=True)
    assert not (tmp_path / "linked/adp.json").exists()
    materialise(str(tmp_path / "linked"), str(tmp_path / "later"), {"runs": runs.root})
    assert contents(tmp_path / "later") == contents(tmp_path / "direct")
    with pytest.raises(RecipeError, match="--input runs=STORE"):
        materialise(str(tmp_path / "linked"), str(tmp_path / "x"), {})
    other = any_store.write(tmp_path / "other", RUNS, "else")
    with pytest.raises(StoreError, match="is not the store"):
        materialise(str(tmp_path / "linked"), str(tmp_path / "x"), {"runs": other.root})


@pytest.mark.parametrize("text", ["{", "{}", "[]"])
def test_a_damaged_link_is_one_sentence(text, runs, tmp_path):
    do(runs, tmp_path / "linked", HALF, link=True)
    (tmp_path / "linked/curation/linked.json").write_text(text)
    with pytest.raises(StoreError, match="is damaged or not whole"):
        materialise(str(tmp_path / "linked"), str(tmp_path / "out"), {"runs": runs.root})
    assert not (tmp_path / "out").exists()


def test_a_stopped_run_does_not_repeat_what_is_done(runs, tmp_path, monkeypatch):
    from adp.curation import run as engine

    calls: list[str] = []
    real = engine._call
    monkeypatch.setattr(
        engine, "_call", lambda stage, pool: (calls.append(stage.name), real(stage, pool))[1]
    )
    monkeypatch.setattr(
        engine, "write_stores", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        do(runs, tmp_path / "out", HALF, python("weigh"))
    monkeypatch.undo()
    monkeypatch.setattr(
        engine, "_call", lambda stage, pool: (calls.append(stage.name), real(stage, pool))[1]
    )
    do(runs, tmp_path / "out", HALF, python("weigh"))
    assert calls == ["python", "python"]
    do(runs, tmp_path / "straight", HALF, python("weigh"))
    assert contents(tmp_path / "out") == contents(tmp_path / "straight")
    assert not (tmp_path / "out/.run").exists()


REFUSED = {
    "all": (python("everything"), EmptyResultError, "stage 0 (python) drops the last 9 of 9"),
    "fails": (python("fails"), RecipeError, "failed: ValueError: no luck"),
    "kind": (python("nothing"), RecipeError, "returned int"),
    "absent": (python("absent"), RecipeError, "cannot load the function own.py:absent"),
    "foreign": (python("foreign"), RecipeError, "one that it did not see"),
    "sql": ({"annotate": {"sql": "DROP TABLE steps"}}, AdpError, "a query is one SELECT"),
    "write": (
        {"annotate": {"sql": "COPY (SELECT 1) TO 'x.csv'"}}, AdpError, "a query is one SELECT"
    ),
    "column": ({"annotate": {"expressions": {"a": "sucess"}}}, AdpError, "did you mean success"),
    "where": ({"annotate": {"sql": "SELECT seq FROM pool"}, "where": "1) OR (1"}, AdpError, "pare"),
    "file": ({"annotate": {"file": "losses.csv"}}, RecipeError, "cannot read losses.csv"),
    "clash": ({"annotate": {"expressions": {"size": "1"}}}, RecipeError, "size is there already"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_leaves_nothing_behind(case, runs, tmp_path):
    op, kind, output = REFUSED[case]
    with pytest.raises(kind) as error:
        do(runs, tmp_path / "out", op)
    assert output in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists()


def test_python_needs_leave(runs, tmp_path):
    with pytest.raises(RecipeError, match="allow that with --allow-python"):
        curate({"runs": runs.root}, tmp_path / "out", HALF)
    assert not (tmp_path / "out").exists()


def test_an_output_that_is_there_stays(runs, tmp_path):
    do(runs, tmp_path / "out", HALF)
    before = contents(tmp_path / "out")
    with pytest.raises(OutputExistsError):
        do(runs, tmp_path / "out", HALF)
    assert contents(tmp_path / "out") == before


def test_inputs_that_are_wrong_are_named(runs, tmp_path):
    with pytest.raises(StoreError, match="is not a store"):
        curate({"a": str(tmp_path / "nowhere")}, tmp_path / "out")
    with pytest.raises(RecipeError, match="are the same store"):
        curate({"a": runs.root, "b": runs.root}, tmp_path / "out")
    optional = {"store": str(tmp_path / "nowhere"), "optional": True}
    with pytest.raises(RecipeError, match="none of the inputs is there"):
        curate({"a": optional}, tmp_path / "out")
    done = curate({"a": optional, "b": runs.root}, tmp_path / "out")
    assert [item["name"] for item in done.report["inputs"]] == ["b"]


def test_a_reserve_waits_until_it_is_admitted(runs, tmp_path):
    other = any_store.write(tmp_path / "other", [[Run(name="z")]], "else")
    inputs = {"runs": runs.root, "buffer": {"store": other.root, "reserve": True}}
    done = curate(inputs, tmp_path / "out")
    ends = done.ledger.filter(pl.col("input") == "buffer")
    assert ends["verdict"].to_list() == ["waiting"]
    assert done.report["outputs"][0]["trajectories"] == 9


def test_columns_come_from_a_file(runs, tmp_path):
    ids = [t.trajectory_id for t in runs.trajectories()][:3]
    lines = [json.dumps({"trajectory_id": name, "loss": n / 2}) for n, name in enumerate(ids)]
    (tmp_path / "loss.jsonl").write_text("\n".join(lines))
    done = do(runs, None, {"annotate": {"file": "loss.jsonl"}})
    frame = done.state.rows.filter(pl.col("loss").is_not_null())
    assert frame["loss"].to_list() == [0.0, 0.5, 1.0]


def test_an_op_works_without_a_recipe(runs):
    result = apply("annotate", runs, expressions={"n": "rows + 1"})
    assert result.columns is not None
    assert result.columns.height == 9
    with pytest.raises(RecipeError, match="expresions is not known; did you mean expressions"):
        apply("annotate", runs, expresions={})


def test_the_seed_of_a_stage_hangs_from_its_name():
    from adp.curation.run import stage_seed

    assert stage_seed(1, "mix") == stage_seed(1, "mix")
    assert (
        len(
            {
                stage_seed(1, "mix"),
                stage_seed(2, "mix"),
                stage_seed(1, "m"),
                stage_seed(1, "mix", 1),
            }
        )
        == 4
    )
