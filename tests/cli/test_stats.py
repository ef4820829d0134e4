from __future__ import annotations

import json

from adp.cli.stats import errors
from adp.stores.stats import stats


def test_numbers_come_with_their_coverage(store):
    groups = {group.key["dataset"]: group for group in stats(store)}
    swe = groups["swe"]
    assert swe.key == {"dataset": "swe", "agent": "hands"}
    assert (swe.trajectories, swe.steps, swe.calls, swe.llm_turns) == (2, 6, 2, 3)
    assert (swe.success.total, swe.success.recorded, swe.success.of) == (1, 2, 2)
    assert (swe.reward.total, swe.reward.recorded, swe.reward.of) == (1.0, 1, 2)
    tokens = swe.usage["tokens_in"]
    assert (tokens.total, tokens.recorded, tokens.of) == (100, 1, 3)
    assert swe.usage["cost_usd"].total is None
    assert (swe.results, swe.known_results, swe.error_results) == (2, 2, 1)
    assert [(tool.name, tool.calls, tool.errors) for tool in swe.tools] == [
        ("bash", 1, 1),
        ("build", 1, 0),
    ]
    assert swe.histograms["steps per trajectory"] == [("2-3", 2)]
    assert groups["chat"].success.total is None
    assert groups["chat"].histograms["calls per trajectory"] == [("0", 1)]


def test_one_group_of_all(store):
    (group,) = stats(store, by=())
    assert (group.key, group.trajectories, group.steps) == ({}, 3, 7)


def test_printed(run, store):
    out = run("stats", store.root).out
    assert "dataset swe, agent hands" in out
    assert "50.0 % (2 of 2 record it)" in out
    assert "100 (33.3 % of model turns record it)" in out
    assert "50.0 % of results (2 of 2 say it)" in out
    assert "█" in out


def test_json(run, store):
    groups = json.loads(run("stats", store.root, "--by", "format", "--json").out)["groups"]
    assert {group["key"]["format"] for group in groups} == {"openai_chat", None}


def test_unknown_grouping(run, store):
    done = run("stats", store.root, "--by", "agnet")
    assert (done.code, done.err) == (2, "error: unknown grouping 'agnet'; did you mean agent?\n")


def test_a_source_that_marks_failures_only():
    assert errors(6, 6, 133).startswith("6 of 133 results are marked as errors")
    assert errors(6, 12, 133) == "50.0 % of results (12 of 133 say it)"
    assert errors(0, 0, 5) == "not recorded"
