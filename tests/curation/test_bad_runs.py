"""Recipes, columns and folders that come from somebody who means no good, or has odd names."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from adp.curation.diff import diff
from adp.curation.linked import materialise
from adp_schema.errors import RecipeError
from adp_schema.store import Store
from tests.curation.recipes import balanced, contents, curate
from tests.curation.small_runs import make


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """A folder with a store of attempts."""
    return make(tmp_path_factory.mktemp("runs"), tasks=5, attempts=2)


GIVEN = """
import polars as pl
from adp.curation.op import OpResult

def give(pool, options):
    seq = pool.members["seq"]
    return {
        "text": pl.DataFrame({"seq": seq.cast(pl.String), "x": seq}),
        "float": pl.DataFrame({"seq": seq.cast(pl.Float64), "x": seq}),
        "null": pl.DataFrame({"seq": [None], "x": [1]}, schema_overrides={"seq": pl.Int64}),
        "none": pl.DataFrame({"x": [1]}),
        "nameless": pl.DataFrame({"seq": seq, "": seq}),
        "empty": pl.DataFrame({"seq": seq, "x": [{}] * len(seq)}),
        "wide": pl.DataFrame({"seq": seq, "x": seq.cast(pl.Int128)}),
        "capital": pl.DataFrame({"seq": seq, "Reward": seq}),
        "table": pl.DataFrame({"seq": seq, "license": seq}),
        "fine": pl.DataFrame({"seq": seq.cast(pl.Int32), 'a "b': seq, "\\n": seq}),
    }[options["kind"]]
"""


TOOLS_OP = """
import polars as pl
from adp.curation.op import Op, OpOptions, OpResult

def run(pool, options):
    return OpResult(columns=pool.members.select("seq", tools=pl.lit(1)))

