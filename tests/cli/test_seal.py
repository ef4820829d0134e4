from __future__ import annotations

import json

import pytest

from adp.cli.main import main
from adp_schema.growing import GrowingStore, seal
from tests.growing import numbered


@pytest.fixture
def growing(tmp_path):
    """A growing store with a shard and a journal."""
    root = tmp_path / "rollouts"
    with GrowingStore(root) as store:
        for number in range(6):
            store.append(numbered(str(number), blob=0))
            if number == 3:
                store.seal_journal()
    return root


@pytest.mark.parametrize(
    "words",
    [
        ("stats", "--by", "dataset"),
        ("stats", "--json"),
        ("head", "-n", "9"),
        ("sample", "-n", "3", "--seed", "1"),
        ("query", "-c", "SELECT trajectory_id, count(*) AS n FROM steps GROUP BY 1 ORDER BY 1"),
        ("show", "d/5"),
        ("show", "d/1", "--json"),
        ("validate",),
        ("rejects",),
    ],
    ids=lambda words: words[0],
)
def test_commands_say_of_a_growing_store_what_they_say_of_the_sealed_one(run, growing, words):
    name, *options = words
    before = run(name, growing, *options)
    seal(growing)
    after = run(name, growing, *options)
    assert before == after
    assert before.code == 0


def test_info(run, growing):
    out = run("info", growing).out
    assert "trajectories 6" in out
    assert "still growing: 2 of them are in the journal, not in the tables below; last" in out
    answer = json.loads(run("info", growing, "--json").out)
    assert answer["growing"]["journal"] == 2
    assert answer["growing"]["last_append"].endswith("Z")
    assert answer["datasets"] == {"d": 6}
    assert "verified: 6 files are" in run("info", growing, "--verify").out
    seal(growing)
    assert "growing" not in json.loads(run("info", growing, "--json").out)


def test_query_over_several(run, growing, tmp_path):
    sql = "SELECT count(*) AS n FROM trajectories"
    done = run("query", growing, growing, "-c", sql, "--format", "json")
    assert json.loads(done.out) == [{"n": 12}]


def test_export(run, growing, tmp_path):
    assert run("export", growing, "--to", "openai_chat", "-o", tmp_path / "before").code == 0
    seal(growing)
    run("export", growing, "--to", "openai_chat", "-o", tmp_path / "after")
    before, after = (
        {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.jsonl")}
        for name in ("before", "after")
    )
    assert before
    assert before == after


@pytest.mark.parametrize(
    "words", [("merge", "{}", "{}"), ("drop", "{}", "--where", "true")], ids=lambda words: words[0]
)
def test_what_needs_a_finished_store_says_so(run, growing, tmp_path, words):
    done = run(*(word.format(growing) for word in words), "-o", tmp_path / "new")
    assert done.code == 5
    assert f"seal it first: adp seal {growing}" in " ".join(done.err.split())
    assert not (tmp_path / "new").exists()


def test_seal(run, growing):
    done = run("seal", growing)
    assert done.code == 0
    assert "sealed: 6 trajectories in 1 shard" in done.out
    again = run("seal", growing, "--json")
    assert again.code == 0
    answer = json.loads(again.out)
    assert answer["counts"]["trajectories"] == answer["rows"]["trajectories"] == 6
    assert run("info", growing, "--verify").code == 0


def test_seal_of_something_else(run, store, tmp_path):
    done = run("seal", store.root)
    assert done.code == 5
    assert "is a finished store and no growing one" in " ".join(done.err.split())
    assert run("seal", tmp_path).code == 5
    assert main(["seal"]) == 2
