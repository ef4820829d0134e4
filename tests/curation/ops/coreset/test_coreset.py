"""The op coreset: methods, ties, what it says, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError

from adp.curation.apply import apply
from adp.curation.op import OpResult
from adp.curation.ops import coreset
from adp.curation.ops.coreset import OP, Coreset, run
from adp_schema.errors import RecipeError
from tests.curation.pools import open_pool
from tests.curation.vector_stores import chat_store, one_liners, with_column

VECTORS = [[1.0, 0.0], [1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.0, 0.0], [-1.0, 0.0], [0.7, 0.7]]
SCORES = [0.3, None, 0.9, 0.3, float("nan"), 0.1, 0.9]
METHODS = ("random", "top", "k_center", "facility_location", "hybrid", "stratified", "mmr")


def select(folder: Path, seed: int = 0, **options: Any) -> tuple[list[str], OpResult]:
    """Select among seven trajectories with vectors and scores; ids in the order of selection."""
    columns = {"reward": [*SCORES[:4], None, *SCORES[5:]], "dataset": ["b", "a"] * 3 + ["a"]}
    texts = ["word " * (number + 1) for number in range(7)]
    if not (folder / "s").exists():
        chat_store(folder / "s", one_liners(texts, **columns))
    from adp_schema.store import Store

    store = Store.open(str(folder / "s"))
    number = len(list(folder.iterdir()))
    with open_pool(folder / f"x{number}", store, seed=seed) as pool:
        with_column(pool, "e", VECTORS)
        with_column(pool, "score", SCORES)
        outcome = run(pool, Coreset(embedding="e", **options))
        names = dict(pool.members.select("seq", "source_id").iter_rows())
    assert outcome.columns is not None
    ranked = outcome.columns.drop_nulls("coreset_rank").sort("coreset_rank")
    assert outcome.dropped is not None
    assert set(ranked["seq"]) | set(outcome.dropped["seq"]) == set(names)
    assert ranked.height + outcome.dropped.height == len(names)
    return [names[seq] for seq in ranked["seq"]], outcome


def test_top_takes_the_highest_and_ties_in_order(tmp_path: Path) -> None:
    assert select(tmp_path, method="top", by="score", size=6)[0] == [
        *("t2", "t6", "t0", "t3", "t5", "t1"),
    ]
    result, outcome = select(tmp_path, method="top", by="score", size=2, descending=False)
    assert result == ["t5", "t0"]
    assert outcome.columns is not None
    assert outcome.columns["coreset_gain"].to_list() == [0.3, 0.1]


def test_k_center_goes_to_the_farthest(tmp_path: Path) -> None:
    result, outcome = select(tmp_path, method="k_center", size=4)
    assert result == ["t6", "t5", "t4", "t0"]
    assert outcome.dropped is not None
    output = {row["seq"] // 3: json.loads(row["evidence"]) for row in outcome.dropped.to_dicts()}
    assert output[1] == {"distance": 0.0, "nearest": "b/t0"}
    assert output[3]["nearest"] == "a/t6"
    assert output[3]["distance"] == pytest.approx((2 - 2**0.5) ** 0.5, abs=1e-4)
    assert set(outcome.dropped["reason"]) == {"not in the coreset"}


def test_coverage_stands_beside_chance(tmp_path: Path) -> None:
    _, outcome = select(tmp_path, method="facility_location", size=3)
    figures = outcome.summary["coverage"]
    assert set(figures) == {"coreset", "random", "longest"}
    assert figures["coreset"]["facility_location"] > figures["longest"]["facility_location"]
    assert any("random" in line and "longest" in line for line in outcome.lines)
    assert outcome.summary["vectors"] == {"from": "the column e", "zeros": 1}
    assert any("vector of zeros" in line for line in outcome.lines)


def test_the_longest_are_the_longest(tmp_path: Path) -> None:
    _, outcome = select(tmp_path, method="random", size=1)
    ours = np.array(VECTORS)[6] / 0.98**0.5
    length = np.linalg.norm(VECTORS, axis=1)
    cosine = np.array(VECTORS) @ ours / np.where(length, length, 1)
    facility_location = outcome.summary["coverage"]["longest"]["facility_location"]
    assert facility_location == pytest.approx(np.maximum(cosine, 0).sum(), abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_keeps_as_many_as_asked(tmp_path: Path, method: str) -> None:
    more = {"strata": "dataset"} if method == "stratified" else {}
    for size in (1, 3, 7, 9):
        result, outcome = select(tmp_path, method=method, by="score", size=size, **more)
        assert len(set(result)) == min(size, 7)
        assert outcome.summary["kept"] == min(size, 7)
        assert outcome.summary["of"] == 7
    assert "there are not more than that" in outcome.lines[0]
    again, _ = select(tmp_path, method=method, by="score", size=3, **more)
    assert again == select(tmp_path, method=method, by="score", share=0.4, **more)[0]


def test_random_depends_on_the_seed_alone(tmp_path: Path) -> None:
    tuples = {tuple(select(tmp_path, seed, method="random", size=3)[0]) for seed in range(8)}
    assert len(tuples) > 3
    result = select(tmp_path, 5, method="random", size=4, coverage=False)[0]
    assert result[:3] == select(tmp_path, 5, method="random", size=3)[0]


def test_hybrid_is_top_then_farthest(tmp_path: Path) -> None:
    result, _ = select(tmp_path, method="hybrid", by="score", size=4)
    assert result == ["t2", "t6", "t5", "t4"]
    result, _ = select(tmp_path, method="hybrid", by="score", size=4, loss_ratio=0)
    assert result == select(tmp_path, method="k_center", size=4)[0]


def test_strata_get_their_shares(tmp_path: Path) -> None:
    # 4 of stratum a, 3 of b; null scores last within each
    options = {"method": "stratified", "inner": "top", "by": "score", "size": 4}
    result, _ = select(tmp_path, strata="dataset", **options)
    assert result == ["t6", "t3", "t2", "t0"]
    result, outcome = select(tmp_path, strata="reward > 0.5", **options)
    assert outcome.summary["strata"] == [
        {"stratum": None, "of": 2, "kept": 1},
        {"stratum": "false", "of": 3, "kept": 2},
        {"stratum": "true", "of": 2, "kept": 1},
    ]
    assert len(result) == 4


def test_mmr_weighs_score_against_likeness(tmp_path: Path) -> None:
    options = {"method": "mmr", "by": "score", "size": 2}
    assert select(tmp_path, **{"lambda": 1.0}, **options)[0] == ["t2", "t6"]
    assert select(tmp_path, **{"lambda": 0.4}, **options)[0] == ["t2", "t3"]


def test_on_its_own_words(tmp_path: Path) -> None:
    texts = ["alpha beta gamma delta"] * 5 + ["one two three four"] * 5 + ["x y z", ""]
    store = chat_store(tmp_path / "s", one_liners(texts))
    outcome = apply("coreset", store, method="k_center", size=4)
    assert outcome.columns is not None
    kept = {texts[seq // 3] for seq in outcome.columns["seq"]}
    assert kept == set(texts)
    assert outcome.summary["vectors"]["from"] == "words of task, agent, actions"


def test_large_coverage_is_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coreset, "PAIRS", 10)
    _, outcome = select(tmp_path, method="k_center", size=3)
    assert outcome.summary["measured_on"] == 7
    assert outcome.dropped is not None
    assert outcome.dropped["evidence"].null_count() == 4


def test_an_empty_pool(tmp_path: Path) -> None:
    store = chat_store(tmp_path / "s", one_liners(["a"]))
    for method in METHODS:
        more = {"strata": "dataset"} if method == "stratified" else {}
        with open_pool(tmp_path / method, store) as pool:
            pool.members = pool.members.clear().with_columns(pl.lit(1.0).alias("loss"))
            outcome = run(pool, Coreset(method=method, size=3, **more))
        assert outcome.columns is not None
        assert outcome.columns.height == 0


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    store = chat_store(tmp_path / "s", one_liners(["a", "b"]))
    with pytest.raises(RecipeError, match="needs the column loss"):
        apply("coreset", store, method="loss_topk", size=1)
    with pytest.raises(RecipeError, match="needs the column e,"):
        apply("coreset", store, method="k_center", embedding="e", size=1)
    with pytest.raises(
        RecipeError, match=r"cannot rank by the column dataset.*name one of numbers"
    ):
        apply("coreset", store, method="top", by="dataset", size=1)
    with pytest.raises(RecipeError, match="cannot use the strata"):
        apply("coreset", store, method="stratified", strata="nothing_like_it", size=1)
    assert OP.needs(Coreset(method="top", by="reward", size=1)) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "random"}, "exactly one of size and share"),
        ({"method": "random", "size": 3, "share": 0.5}, "exactly one of size and share"),
        ({"method": "random", "size": 0}, "size must be 1 or more"),
        ({"method": "stratified", "size": 1}, "strata belongs to the method stratified"),
        ({"method": "top", "size": 1, "strata": "dataset"}, "strata belongs to"),
        ({"method": "mmr", "size": 1, "compat": "sage"}, "compat sage has the methods random"),
        ({"method": "random", "share": 0.5, "compat": "sage"}, "takes a size, not a share"),
        ({"method": "hybrid", "size": 1, "loss_ratio": 0.5, "compat": "sage"}, "always takes 0.6"),
        ({"method": "k_center", "size": 1, "views": []}, "names no text"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Coreset.model_validate(options)
