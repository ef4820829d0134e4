"""The numbers of a composition, against plain loops over the trajectories."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from dataclasses import astuple
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adp
from adp.stores.composition import Composition, CompositionOptions, composition
from adp.stores.composition.lengths import bins, distribution, wilson
from adp.stores.stats import stats
from adp_schema.growing import GrowingStore, seal
from adp_schema.store import Store
from tests.effort import examples
from tests.stores import any_store, described_runs

DATA = Path(__file__).parents[2].parent / "shared" / "data"
EXAMPLES = Path(__file__).parents[2] / "examples"


def ranked(values):
    """Names and counts, the most frequent first, then by name, the nameless last."""
    order = Counter(values).items()
    return sorted(order, key=lambda item: (-item[1], item[0] is None, str(item[0])))


def listed(ranking):
    assert (ranking.names, ranking.total) == (
        len(ranking.rows),
        sum(count.count for count in ranking.rows),
    )
    return [(count.name, count.count) for count in ranking.rows]


def spoken(step):
    return len(step.text or "") + len(step.reasoning or "")


def written(call):
    if call.span_start is not None:
        return 0
    text = call.arguments if call.arguments is not None else call.arguments_raw
    return len(text or "")


def returned(item):
    pages = (text for text in (item.axtree, item.html) if text is not None)
    return len(item.text or next(pages, ""))


def results_of(run):
    yield from run.early_observations
    for step in run.steps:
        yield from step.observations


def calls_of(run):
    for step in run.steps:
        yield from step.calls


def characters(run):
    ours = sum(map(spoken, run.steps)) + sum(map(written, calls_of(run)))
    return ours + sum(map(returned, results_of(run)))


def tokens(run, column):
    total = getattr(run, f"total_{column}")
    if total is not None:
        return total
    turns = [getattr(step, column) for step in run.steps if step.kind == "llm_turn"]
    return sum(turns) if turns and None not in turns else None


def check_sizes(value: Composition, runs, main):
    assert value.trajectories == len(runs)
    assert value.main_lines == len(main)
    assert value.steps == sum(len(run.steps) for run in main)
    assert value.calls == sum(1 for run in main for _ in calls_of(run))
    assert value.characters == sum(map(characters, main))
    assert value.records == value.used + value.skipped + value.rejected


def check_datasets(value: Composition, runs, main):
    assert {item.name for item in value.datasets} == {run.dataset for run in runs}
    for dataset in value.datasets:
        ours = [run for run in main if run.dataset == dataset.name]
        all_of_it = [run for run in runs if run.dataset == dataset.name]
        assert dataset.trajectories == len(ours)
        assert dataset.branches == len(all_of_it) - len(ours)
        assert dataset.steps == sum(len(run.steps) for run in ours)
        assert dataset.characters == sum(map(characters, ours))
        known = [run.success for run in ours if run.success is not None]
        assert astuple(dataset.success)[1:4] == (len(ours), len(known), sum(known))
        rewards = [run.reward for run in ours if run.reward is not None]
        assert (dataset.reward.recorded, dataset.reward.of) == (len(rewards), len(ours))
        assert math.isclose(dataset.reward.total or 0, math.fsum(rewards), abs_tol=1e-9)
        for column in ("tokens_in", "tokens_out"):
            recorded = [n for run in ours if (n := tokens(run, column)) is not None]
            number = getattr(dataset, column)
            assert (number.total or 0, number.recorded) == (sum(recorded), len(recorded))
        assert listed(dataset.licenses) == ranked(run.license for run in all_of_it)
        assert listed(dataset.formats) == ranked(run.source_format for run in all_of_it)
        assert listed(dataset.splits) == ranked(run.split for run in all_of_it)
    order = [(-item.trajectories, item.name) for item in value.datasets]
    assert order == sorted(order)
    groups = Counter((run.dataset, run.license, run.may_publish) for run in runs)
    output = Counter[tuple[str | None, str | None, bool | None]]()
    for dataset in value.licenses:
        output[dataset.dataset, dataset.license, dataset.may_publish] += dataset.trajectories
    assert output == groups


def check_lengths(result: Composition, main):
    wanted = {
        "steps": [len(run.steps) for run in main],
        "calls": [len(list(calls_of(run))) for run in main],
        "characters": [characters(run) for run in main],
        "prompt tokens recorded": [tokens(run, "tokens_in") for run in main],
        "written tokens recorded": [tokens(run, "tokens_out") for run in main],
    }
    assert [entry.name for entry in result.lengths] == list(wanted)
    for length in result.lengths:
        assert length.of == len(main)
        check_distribution(length, [value for value in wanted[length.name] if value is not None])
    parts: dict[str, list[int]] = {}
    for run in main:
        for step in run.steps:
            parts.setdefault(step.source, []).append(spoken(step))
        for call in calls_of(run):
            if call.span_start is None:
                parts.setdefault("calls", []).append(written(call))
        for item in results_of(run):
            parts.setdefault("results", []).append(returned(item))
    assert {part.name for part in result.parts} == set(parts)
    for length in result.parts:
        check_distribution(length, parts[length.name])


def check_distribution(result, values):
    ordered = sorted(values)
    assert (result.n, result.total) == (len(values), sum(values))
    assert sum(bar.count for bar in result.bins) == len(values)
    if not values:
        return
    assert (result.min, result.max) == (ordered[0], ordered[-1])
    for percent in (10, 50, 90, 99):
        cut = getattr(result, f"p{percent}")
        assert cut in values
        assert 100 * sum(value <= cut for value in values) >= percent * len(values)
        assert 100 * sum(value < cut for value in values) < percent * len(values)
    for bar in result.bins:
        assert bar.count == sum(bar.low <= value <= bar.high for value in values)


def check_tools(value: Composition, main):
    calls = Counter(call.name or "?" for run in main for call in calls_of(run))
    assert [(tool.name, tool.calls) for tool in value.tools.rows] == ranked(calls.elements())
    assert (value.tools.names, value.tools.calls) == (len(calls), calls.total())
    for tool in value.tools.rows:
        users = [run for run in main if tool.name in [c.name or "?" for c in calls_of(run)]]
        assert tool.trajectories == len(users)
        known = errors = results = invalid = 0
        for run in users:
            for call in calls_of(run):
                if (call.name or "?") != tool.name:
                    continue
                invalid += call.arguments_kind == "invalid" or (
                    call.arguments is None
                    and call.arguments_raw is not None
                    and call.arguments_kind not in ("text", "dsl", "python_literal")
                )
                place = (call.step, call.call)
                answers = [o for o in results_of(run) if (o.call_step, o.call) == place]
                results += bool(answers)
                known += any(o.is_error is not None or o.exit_code is not None for o in answers)
                errors += any(bool(o.is_error) or bool(o.exit_code) for o in answers)
        numbers = (tool.results, tool.known, tool.errors, tool.invalid)
        assert numbers == (results, known, errors, invalid)


def check_outcomes(value: Composition, main):
    models = {run.agent_model for run in main}
    assert {item.name for item in value.by_model} == models
    for entry in value.by_model:
        known = [r.success for r in main if r.agent_model == entry.name and r.success is not None]
        assert (entry.known, entry.good) == (len(known), sum(known))
    assert sum(item.of for item in value.by_length) == len(main)
    for entry in value.by_length:
        low, _, high = (entry.name or "").partition("-")
        inside = [run for run in main if int(low) <= len(run.steps) <= int(high or low)]
        known = [run.success for run in inside if run.success is not None]
        assert (entry.of, entry.known, entry.good) == (len(inside), len(known), sum(known))
    items = [item for run in main for item in results_of(run)]
    errors = value.errors
    assert listed(errors.types) == ranked(i.error_type for i in items if i.error_type is not None)
    codes = Counter(str(item.exit_code) for item in items if item.exit_code is not None)
    assert dict(listed(errors.exit_codes)) == codes
    assert listed(errors.run_types) == ranked(r.error_type for r in main if r.error_type)
    assert listed(errors.stop_reasons) == ranked(r.stop_reason for r in main if r.stop_reason)
    assert (errors.truncated.total or 0) == sum(bool(run.truncated) for run in main)
    assert errors.truncated.recorded == sum(run.truncated is not None for run in main)


def check_rest(value: Composition, runs, main, store):
    assert listed(value.agents) == ranked(run.agent_name for run in main)
    assert listed(value.models) == ranked(run.agent_model for run in main)
    code = [c.language for run in main for c in calls_of(run) if c.kind == "code"]
    assert listed(value.languages) == ranked(code)
    branched = [run.branch_kind for run in runs if run.parent_id is not None]
    assert listed(value.branch_kinds) == ranked(branched)
    agent = [step for run in main for step in run.steps if step.source == "agent"]
    reasoned = sum(bool(step.reasoning) for step in agent)
    assert (value.reasoning.count, value.reasoning.of) == (reasoned, len(agent))
    firsts = [
        next((step.text for step in run.steps if step.source == "user" and step.text), None)
        for run in main
    ]
    texts = [text for text in firsts if text is not None]
    assert astuple(value.first_texts) == (len(texts), len(set(texts)))
    assert sum(kind.count for kind in value.media) == store.manifest.rows("media")
    assert {table.name: table.rows for table in value.tables} == {
        name: store.manifest.rows(name) for name in store.manifest.tables
    }
    assert listed(value.losses) == sorted(
        store.manifest.losses.items(), key=lambda item: (-item[1], item[0])
    )
    check_examples(value, main)


def check_examples(value: Composition, main):
    ids = [item.trajectory_id for item in value.examples]
    assert len(ids) == len(set(ids)) <= 5
    assert set(ids) <= {run.trajectory_id for run in main}
    assert bool(ids) == bool(main)
    by_id = {run.trajectory_id: run for run in main}
    for wanted in (True, False):
        if any(run.success is wanted for run in main):
            assert any(by_id[name].success is wanted for name in ids)
    for example in value.examples:
        assert len(example.text) < 5000


def check_all(store: Store) -> Composition:
    result = composition(store, CompositionOptions(limit=1000))
    runs = list(store.trajectories())
    main = [run for run in runs if run.parent_id is None]
    check_sizes(result, runs, main)
    check_datasets(result, runs, main)
    check_lengths(result, main)
    check_tools(result, main)
    check_outcomes(result, main)
    check_rest(result, runs, main, store)
    assert json.loads(json.dumps(result.plain(), allow_nan=False))["name"] == store.name
    return result


@settings(max_examples=examples(20))
@given(described=described_runs.shards)
def test_the_numbers_are_those_of_plain_loops(tmp_path_factory, described):
    check_all(described_runs.write(tmp_path_factory.mktemp("composition") / "s", described))


@settings(max_examples=examples(8))
@given(described=any_store.shards)
def test_stores_with_branches_images_and_tasks(tmp_path_factory, described):
    check_all(any_store.write(tmp_path_factory.mktemp("composition") / "s", described, "W"))


def test_the_examples(tmp_path):
    store = adp.convert([str(EXAMPLES)], tmp_path / "store")
    result = check_all(store)
    assert [dataset.name for dataset in result.datasets] == ["broken", "chat", "adp"]


@pytest.mark.skipif(not (DATA / "adp_v1").is_dir(), reason="the shared samples are not there")
def test_real_samples(tmp_path):
    folders = [str(folder) for folder in sorted((DATA / "adp_v1").iterdir())]
    result = check_all(adp.convert(folders, tmp_path / "store"))
    assert result.trajectories > 100
    assert len(result.datasets) > 5


def test_a_growing_store_has_the_numbers_of_the_finished_one(tmp_path):
    store = adp.convert([str(EXAMPLES / "chat")], tmp_path / "store")
    with GrowingStore(tmp_path / "growing") as growing:
        for run in store.trajectories():
            growing.append(run)
    before = composition(Store.open(str(tmp_path / "growing")))
    assert before.growing
    assert before.trajectories == store.manifest.counts.trajectories
    seal(tmp_path / "growing")
    after = composition(Store.open(str(tmp_path / "growing")))
    assert not after.growing
    for name in ("steps", "calls", "characters", "datasets", "lengths", "tools", "examples"):
        assert getattr(before, name) == getattr(after, name), name


def test_the_groups_of_stats_say_the_same(tmp_path):
    store = adp.convert([str(EXAMPLES)], tmp_path / "store")
    result = composition(store)
    for group in stats(store, ["dataset"]):
        (entry,) = [dataset for dataset in result.datasets if dataset.name == group.key["dataset"]]
        assert (entry.trajectories, entry.steps, entry.calls) == (
            group.trajectories,
            group.steps,
            group.calls,
        )
        assert entry.success.known == group.success.recorded
        assert entry.reward == group.reward


@given(st.dictionaries(st.integers(0, 10**7), st.integers(1, 5), min_size=1, max_size=30))
def test_bins_have_no_gaps_and_hold_everything(values):
    bars = list(bins(values))
    assert bars[0].low <= min(values) <= bars[0].high
    assert bars[-1].low <= max(values) <= bars[-1].high
    assert all(a.high + 1 == b.low for a, b in itertools.pairwise(bars))
    assert len(bars) <= 31
    check_distribution(
        distribution("x", values), [v for v, times in values.items() for _ in range(times)]
    )


def test_the_interval_ends_at_0_and_1():
    assert wilson(0, 0) == (None, None)
    assert wilson(0, 10)[0] == 0.0
    assert wilson(10, 10)[1] == 1.0


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_ends_of_the_interval_are_where_the_score_test_turns(counts):
    good, known = counts
    rate = good / known
    for end in wilson(good, known):
        if 0 < end < 1:
            z = abs(rate - end) / math.sqrt(end * (1 - end) / known)
            assert math.isclose(z, 1.959963984540054, rel_tol=1e-6)
