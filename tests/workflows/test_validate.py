from __future__ import annotations

from pathlib import Path

import pytest

import adp
from adp.stores.checks.model import SEVERITIES
from adp.stores.checks.registry import CHECKS
from adp.workflows.validate import validate
from adp_schema.builder import RowBuilder
from adp_schema.errors import InputError, StoreError, UsageError
from adp_schema.growing import GrowingStore
from tests.store_builders import write_store
from tests.stores.checks.cases import BAD
from tests.stores.checks.runs import DONE, add, run

DATA = Path(__file__).parents[2].parent / "shared" / "data"
CHAT = b"""{"id": "a", "messages": [{"role": "user", "content": "hi"}]}
{"id": "b", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]}
{"id": "c", "messages": 7}
"""


def failed_checks(report):
    """Check -> number of findings, of those that found something."""
    return {result.check.id: result.findings for result in report.failed()}


@pytest.fixture
def chats(tmp_path):
    path = tmp_path / "chats.jsonl"
    path.write_bytes(CHAT)
    return path


@pytest.fixture
def store(tmp_path):
    builder = RowBuilder()
    for seq, check in enumerate(["dangling-call", "invalid-arguments", "no-license"]):
        add(builder, seq, check, BAD[check][0])
    return write_store(tmp_path / "store", builder)


def test_a_file_is_converted_and_its_rejects_are_counted(chats):
    report = adp.validate(chats)
    assert report.converted
    assert (report.counts.records, report.counts.used, report.counts.rejected) == (3, 2, 1)
    assert failed_checks(report)["rejected-records"] == 1
    assert failed_checks(report)["no-agent-step"] == 1
    (example,) = report.fails("error")[0].examples
    assert (example.trajectory_id, example.path) == ("chats/a", "$.steps")


def test_a_folder_and_its_store_give_the_same(chats, tmp_path):
    (tmp_path / "in").mkdir()
    source = chats.rename(tmp_path / "in" / "chats.jsonl")
    adp.convert(source, tmp_path / "made")
    by_file, by_folder = validate([source]), validate(source.parent)
    by_store = validate(str(tmp_path / "made"))
    assert by_file.results == by_folder.results == by_store.results
    assert (by_folder.converted, by_store.converted) == (True, False)


def test_nothing_is_left_behind(chats, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    validate(chats)
    assert list(scratch.iterdir()) == []


def test_severities_come_in_order(store):
    report = validate(store.root)
    ranks = [SEVERITIES.index(result.check.severity) for result in report.failed()]
    assert ranks == sorted(ranks)
    assert set(ranks) == {0, 1, 2}
    assert [fail.check.id for fail in report.fails("error")] == ["invalid-arguments"]
    worse = {fail.check.id for fail in report.fails("warning")}
    assert {"invalid-arguments", "dangling-call"} <= worse
    assert "no-license" not in worse
    assert {result.check.id for result in report.results} == set(CHECKS)


def test_chosen_checks_only(store):
    report = validate(store.root, checks=["no-license", "dangling-call"], examples=0)
    assert [result.check.id for result in report.results] == ["dangling-call", "no-license"]
    assert [(result.findings, result.examples) for result in report.results] == [(1, []), (1, [])]


def test_the_report_is_the_same_every_time(store):
    assert validate(store.root).as_json() == validate(store.root).as_json()


def test_a_growing_store_is_checked_with_its_journal(tmp_path, store):
    with GrowingStore(tmp_path / "growing") as growing:
        for number, trajectory in enumerate(store.trajectories()):
            growing.append(trajectory)
            if not number:
                growing.seal_journal()
    grown = {name: count for name, count in failed_checks(validate(tmp_path / "growing")).items()}
    assert grown == failed_checks(validate(store.root))


def test_an_empty_store(tmp_path):
    report = validate(write_store(tmp_path / "store", RowBuilder()).root)
    assert report.failed() == []


def test_branches_are_checked_too(tmp_path):
    builder = RowBuilder()
    add(builder, 0, "trunk", run(*DONE))
    branch = BAD["dangling-call"][0]
    add(builder, 1, "branch", run(*branch.items, parent_id="made/trunk", parent_step=1))
    report = validate(write_store(tmp_path / "store", builder).root, checks=["dangling-call"])
    assert report.results[0].examples[0].trajectory_id == "made/branch"


def test_wrong_calls(chats, store, tmp_path):
    with pytest.raises(UsageError, match=r"unknown check 'danglin-call'; did you mean dangling"):
        validate(chats, checks=["danglin-call"])
    with pytest.raises(UsageError, match="is a store: check stores one at a time"):
        validate([chats, store.root])
    with pytest.raises(InputError, match="does not exist"):
        validate(tmp_path / "nowhere")
    (Path(store.root) / "adp.json").write_text("{}}")
    with pytest.raises(StoreError, match="damaged"):
        validate(store.root)


# ---- what is known to be wrong in real data --------------------------------------------------

TRUTH = {
    "agenttuning_os": {
        "two-tasks": {"trajectories": 5},
        "escape-codes": {"trajectories": 5},
        "no-metadata": {"trajectories": 5},
    },
    "agenttuning_alfworld": {
        "environment-as-user": {"trajectories": 5},
        "quoted-string": {"trajectories": 5},
        "dangling-call": {"findings": 84},
        "synthetic-ending": {"trajectories": 5},
    },
    "agenttuning_webshop": {"quoted-string": {"findings": 17}, "no-metadata": {"trajectories": 5}},
    "androidcontrol": {"agent-begins": {"trajectories": 3}, "ends-on-user": {"trajectories": 3}},
    "code_feedback": {"synthetic-ending": {"trajectories": 7}},
    "llava_plus": {"dangling-call": {"findings": 6}},
    "nebius_SWE-agent-trajectories": {"environment-as-user": {"trajectories": 5}},
    "nnetnav-wa": {"incomplete-page": {"findings": 48}, "quoted-string": {"trajectories": 5}},
    "omniact": {"ends-on-call": {"trajectories": 3}},
    "synatra": {"ends-on-call": {"trajectories": 5}, "quoted-string": {"findings": 5}},
    "toucan_1_5m": {"template-tokens": {"trajectories": 1}},
}
"""Data set -> check -> what its sample is known to hold."""


@pytest.mark.parametrize("dataset", list(TRUTH))
def test_known_faults_of_real_data_are_found(dataset):
    path = DATA / "adp_v1" / dataset / "sample_std.json"
    if not path.exists():
        pytest.skip("the reference data are not here")
    report = validate(path, checks=list(TRUTH[dataset]))
    for result in report.results:
        for name, number in TRUTH[dataset][result.check.id].items():
            assert getattr(result, name) == number, result.check.id


def test_real_data_hold_no_errors():
    path = DATA / "adp_v1"
    if not path.exists():
        pytest.skip("the reference data are not here")
    assert [item.check.id for item in validate(path).failed("error")] == []
