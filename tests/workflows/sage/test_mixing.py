"""Mixing tasks in memory, against the arithmetic of SAGE written as a plain loop."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import pytest

from adp.workflows.sage.mixing import MixerConfig, MultiTaskMixer, TaskSample

WEIGHTS = {"tool_selection": 0.35, "planning": 0.30, "timing": 0.20, "general": 0.15}


def datasets(sizes: dict[str, int]) -> dict[str, list[Any]]:
    return {name: [{"n": n, "of": name} for n in range(size)] for name, size in sizes.items()}


def test_weighted_draws_at_least_ten_and_no_more_than_there_are() -> None:
    sizes = {"tool_selection": 100, "planning": 100, "timing": 15, "other": 100}
    mixed = MultiTaskMixer(MixerConfig(dict(WEIGHTS))).mix(datasets(sizes), 100)
    total = sum(WEIGHTS.values())
    wanted = {
        name: min(max(10, int(100 * WEIGHTS.get(name, 0.1 * total) / total)), size)
        for name, size in sizes.items()
    }
    assert MultiTaskMixer().get_task_distribution(mixed) == wanted
    drawn = Counter((sample.task_type, sample.data["n"]) for sample in mixed)
    assert set(drawn.values()) == {1}
    assert all(s.task_type == s.data["of"] for s in mixed)


@pytest.mark.parametrize("strategy", ["weighted", "balanced", "curriculum"])
def test_the_seed_fixes_the_mixture(
    strategy: Literal["weighted", "balanced", "curriculum"],
) -> None:
    def mix(seed: int) -> list[TaskSample]:
        config = MixerConfig(dict(WEIGHTS), strategy, seed=seed, max_total_samples=60)
        return MultiTaskMixer(config).mix(datasets(dict.fromkeys(WEIGHTS, 40)))

    assert mix(1) == mix(1) != mix(2)


def test_a_curriculum_shuffles_within_its_stages() -> None:
    config = MixerConfig(strategy="curriculum", max_total_samples=90)
    mixed = MultiTaskMixer(config).mix(datasets(dict.fromkeys(WEIGHTS, 100)))
    kinds = [sample.task_type for sample in mixed]
    assert set(kinds[:28]) == {"tool_selection", "general"}
    assert "timing" in kinds[-30:]


def test_samples_keep_their_own_task() -> None:
    config = MixerConfig({"mine": 1.0}, max_total_samples=5)
    sample = TaskSample("mine", {"a": 1}, "a file")
    assert MultiTaskMixer(config).mix({"mine": [sample]}) == [sample]
