"""A replay buffer in memory: its size, its ratio, and that each sample has the same chance."""

from __future__ import annotations

from collections import Counter

import pytest

from adp.workflows.sage.continual import OnlineContinualLearner
from adp_schema.errors import UsageError


def test_a_batch_gets_a_share_of_what_came_before() -> None:
    learner = OnlineContinualLearner(buffer_size=8, replay_ratio=0.5)
    seen: list[int] = []
    for start in range(0, 40, 4):
        batch = {"n": list(range(start, start + 4))}
        mixed = learner.mix_with_replay(batch)["n"]
        assert mixed[:4] == batch["n"]
        assert len(mixed) == 4 + min(2, len(seen))
        assert set(mixed[4:]) <= set(seen)
        learner.update_buffer(batch)
        seen += batch["n"]
        assert len(learner.buffer_snapshot()) == min(8, len(seen))
    learner.clear_buffer()
    assert learner.mix_with_replay([1]) == [1]


def test_every_sample_is_kept_with_the_same_chance() -> None:
    kept: Counter[int] = Counter()
    for seed in range(400):
        learner = OnlineContinualLearner(5, seed=seed)
        for start in range(0, 20, 5):
            learner.update_buffer(list(range(start, start + 5)))
        kept.update(learner.buffer_snapshot())
    # Each of 20 samples is kept in a quarter of 400 runs: 100, give or take five deviations of 8.7.
    assert sum(kept.values()) == 2000
    assert all(abs(kept[n] - 100) < 44 for n in range(20))


def test_lists_and_unequal_columns() -> None:
    learner = OnlineContinualLearner(4, 1.0)
    learner.update_buffer(["a", "b"])
    assert sorted(learner.mix_with_replay(["c", "d"])) == ["a", "b", "c", "d"]
    with pytest.raises(UsageError, match="do not fit the batch"):
        learner.mix_with_replay({"n": [1]})
    with pytest.raises(UsageError, match=r"columns of the batch have \[1, 2\] rows"):
        learner.mix_with_replay({"n": [1], "m": [1, 2]})


@pytest.mark.train
def test_tensors_stay_tensors() -> None:
    torch = pytest.importorskip("torch")
    learner = OnlineContinualLearner(4, 1.0)
    batch = {"input_ids": torch.arange(6).reshape(2, 3)}
    learner.update_buffer(batch)
    mixed = learner.mix_with_replay({"input_ids": torch.zeros(2, 3, dtype=torch.long)})
    assert mixed["input_ids"].shape == (4, 3)
    assert mixed["input_ids"][2:].sum() == 15


@pytest.mark.parametrize(
    "more", [{"buffer_size": 0}, {"replay_ratio": -1}, {"replay_ratio": float("nan")}]
)
def test_numbers_out_of_range(more: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="buffer_size is at least 1"):
        OnlineContinualLearner(**more)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="compat: sage"):
        OnlineContinualLearner(selection_strategy="coreset")
