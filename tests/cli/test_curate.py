from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.stores import any_store
from tests.stores.any_store import Run as Described

RECIPE = """\
recipe: 1
name: small
inputs: {runs: runs}
ops:
  - annotate: {expressions: {n: rows}}
outputs: {"": {where: "source_id <> 'r1'"}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    any_store.write(tmp_path / "runs", [[Described(name=f"r{n}") for n in range(4)]], "word")
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_prints_the_stages_and_what_is_next(run, folder):
    done = run("curate", "recipe.yaml", "-o", "out")
    assert done.code == 0
    assert "0  annotate   4        0    4" in done.out
    assert "the store: 3 trajectories" in done.out
    assert "next: adp why out ID" in done.out
    assert run("info", "out").code == 0
    assert "0 errors" in run("validate", "out").out
    rows = run("query", "out", "-c", "SELECT trajectory_id, n FROM annotations WHERE n > 0")
    assert "4 rows" in rows.out


def test_json_is_the_report(run, folder):
    done = run("curate", "recipe.yaml", "-o", "out", "--json")
    report = json.loads(done.out)
    assert report == json.loads((folder / "out/curation/report.json").read_text())
    assert report["outputs"][0]["trajectories"] == 3
    assert done.err == ""


def test_explain_reads_no_data(run, folder):
    (folder / "gone.yaml").write_text(RECIPE.replace("runs: runs", "runs: nowhere"))
    done = run("curate", "gone.yaml", "--explain")
    assert done.code == 0
    assert "0  annotate: Add columns" in done.out
    plan = json.loads(run("curate", "gone.yaml", "--explain", "--json").out)["stages"]
    assert plan[0]["columns"] == {"n": "The expression rows"}


def test_the_record_of_several_outputs_can_be_asked(run, folder):
    both = "outputs={a: {where: source_id = 'r1'}, b: {where: source_id <> 'r1'}}"
    assert run("curate", "recipe.yaml", "-o", "out", "--set", both).code == 0
    for place, runs in (("out", 4), ("out/a", 1)):
        sql = "SELECT (SELECT count(*) FROM trajectories), (SELECT count(*) FROM ledger)"
        done = run("query", place, "-c", sql, "--format", "csv")
        assert done.out.splitlines()[1] == f"{runs},4"


def test_why_there_are_no_pairs(run, folder):
    says = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    Path("chats.jsonl").write_text(4 * (json.dumps({"messages": says}) + "\n"))
    assert run("convert", "chats.jsonl", "-o", "chats").code == 0
    alone = ["--set", "ops=[{pairs: {rule: attempts}}]", "--set", "outputs={p: {take: pairs}}"]
    alone += ["--set", "inputs.runs=chats"]
    done = run("curate", "recipe.yaml", "--dry-run", *alone)
    assert done.code == 10
    assert "no pairs were made; 4 attempts not paired: " in done.err


def test_the_stage_of_wrong_sql_is_named(run, folder):
    ops = ["--set", "ops=[{filter: {sql: nothing > 1}, as: mine}]"]
    done = run("curate", "recipe.yaml", "--dry-run", *ops)
    assert "stage mine: unknown column 'nothing'" in done.err


def test_a_dry_run_and_a_link(run, folder):
    assert "nothing was written" in run("curate", "recipe.yaml", "--dry-run").out
    assert not (folder / "out").exists()
    linked = run("curate", "recipe.yaml", "-o", "linked", "--link")
    assert "next: adp curate linked -o NEW --input runs=STORE" in linked.out
    assert "--input runs=STORE" in run("curate", "linked", "-o", "out").err
    wrong = run("curate", "linked", "-o", "out", "--input", "runs=runs", "--input", "rns=runs")
    assert "unknown input 'rns'; did you mean runs?" in wrong.err
    done = run("curate", "linked", "-o", "out", "--input", "runs=runs")
    assert done.code == 0
    assert "next: adp info out" in done.out


def test_the_schema_is_json(run):
    assert "properties" in json.loads(run("curate", "--schema").out)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "name a recipe"),
        (["recipe.yaml"], 2, "say where the data set goes"),
        (["missing.yaml", "-o", "out"], 2, "cannot read the recipe"),
        (["runs", "-o", "out"], 2, "was not made with adp curate --link"),
        (["recipe.yaml", "-o", "out", "--set", "sed=4"], 2, "did you mean seed"),
        (["recipe.yaml", "-o", "out", "--input", "a=b"], 2, "--input is for linked folders"),
        (["recipe.yaml", "-o", "out", "--set", "inputs.runs=nowhere"], 5, "is not a store"),
        (["recipe.yaml", "-o", "runs"], 5, "holds a store already"),
        (["recipe.yaml", "-o", "out", "--set", "outputs={x: {where: 1 = 2}}"], 10, "takes no traj"),
        (["recipe.yaml", "-o", "out", "--set", "outputs={x: {where: 1 = }}"], 6, "syntax error"),
    ],
)
def test_errors_are_one_sentence(run, folder, words, code, message):
    done = run("curate", *words)
    assert done.code == code
    assert message in done.err
    assert done.err.count("\n") <= 2
    assert not (folder / "out").exists()


def test_why_and_diff(run, folder):
    run("curate", "recipe.yaml", "-o", "a")
    run("curate", "recipe.yaml", "-o", "b", "--set", 'outputs={"": {where: "source_id <> \'r2\'"}}')
    story = run("why", "a", "r1")
    assert "out: no output takes it" in story.out
    assert "1  output: left_out: no output takes it" in story.out
    assert json.loads(run("why", "a", "r1", "--json").out)["verdict"] == "left_out"
    result = run("diff", "a", "b")
    assert "2 the same, 2 changed" in result.out
    assert "d1/r1" in result.out
    assert json.loads(run("diff", "a", "b", "--json").out)["changed"] == 2
    assert run("why", "a", "nobody").code == 5


BAD = """\
inputs: {runs: runs}
seeds: 4
ops:
  - filter: {sqll: success}
  - dedup_near: {threshold: 7, x: 1}
  - filter: {sql: "success AND"}
