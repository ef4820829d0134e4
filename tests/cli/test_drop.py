from __future__ import annotations

import json

import pytest

from adp_schema.store import Store

SWE = "dataset = 'swe'"


def test_dry_run_counts_by_data_set_and_writes_nothing(run, store: Store, tmp_path):
    done = run("drop", store.root, "--where", "source_id = 'django-22'", "--dry-run")
    assert done.code == 0
    assert "2 of 4 trajectories would go, 1 of them as branches of others" in done.out
    assert done.out.split()[-3:] == ["swe", "2", "3"]
    words = ("--dry-run", "--json", "-o", tmp_path / "new")
    answer = json.loads(run("drop", store.root, "--where", SWE, *words).out)
    assert answer == {"drop": {"matched": 3, "branches": 0, "dropped": 3, "datasets": {"swe": 3}}}
    assert not (tmp_path / "new").exists()


def test_says_what_went_and_what_is_still_there(run, store: Store, tmp_path):
    done = run("drop", store.root, "--where", SWE, "-o", tmp_path / "new", "--note", "asked to")
    assert done.code == 0
    assert "3 of 4 trajectories go" in done.out
    assert "records 7 = used 1 + skipped 4 + rejected 2" in done.out
    assert "gone with them: 1 blob\n" in done.out
    assert "3 rejected or skipped records are still there; see: --drop-rejects" in done.out
    assert "note asked to" in run("info", tmp_path / "new").out
    assert run("info", tmp_path / "new", "--verify").code == 0


def test_json(run, store: Store, tmp_path):
    words = ("--where", SWE, "-o", tmp_path / "new", "--json", "--drop-rejects")
    answer = json.loads(run("drop", store.root, *words).out)
    assert answer["counts"]["skipped"] == 4
    assert (answer["drop"]["dropped"], answer["drop"]["rejects"]) == (3, "left out")
    assert answer["rows"].get("rejects", 0) == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--where", SWE], 2, "say where the new store goes"),
        (["-o", "NEW"], 2, "missing option '--where'"),
        (["--where", "true) OR (true", "-o", "NEW"], 6, "closes a parenthesis"),
        (["--where", "true; SELECT 1", "-o", "NEW"], 6, "no ';'"),
        (["--where", "true -- all", "-o", "NEW"], 6, "no comments"),
        (["--where", "license_ = 'x'", "-o", "NEW"], 6, "did you mean license"),
        (["--where", SWE, "-o", "STORE"], 5, "holds a store already"),
    ],
)
def test_wrong_calls(run, store: Store, tmp_path, words, code, message):
    places = {"NEW": str(tmp_path / "new"), "STORE": store.root}
    done = run("drop", store.root, *[places.get(word, word) for word in words])
    assert done.code == code
    assert message in done.err.splitlines()[-1]
