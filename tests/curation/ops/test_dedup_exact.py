"""Exact duplicates, against groups made by a plain walk over the trajectories."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.curation.apply import apply
from adp.curation.ops.dedup_exact import DedupExact
from adp_schema.builder import Origin, RowBuilder
from adp_schema.model import Trajectory
from adp_schema.store import Store
from tests.curation.pools import groups
from tests.store_builders import write_store
from tests.stores import described_runs


def _call(call: Any) -> tuple[Any, ...]:
    given_ = call.arguments if call.arguments is not None else call.arguments_raw
    with contextlib.suppress(TypeError, ValueError):
        given_ = json.dumps(json.loads(given_), sort_keys=True)
    return call.requestor or "", call.name or "", given_ or ""


def _content(trajectory: Trajectory, of: str) -> Any:
    """What is compared, as a value of Python; None when there is nothing."""
    steps = trajectory.steps
    if of == "task":
        return trajectory.task_id
    if of == "actions":
        return [_call(call)[1:] for step in steps for call in step.calls] or None
    if of == "task_text":
        agent = [step.step for step in steps if step.source == "agent"]
        early = [s for s in steps if s.source == "user" and s.step < min(agent, default=10**9)]
        return [step.text for step in early if step.text] or None
    results: list[Any] = []
    for step in steps:
        results.append((step.source, step.reasoning or "", step.text or "", step.content or ""))
        results.append([_call(call) for call in step.calls])
        for seen in step.observations:
            values = (seen.text, seen.content, seen.html, seen.axtree, seen.url, seen.structured)
            results.append((seen.call_step, seen.call, *(value or "" for value in values)))
    return results or None


@settings(max_examples=15)
@given(described_runs.shards, st.sampled_from(["trajectory", "actions", "task_text"]))
def test_groups_are_those_of_a_plain_walk(described: Any, of: str) -> None:
    described = [[*shard, *shard[:2]] for shard in described]
    with tempfile.TemporaryDirectory() as folder:
        store = described_runs.write(Path(folder) / "store", described)
        outcome = apply("dedup_exact", store, of=of)
        runs = [run for run in store.trajectories() if run.parent_id is None]
        assert outcome.columns is not None
        result = groups(store, outcome.columns, "exact_cluster")
    expected = defaultdict(list)
    for run in runs:
        content = _content(run, of)
        expected[repr(content) if content is not None else run.trajectory_id].append(run)
    assert outcome.dropped is not None
    assert result == sorted(
        sorted(run.trajectory_id for run in group) for group in expected.values()
    )
    # In each group the best one stays: the highest reward, then the least text, then the id.
    gone = set(outcome.dropped["seq"].to_list())
    assert len(gone) == len(runs) - len(expected)
    for group in expected.values():
        (stays,) = [run for run in group if run.seq not in gone]
        best = max(run.reward if run.reward is not None else -1e9 for run in group)
        assert (stays.reward if stays.reward is not None else -1e9) == best


def _chat(builder: RowBuilder, seq: int, name: str, text: str, arguments: str, **ours: Any) -> None:
    builder.begin(Origin(seq=seq, dataset="d"))
    builder.trajectory({"source_id": name, **ours})
    builder.step({"source": "user", "kind": "message", "text": "Do it"})
    builder.step({"source": "agent", "kind": "llm_turn", "text": text})
    builder.call({"call_id": f"c{seq}", "kind": "function", "name": "t", "arguments": arguments})
    builder.finish()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    builder = RowBuilder()
    _chat(builder, 0, "a", "Well  then", '{"x": 1, "y": 2}', reward=0.5, task_id="t")
    _chat(builder, 1, "b", "Well  then", '{"y":2,"x":1}', reward=1.0, task_id="t")
    _chat(builder, 2, "c", "well then", '{"x": 1, "y": 2}', task_id="u")
    _chat(builder, 3, "d", "Well  then", '{"x": 1, "y": 3}', task_id="u")
    builder.begin(Origin(seq=4, dataset="d"))
    builder.trajectory({"source_id": "e"})
    builder.finish()
    builder.begin(Origin(seq=5, dataset="d"))
    builder.trajectory({"source_id": "f"})
    builder.finish()
    return write_store(tmp_path / "store", builder)


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        ({}, {0: "d/b"}),
        ({"normalise": True}, {0: "d/b", 2: "d/b"}),
        ({"keep": ["reward asc"]}, {1: "d/a"}),
        ({"of": "actions"}, {0: "d/b", 2: "d/b"}),
        ({"of": "task"}, {0: "d/b", 3: "d/c"}),
        ({"of": "task_text", "keep": ["trajectory_id desc"]}, {0: "d/d", 1: "d/d", 2: "d/d"}),
    ],
)
def test_what_goes(store: Store, options: dict[str, Any], gone: dict[int, str]) -> None:
    outcome = apply("dedup_exact", store, **options)
    assert outcome.dropped is not None
    named = {
        row["seq"]: json.loads(row["evidence"])["survivor"]
        for row in outcome.dropped.iter_rows(named=True)
    }
    assert named == gone
    assert outcome.columns is not None
    assert outcome.columns.height == 6
    assert set(outcome.columns.columns) == {"seq", *_column_names(options)}
    assert outcome.columns["exact_cluster_size"].to_list()[4:] == [1, 1]
    assert apply("dedup_exact", store, drop=False, **options).dropped is None


def _column_names(options: dict[str, Any]) -> list[str]:
    from adp.curation.ops.dedup_exact import OP

    return list(OP.columns(DedupExact(**options)))