"""

UNKNOWN = """\
recipe: 1
inputs: {runs: runs}
ops:
  - filter: {sql: "success AND n_calls > 0"}
  - filter: {min: {n_calls: 2}, sql: "len(list_filter(tags, x -> x = 'a')) > 0"}
    where: "callz = 1"
outputs: {train: {where: "splitt = 'train'"}}
"""


def faults_of(done, code=2):
    head, *lines = done.err.splitlines()
    assert done.code == code
    assert head.endswith(f" has {len(lines)} faults:")
    assert all(line.startswith("- ") for line in lines)
    return [line.removeprefix("- ") for line in lines]


def test_all_faults_of_a_recipe_are_shown_at_once(run, folder):
    (folder / "bad.yaml").write_text(BAD)
    faults = faults_of(run("curate", "bad.yaml", "-o", "out"))
    assert faults[0] == "recipe is missing; write recipe: 1"
    assert faults[1] == "ops[0].filter: sqll is not known; did you mean sql?"
    assert [fault[:20] for fault in faults[2:4]] == ["ops[1].dedup_near: t", "ops[1].dedup_near: x"]
    assert "stage filter: syntax error" in faults[4]
    assert faults[5].startswith("seeds is not known; did you mean seed")


def test_the_sql_is_checked_against_the_columns(run, folder):
    (folder / "bad.yaml").write_text(UNKNOWN)
    for words in (["--explain"], ["-o", "out"]):
        faults = faults_of(run("curate", "bad.yaml", *words))
        text = "add `- measure: {}` before it"
        assert faults[0] == f"stage filter: unknown column 'n_calls'; {text}"
        assert faults[1].startswith("stage filter: where: unknown column 'callz'; did you mean")
        assert faults[2] == f"stage filter needs the column n_calls; {text}"
        assert faults[3].startswith("output train: where: unknown column 'splitt'; did you mean")
        assert len(faults) == 4
    (folder / "good.yaml").write_text(UNKNOWN.replace("ops:", "ops:\n  - measure: {}"))
    assert len(faults_of(run("curate", "good.yaml", "--explain"), code=6)) == 2


def test_explain_shows_what_differs_from_the_defaults(run, folder):
    options = ["--set", "ops=[{dedup_near: {threshold: 0.7}}]", "--set", "outputs={a: {}}"]
    short = run("curate", "recipe.yaml", "--explain", *options).out
    assert "threshold: 0.7" in short
    assert "permutations" not in short
    assert "permutations" in run("curate", "recipe.yaml", "--explain", "--all", *options).out
    assert run("curate", "recipe.yaml", "--all", "-o", "out").code == 2
