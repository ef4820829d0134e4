"""Every check finds what it is for, and leaves alone what only looks like it."""

from __future__ import annotations

import pytest

from adp.stores.checks.model import SEVERITIES
from adp.stores.checks.registry import CHECKS, GROUPS
from adp.stores.checks.run import run_checks
from adp_schema.builder import RowBuilder
from tests.store_builders import write_store
from tests.stores.checks.cases import BAD, GOOD
from tests.stores.checks.runs import add
from tests.stores.checks.test_damage import DAMAGE

MANY = 10_000


def results_of(folder, table):
    """Check -> findings in a store of all runs; the id of a run tells the check that it is for."""
    builder = RowBuilder()
    seq = 0
    for check, runs in table.items():
        for number, entry in enumerate(runs):
            seq += 1
            add(builder, seq, f"{check}~{number}", entry)
    # The ids are told by the place too: some runs have ids of their own.
    places = {row["trajectory_id"]: row["seq"] for row in builder.rows["trajectories"]}
    runs_of = [check for check, runs in table.items() for _ in runs]
    store = write_store(folder, builder)
    results, left_out = run_checks(store, examples=MANY)
    assert not left_out
    return {
        result.check.id: (result, [places[e.trajectory_id] for e in result.examples])
        for result in results
    }, runs_of


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    return results_of(tmp_path_factory.mktemp("stores") / "bad", BAD)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return results_of(tmp_path_factory.mktemp("stores") / "good", GOOD)


def test_every_check_has_cases():
    assert set(BAD) | set(DAMAGE) == set(CHECKS)
    assert set(BAD) == set(GOOD)


@pytest.mark.parametrize("check", list(BAD))
def test_finds_each_bad_run(bad, check):
    results, runs_of = bad
    _, seqs = results[check]
    wanted = {seq for seq, name in enumerate(runs_of, start=1) if name == check}
    if check in ("repeated-source-id", "duplicate-record"):  # the first one is no repeat
        wanted.remove(min(wanted))
    assert wanted <= set(seqs)


@pytest.mark.parametrize("check", list(GOOD))
def test_leaves_good_runs_alone(good, check):
    results, runs_of = good
    _, seqs = results[check]
    assert not {seq for seq in seqs if runs_of[seq - 1] == check}


@pytest.mark.parametrize("table", ["bad", "good"])
def test_counts_agree_with_the_findings(table, request):
    results, _ = request.getfixturevalue(table)
    for result, seqs in results.values():
        assert result.findings == len(result.examples) == len(seqs)
        assert result.trajectories == len(set(seqs))
        for example in result.examples:
            assert example.path
            assert example.excerpt.isprintable()
            assert len(example.excerpt) <= 120


def test_examples_are_the_first_findings(bad, tmp_path):
    results, _ = bad
    builder = RowBuilder()
    seq = 0
    for check, runs in BAD.items():
        for number, entry in enumerate(runs):
            seq += 1
            add(builder, seq, f"{check}~{number}", entry)
    few, _ = run_checks(write_store(tmp_path / "store", builder), examples=2)
    for result in few:
        whole = results[result.check.id][0]
        assert result.examples == whole.examples[:2]
        assert (result.findings, result.trajectories) == (whole.findings, whole.trajectories)


def test_severities_are_known_and_texts_are_sentences():
    assert len(CHECKS) == sum(map(len, GROUPS.values()))
    for check in CHECKS.values():
        assert check.severity in SEVERITIES
        assert check.id == check.id.lower().replace(" ", "-")
        for text in (check.what, check.remedy):
            assert text.endswith("."), check.id
            assert text[0].isupper(), check.id