OP = Op(
    name="own", title="Own.", options=OpOptions, run=run, cost="None.", source="Own.",
    columns=lambda options: {"tools": "One."},
)
"""


def test_a_column_that_every_trajectory_has_needs_a_name_before_it(runs, tmp_path):
    (tmp_path / "own.py").write_text(TOOLS_OP)
    more = {"folder": tmp_path, "allow_python": True}
    inputs = {"runs": str(runs / "store")}
    with pytest.raises(RecipeError) as caught:
        curate(inputs, None, {"own.py:OP": {}}, **more)
    assert str(caught.value) == (
        "stage python: the column tools is there already, every trajectory has it; name the stage, "
        "and its columns begin with that name: as stands beside the op, not in its options, such "
        "as {python: {...}, as: mine}"
    )
    named = {"own.py:OP": {}, "as": "mine"}
    assert "mine_tools" in curate(inputs, None, named, **more).state.rows.columns
    twice = {"annotate": {"expressions": {"x": "1"}}}
    with pytest.raises(RecipeError, match="x is there already, an earlier stage gives it"):
        curate(inputs, None, twice, twice)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("text", "gives seq as String; give whole numbers"),
        ("float", "gives seq as Float64; give whole numbers"),
        ("null", "gives rows without seq"),
        ("none", "gives no column seq"),
        ("nameless", "a column without a name"),
        ("empty", "which cannot be kept; cast it"),
        ("wide", "which cannot be kept; cast it"),
        ("capital", "the column Reward is there already, every trajectory has it"),
        ("table", "the column license is there already"),
        ("fine", None),
    ],
)
def test_columns_that_cannot_be_kept_are_named(kind, message, runs, tmp_path):
    (tmp_path / "own.py").write_text(GIVEN)
    ops = [{"python": {"function": "own.py:give", "options": {"kind": kind}}}]
    more = {"folder": tmp_path, "allow_python": True}
    inputs = {"runs": str(runs / "store")}
    if message is None:
        ops.append({"filter": {"sql": '"a ""b" = seq'}})
        curate(inputs, tmp_path / "out", *ops, **more)
        return
    with pytest.raises(RecipeError, match=message):
        curate(inputs, tmp_path / "out", *ops, **more)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["a[1]", "a*", "a?", "a b'\"", "ä{1}"])
def test_names_of_folders_are_no_patterns(name, runs, tmp_path):
    shutil.copytree(runs / "store", tmp_path / name / "store")
    ops = [{"annotate": {"expressions": {"n": "rows"}}}, {"filter": {"sql": "n >= 0"}}]
    for place in ("a1", name):
        curate({"runs": str(tmp_path / name / "store")}, tmp_path / place / "out", *ops)
    assert contents(tmp_path / name / "out") == contents(tmp_path / "a1" / "out")
    assert diff(str(tmp_path / name / "out"), str(tmp_path / "a1/out")).changed == 0


def test_a_long_condition_is_no_name_of_a_file(runs, tmp_path):
    sql = f"task_id IS DISTINCT FROM '{'漢' * 200}'"
    curate({"runs": str(runs / "store")}, tmp_path / "out", {"filter": {"sql": sql}})


def test_a_folder_that_is_made_anew_is_read_anew(runs, tmp_path):
    out = tmp_path / "out"
    (tmp_path / "own.py").write_text(
        "from adp.curation.op import OpResult\n"
        "def weigh(pool, options):\n"
        "    sql = f\"SELECT seq, step, {options['by']} AS loss_weight FROM steps\"\n"
        "    return OpResult(weights=pool.query(sql))\n"
    )
    for by in (0.25, 0.75):
        op = {"python": {"function": "own.py:weigh", "options": {"by": by}}}
        curate({"runs": str(runs / "store")}, out, op, folder=tmp_path, allow_python=True)
        weights = Store.open(str(out)).scan("steps").collect()["loss_weight"]
        assert set(weights.drop_nulls()) == {by}
        shutil.rmtree(out)


def test_sql_that_never_ends_is_stopped(runs, tmp_path):
    op = {"annotate": {"sql": "SELECT i AS seq, 1 AS x FROM range(1_000_000_000_000) t(i)"}}
    with pytest.raises(RecipeError, match="more rows than there are trajectories"):
        curate({"runs": str(runs / "store")}, tmp_path / "out", op)


def test_an_expression_stays_one_expression(runs, tmp_path):
    for sql, output in (
        ("1) AS a, (2", "closes a parenthesis"),
        ("", "is empty"),
        ("1 --", "comme"),
    ):
        with pytest.raises(RecipeError, match=output):
            curate(
                {"runs": str(runs / "store")},
                tmp_path / "out",
                {"annotate": {"expressions": {"x": sql}}},
            )


def test_pairs_of_two_inputs_stay_apart_and_made_up_branches_are_made_again(runs, tmp_path):
    damaged = {"pairs": {"rule": "format_corruption"}}
    first = curate({"made-0": str(runs / "store")}, tmp_path / "a", damaged)
    pairs = first.report["outputs"][0]["pairs"]
    assert pairs > 0
    assert [act.act for act in Store.open(str(tmp_path / "a")).manifest.lineage][-1] == "curate"
    curate({"r": str(runs / "store")}, tmp_path / "b", damaged, name="other")
    both = curate({"a": str(tmp_path / "a"), "b": str(tmp_path / "b")}, tmp_path / "c")
    assert both.report["outputs"][0]["pairs"] == 2 * pairs
    again = curate({"a": str(tmp_path / "a")}, tmp_path / "d", damaged)
    assert again.report["outputs"][0]["pairs"] == 2 * pairs
    names = Store.open(str(tmp_path / "d")).scan("trajectories").collect()["trajectory_id"]
    assert names.n_unique() == len(names)


@pytest.mark.parametrize("outputs", [None, {"a": {}, "b": {}}])
@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize("place", ["curate", ".run"])
def test_a_run_that_is_stopped_while_it_cleans_up_goes_on(
    outputs, link, place, runs, tmp_path, monkeypatch
):
    ops = [{"annotate": {"expressions": {"n": "rows"}}}, {"pairs": {"rule": "format_corruption"}}]
    more = {"link": link, **({"outputs": outputs} if outputs else {})}
    inputs = {"runs": str(runs / "store")}
    whole, out = tmp_path / "whole", tmp_path / "out"
    curate(inputs, whole, *ops, **more)
    remove = shutil.rmtree

    def half(path, *args, **words):
        if Path(path).name.removesuffix(".gone") != place:
            return remove(path, *args, **words)
        files = sorted(entry for entry in Path(path).rglob("*") if entry.name != "plan.json")
        for item in [file for file in files if file.is_file()][::2]:
            item.unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", half)
    with pytest.raises(KeyboardInterrupt):
        curate(inputs, out, *ops, **more)
    monkeypatch.undo()
    curate(inputs, out, *ops, **more)
    assert contents(out) == contents(whole)
    assert not list(out.rglob(".run"))


def test_a_linked_folder_does_not_say_where_else_to_write(runs, tmp_path):
    link = tmp_path / "link"
    curate({"runs": str(runs / "store")}, link, outputs={"a": {}}, link=True)
    file = link / "curation/linked.json"
    file.write_text(file.read_text().replace('"a"', '"../evil"'))
    with pytest.raises(RecipeError, match="names an output"):
        materialise(str(link), str(tmp_path / "out"), {"runs": str(runs / "store")})
    assert not (tmp_path / "evil").exists()
    assert not (tmp_path / "out").exists()


def test_what_a_stage_dropped_is_not_replayed_again(runs, tmp_path):
    (tmp_path / "other").mkdir()
    old = make(tmp_path / "other", tasks=6, attempts=2, seed=2) / "store"
    replay = {"replay": {"buffer": "old", "size": 20, "ratio": 0.5}}
    done = curate(
        {"runs": str(runs / "store"), "old": {"store": str(old), "reserve": True}},
        tmp_path / "out",
        replay,
        {"filter": {"sql": "input = 'runs'"}},
        {**replay, "as": "again"},
    )
    assert done.report["stages"][0]["admitted"] > 0
    balanced(done)
