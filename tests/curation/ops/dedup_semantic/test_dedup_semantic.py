"""The op dedup_semantic: who stays, what it says, and when it stops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from adp.curation.apply import apply
from adp.curation.op import OpResult
from adp.curation.ops.dedup_semantic import OP, DedupSemantic, run
from adp_schema.errors import RecipeError
from tests.curation.pools import open_pool
from tests.curation.vector_stores import chat_store, one_liners, with_column

# 0, 1 and 2 are alike, 3 is like 2 but not like 0; 4 and 5 say nothing
VECTORS = [[1.0, 0.0], [2.0, 0.1], [0.95, 0.3], [0.8, 0.6], [0.0, 0.0], [0.0, 0.0], [0.0, 1.0]]


def dedup(folder: Path, rewards: list[float | None], **options: Any) -> OpResult:
    tasks = options.pop("tasks", [None] * 7)
    columns = {"reward": rewards, "task_id": tasks}
    texts = ["word " * (7 - number) for number in range(7)]
    store = chat_store(folder / "s", one_liners(texts, **columns))
    with open_pool(folder / "x", store) as pool:
        with_column(pool, "e", VECTORS)
        return run(pool, DedupSemantic(embedding="e", threshold=0.94, **options))


def clusters(outcome: OpResult) -> list[str]:
    assert outcome.columns is not None
    return outcome.columns.sort("seq")["semantic_cluster"].to_list()


def test_a_cluster_is_a_star_around_the_best(tmp_path: Path) -> None:
    outcome = dedup(tmp_path, [1.0, None, 0.0, 0.0, None, None, None])
    assert clusters(outcome) == ["d/t0", "d/t0", "d/t0", "d/t3", "d/t4", "d/t5", "d/t6"]
    assert outcome.columns is not None
    assert outcome.columns["semantic_cluster_size"].to_list() == [3, 3, 3, 1, 1, 1, 1]
    similarity = outcome.columns["semantic_similarity"].to_list()
    assert similarity[1:3] == pytest.approx([0.99875, 0.95358], abs=1e-5)
    assert similarity[3:] == [None] * 4
    assert outcome.dropped is not None
    assert outcome.dropped["seq"].to_list() == [3, 6]
    assert set(outcome.dropped["reason"]) == {"semantic duplicate"}
    assert json.loads(outcome.dropped["evidence"][1]) == {"anchor": "d/t0", "similarity": 0.9536}
    assert outcome.summary["not_compared"] == 2
    least = outcome.summary["least_similar"]
    assert [item["trajectory_id"] for item in least] == ["d/t2", "d/t1"]
    assert "d/t2 and d/t0 (0.954)" in outcome.lines[1]


def test_the_survivor_is_the_best_then_the_shortest(tmp_path: Path) -> None:
    best = dedup(tmp_path / "a", [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    assert clusters(best)[:4] == ["d/t2"] * 4
    shortest = dedup(tmp_path / "b", [None] * 7)
    assert clusters(shortest)[:4] == ["d/t1", "d/t1", "d/t3", "d/t3"]
    other = dedup(tmp_path / "c", [None] * 7, keep=["size desc"])
    assert clusters(other)[:4] == ["d/t0", "d/t0", "d/t0", "d/t3"]


def test_attempts_at_one_task_are_no_duplicates(tmp_path: Path) -> None:
    tasks = ["a", "a", "b", None, None, None, None]
    rewards = [3.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    apart = dedup(tmp_path / "a", rewards, tasks=tasks)
    assert clusters(apart)[:4] == ["d/t0", "d/t1", "d/t0", "d/t3"]
    together = dedup(tmp_path / "b", rewards, tasks=tasks, attempts="together")
    assert clusters(together)[:4] == ["d/t0", "d/t0", "d/t0", "d/t3"]


def test_only_columns(tmp_path: Path) -> None:
    outcome = dedup(tmp_path, [1.0] + [0.0] * 6, drop=False)
    assert outcome.dropped is None
    assert outcome.summary["duplicates"] == 2


@pytest.mark.parametrize("exact_up_to", [0, 200_000])
def test_an_alarm_stops(tmp_path: Path, exact_up_to: int) -> None:
    texts = ["the same words again and again"] * 30 + [f"other{n} thing{n}" for n in range(30)]
    store = chat_store(tmp_path / "s", one_liners(texts))
    options = {"exact_up_to": exact_up_to}
    with pytest.raises(RecipeError, match="the cluster of d/t0 has 30 of 60 trajectories"):
        apply("dedup_semantic", store, **options)
    outcome = apply("dedup_semantic", store, alarm="warn", **options)
    assert outcome.summary["duplicates"] == 29
    assert outcome.lines[-1] == "alarm: the cluster of d/t0 has 30 of 60 trajectories"
    assert outcome.summary["search"] == ("exact" if exact_up_to else "random planes")
    quiet = apply("dedup_semantic", store, alarm_cluster=0.5, **options)
    assert quiet.summary["alarms"] == []
    with pytest.raises(RecipeError, match="the data set d would lose 29 of 60"):
        apply("dedup_semantic", store, alarm_cluster=0.5, alarm_loss=0.4, **options)


def test_words_nearly_alike(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(120)]
    texts = [" ".join(words), " ".join([*words, "more"]), " ".join(reversed(words)), ""]
    store = chat_store(tmp_path / "s", one_liners(texts))
    assert clusters(apply("dedup_semantic", store)) == ["d/t0", "d/t0", "d/t2", "d/t3"]


def test_an_empty_pool(tmp_path: Path) -> None:
    store = chat_store(tmp_path / "s", one_liners(["a"]))
    with open_pool(tmp_path / "x", store) as pool:
        pool.members = pool.members.clear()
        outcome = run(pool, DedupSemantic())
    assert outcome.summary["duplicates"] == 0
    assert outcome.columns is not None
    assert set(outcome.columns.columns) == {"seq", *OP.columns(DedupSemantic())}


def test_what_does_not_fit(tmp_path: Path) -> None:
    store = chat_store(tmp_path / "s", one_liners(["a"]))
    with pytest.raises(RecipeError, match="needs the column e,"):
        apply("dedup_semantic", store, embedding="e")
    with pytest.raises(ValidationError, match="not a column with asc or desc"):
        DedupSemantic.model_validate({"keep": ["reward"]})
    with pytest.raises(ValidationError, match="greater than 0"):
        DedupSemantic.model_validate({"threshold": 0})
