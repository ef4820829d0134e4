"""Half of M3's samples train and half test, and those without a reference run are for the test."""

from __future__ import annotations

import json

import pytest

from adp.converters.run import convert
from adp.curation.apply import apply
from adp_schema.store import Store
from tests.workflows.m3_raw import SHORT

SHARES = {"train": 0.5, "test": 0.5}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("split")
    call = {"plan": "p", "question": "q", "agent": "api_agent", "output": {"name": "owner"}}
    solved = [[{"input": "Who?"}, call, {"response": "Ada"}, {"plan": "p", "answer": "Ada"}]]
    asked = [[{"input": "Who?"}]]
    records = [
        {"sample_id": str(n), "tools": SHORT["tools"], "doc_collections": [], "num_hops": [1],
         "trajectory": asked if n % 4 == 0 else solved}
        for n in range(400)
    ]  # fmt: skip
    (folder / "m3.json").write_text(json.dumps(records))
    convert([str(folder / "m3.json")], str(folder / "store"))
    return Store.open(str(folder / "store"))


def splits_of(store, **options):
    result = apply("split", store, shares=SHARES, leakage="off", salt="0", **options)
    return result.splits.sort("seq")["split"].to_list()


def test_halves_and_samples_without_a_reference_run(store):
    plain, aware = splits_of(store), splits_of(store, without_calls="test")
    assert aware == ["test" if n % 4 == 0 else split for n, split in enumerate(plain)]
    assert "train" in plain[::4]
    others = [split for n, split in enumerate(aware) if n % 4]
    assert 120 < others.count("train") < 180
    assert splits_of(store, without_calls="test") == aware
