"""Texts by role, against a plain walk over the trajectories."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.curation.texts.views import (
    EVERYTHING,
    action_text,
    added_lines,
    canonical_json,
    check_kinds,
    views,
    written_text,
)
from adp_schema.builder import Origin, RowBuilder
from adp_schema.model import Trajectory
from adp_schema.store import Store
from tests.curation.pools import open_pool
from tests.effort import examples
from tests.store_builders import write_store
from tests.stores import described_runs

Row = tuple[str, int, str, str]


def _walk(trajectory: Trajectory, kinds: set[str]) -> list[Row]:
    """``(id, message, kind, text)`` of a trajectory, the slow way."""
    agent_steps = [s.step for s in trajectory.steps if s.source == "agent"]
    first = min(agent_steps, default=None)
    results: list[tuple[str, str, str]] = []
    name = trajectory.trajectory_id
    for step in trajectory.steps:
        key = f"s{step.step}"
        if step.source == "agent":
            results.append((key, "agent", step.reasoning or ""))
            results.append((key, "agent", step.text or ""))
        elif step.source == "user":
            early = first is None or step.step < first
            results.append((key, "task" if early else "user", step.text or ""))
        else:
            kind = "system" if step.source == "system" else "observations"
            results.append((key, kind, step.text or ""))
        for call in step.calls:  # of any step: the model may have called under another source
            text = action_text(call.name, call.arguments, call.arguments_raw)
            results.append((key, "actions", text))
        for observation in step.observations:
            results.append((f"{key}o{observation.order}", "observations", observation.text or ""))
    kept = [row for row in results if row[1] in kinds and row[2]]
    numbers: dict[str, int] = {}
    return [(name, numbers.setdefault(key, len(numbers)), kind, text) for key, kind, text in kept]


@settings(max_examples=examples(50))
@given(described_runs.shards, st.sets(st.sampled_from(EVERYTHING), min_size=1))
def test_views_are_the_texts_of_a_plain_walk(described: Any, kinds: set[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = described_runs.write(Path(folder) / "store", described)
        with open_pool(Path(folder) / "scratch", store) as pool:
            names = dict(pool.members.select("seq", "trajectory_id").iter_rows())
            partitions = [
                (names[row["seq"]], row["message"], row["kind"], row["text"])
                for partition in pool.partitions
                for row in views(partition, kinds).iter_rows(named=True)
            ]
        main = [t for t in store.trajectories() if t.parent_id is None]
    assert partitions == [row for trajectory in main for row in _walk(trajectory, kinds)]


def _store(folder: Path) -> Store:
    builder = RowBuilder()
    builder.begin(Origin(seq=0, dataset="d"))
    builder.trajectory({"source_id": "a"})
    builder.step({"source": "system", "kind": "message", "text": "rules"})
    builder.step({"source": "user", "kind": "message", "text": "fix it"})
    builder.step({"source": "agent", "kind": "llm_turn", "text": "I look <x>", "prose": "I look"})
    builder.call({"call_id": "1", "kind": "function", "name": "ls", "arguments": "{}"})
    builder.observation({"source": "environment", "text": "a.py"}, answers="1")
    builder.step({"source": "user", "kind": "message", "text": "go on"})
    builder.step({"source": "user", "kind": "context_edit", "text": "summary"})
    builder.step(
        {"source": "agent", "kind": "llm_turn", "text": "again", "is_copied_context": True}
    )
    arguments = json.dumps({"path": "a.py", "new_str": "x = 1\ny = 2", "old_str": "x = 0"})
    builder.step({"source": "agent", "kind": "llm_turn", "reasoning": "now"})
    builder.call({"call_id": "2", "kind": "function", "name": "edit", "arguments": arguments})
    builder.call({"call_id": "3", "kind": "function", "name": "say", "requestor": "user"})
    diff = "done\ndiff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n-x = 0\n+x = 1"
    builder.observation({"source": "environment", "text": diff}, answers="2")
    builder.finish()
    return write_store(folder, builder)


def test_kinds_of_a_small_trajectory(tmp_path: Path) -> None:
    with open_pool(tmp_path / "scratch", _store(tmp_path / "store")) as pool:
        (partition,) = pool.partitions
        rows = views(partition, ["all"])
        assert rows.drop("seq").rows()[:6] == [
            (0, 0, "system", "rules"),
            (1, 1, "task", "fix it"),
            (2, 2, "agent", "I look"),
            (2, 2, "actions", "ls"),
            (2, 3, "observations", "a.py"),
            (3, 4, "user", "go on"),
        ]
        assert rows["text"].to_list()[6:8] == [
            "now",
            "edit\nnew_str: x = 1\ny = 2\nold_str: x = 0\npath: a.py",
        ]
        patch = views(partition, ["patch"])
        assert patch["text"].to_list() == ["x = 1\ny = 2", "x = 1"]
        assert patch["message"].to_list() == [0, 1]
        assert views(partition, []).is_empty()
        everything = pl.concat(views(partition, [kind]) for kind in EVERYTHING)
        assert sorted(everything["text"]) == sorted(rows["text"])


def test_action_text_does_not_depend_on_the_order_of_keys() -> None:
    result = action_text("t", '{"b": [1, {"z": "q\\n"}], "a": null}')
    assert (
        result
        == action_text("t", '{"a":null,"b":[1,{"z":"q\\n"}]}')
        == "t\na: null\nb: 1\nb: z: q\n"
    )
    assert action_text(None, None, "not json") == "\nnot json"
    assert action_text("t", '"ls -l"') == "t\nls -l"
    deep = "[" * 450 + "]" * 450
    assert action_text("t", deep) in ("t", f"t\n{deep}")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_canonical_json_keeps_the_value(value: Any) -> None:
    text = json.dumps({"b": value, "a": 1}, indent=2)
    other = json.dumps({"a": 1, "b": value})
    assert canonical_json(text) == canonical_json(other)
    assert json.loads(canonical_json(text) or "") == json.loads(text)


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (None, ""),
        ("3", ""),
        ('{"content": "hello"}', ""),
        ('{"content": "hello", "path": "a"}', "hello"),
        ('{"edits": [{"new_string": "a"}, {"new_string": "b"}]}', "a\nb"),
        ('{"patch": "*** Begin Patch\\n*** Update File: a\\n@@\\n-x\\n+y\\n*** End Patch"}', "y"),
        ('{"old_str": "a"', ""),
    ],
)
def test_written_text(arguments: str | None, written: str) -> None:
    assert written_text(arguments) == written


def test_added_lines_end_with_the_patch() -> None:
    diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n one\n-two\n+three"
    assert added_lines(f"+ no\n{diff}\nthat is it\n+no") == "three"


def test_no_kind_is_an_error() -> None:
    with pytest.raises(ValueError, match="names no text"):
        check_kinds([])
