"""A hop through ATIF: what ``extra.adp`` says of a branch is read back; what is foreign stays."""

from __future__ import annotations

import json

import pytest

from adp.converters.registry import formats
from adp_schema import jsontext
from adp_schema.losses import Losses
from tests.conservation import nest
from tests.roundtrip import read_one, write_one
from tools.tables.field_table import load_probe

ATIF = formats.get("atif")
ROW = {
    "conversations": [{"from": "human", "value": "q"}],
    "chosen": {"from": "gpt", "value": "a"},
    "rejected": {"from": "gpt", "value": "b"},
}


def hop(name, record):
    """The runs of a record, and those of the record that ATIF makes of it."""
    converter = formats.get(name)
    runs = read_one(converter, json.dumps(record).encode())
    (main,) = nest(runs, ATIF)
    losses = Losses()
    written = write_one(ATIF, main, losses)
    return runs, read_one(ATIF, written), written, losses


@pytest.mark.parametrize("kind", ["alternate", "attempt", "fork", "rewind", "revision"])
def test_a_branch_comes_back_as_what_it_was(kind):
    runs = read_one(formats.get("sharegpt"), json.dumps(ROW).encode())
    runs[1].branch_kind = kind
    (main,) = nest(runs, ATIF)
    losses = Losses()
    back = read_one(ATIF, write_one(ATIF, main, losses))
    assert not any("branch_kind" in item["path"] for item in losses.items)
    assert back[1].parent_id == back[0].trajectory_id
    assert (back[1].branch_kind, back[1].parent_step) == (kind, 1)
    assert [step.step for step in back[1].steps] == [1]
    assert "branch_kind" not in (back[1].extra or "")


@pytest.mark.parametrize("name", ["m3", "sharegpt", "preference", "adp_v1", "sts", "openai_chat"])
def test_every_branch_of_the_probes_comes_back(name):
    for record in load_probe(name)["records"]:
        runs, back, written, _ = hop(name, record)
        output = [(run.branch_kind, run.parent_step) for run in runs]
        assert [(run.branch_kind, run.parent_step) for run in back] == output
        whole = nest(back, ATIF)
        assert [write_one(ATIF, run) for run in whole] == [written]


@pytest.mark.parametrize(
    "adp",
    [
        {"branch_kind": "alternate", "parent_step": 1},  # not in the order that is written
        {"parent_step": 7, "branch_kind": "alternate"},  # the parent has no such step
        {"parent_step": -1, "branch_kind": "alternate"},
        {"parent_step": 1, "branch_kind": "offshoot"},
        {"parent_step": "1", "branch_kind": "alternate"},
        {"parent_step": True, "branch_kind": "alternate"},
        {"parent_step": 2**40, "branch_kind": "alternate"},
        {"parent_step": 1, "branch_kind": ["alternate"]},
        {"parent_step": 1.0},
        [1],
        "x",
    ],
)
def test_what_is_not_ours_stays_in_extra(adp):
    _, _, written, _ = hop("sharegpt", ROW)
    record = json.loads(written)
    record["subagent_trajectories"][0]["extra"] = {"adp": adp}
    data = json.dumps(record).encode()
    main, branch = read_one(ATIF, data)
    assert (branch.branch_kind, branch.parent_step) == ("subagent", None)
    main.branches = [branch]
    losses = Losses()
    assert json.loads(write_one(ATIF, main, losses)) == record
    assert losses.items == []


def test_a_run_without_a_parent_is_no_branch():
    record = json.loads(hop("sharegpt", ROW)[2])
    del record["subagent_trajectories"]
    record["extra"] = {"adp": {"parent_step": 1, "branch_kind": "alternate"}}
    (run,) = read_one(ATIF, json.dumps(record).encode())
    assert (run.branch_kind, run.parent_step, run.steps[0].step) == (None, None, 0)
    assert jsontext.decode_object(run.extra.encode())["adp"]


def test_a_written_branch_is_valid_for_the_package_of_harbor():
    from atif import Trajectory as Model

    _, _, written, _ = hop("m3", load_probe("m3")["example"])
    Model.model_validate_json(written)
