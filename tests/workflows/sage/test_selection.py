"""Selection of samples in memory, against plain loops over SAGE's formulas."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from adp.workflows.sage.selection import CoresetSelector
from adp_schema.errors import UsageError

TEXTS = [
    "boats leave the harbour early", "boats leave the harbour late", "rain falls over hills",
    "seven numbers add up", "boats", "numbers numbers numbers", "hills and harbour and rain",
]  # fmt: skip
SAMPLES = [{"sample_id": f"s{n}", "text": text} for n, text in enumerate(TEXTS)]


def shares(text: str) -> dict[str, float]:
    words = Counter(word for word in re.findall(r"[a-z0-9_]+", text.lower()) if len(word) > 2)
    return {word: count / sum(words.values()) for word, count in words.items()}


def likeness(one: int, other: int) -> float:
    first, second = shares(TEXTS[one]), shares(TEXTS[other])
    return sum(first[word] * second.get(word, 0.0) for word in first)


def diverse(places: list[int], size: int) -> list[int]:
    chosen = [max(places, key=lambda n: math.sqrt(likeness(n, n)))]
    while len(chosen) < size:
        rest = [n for n in places if n not in chosen]
        chosen.append(max(rest, key=lambda n: 1 - max(likeness(n, c) for c in chosen)))
    return chosen


def picked(selector: CoresetSelector, **more: Any) -> list[int]:
    return [SAMPLES.index(sample) for sample in selector.select(SAMPLES, **more)]


def test_diversity_and_random() -> None:
    assert picked(CoresetSelector("diversity", 4)) == diverse(list(range(7)), 4)
    assert picked(CoresetSelector("random", 4)) == random.Random(13).sample(range(7), 4)


def test_losses_of_ones_own_and_a_ratio_of_ones_own() -> None:
    losses = {"s1": 3.0, "s3": 2.5, "s5": 2.0, "s6": 0.5}
    assert picked(CoresetSelector("loss_topk", 3), metrics=losses) == [1, 3, 5]
    half = picked(CoresetSelector("hybrid", 4, loss_ratio=0.5), metrics=losses)
    assert half == [1, 3, *diverse([0, 2, 4, 5, 6], 2)]


def test_without_a_model_the_words_stand_in() -> None:
    chosen = picked(CoresetSelector("hybrid", 5))
    assert len(set(chosen)) == 5
    with pytest.raises(UsageError, match="needs a model or metrics"):
        CoresetSelector("hybrid", 5, loss_ratio=0.5).select(SAMPLES)


def test_all_when_there_are_not_more() -> None:
    for size in (None, 0, 7, 9):
        assert CoresetSelector("hybrid", size).select(SAMPLES) == SAMPLES
    assert CoresetSelector(target_size=3).select([]) == []


def test_distances() -> None:
    matrix = CoresetSelector().compute_diversity(SAMPLES)
    expected = [[1 - likeness(a, b) for b in range(7)] for a in range(7)]
    np.testing.assert_allclose(matrix, expected, atol=1e-12)
    assert CoresetSelector().compute_diversity([]).shape == (0, 0)


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match="choose one of loss_topk"):
        CoresetSelector("best")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a share from 0 to 1"):
        CoresetSelector(loss_ratio=2)
    with pytest.raises(UsageError, match="is no model to ask"):
        CoresetSelector().compute_losses(SAMPLES, object())


@pytest.mark.train
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:(torch|transformers|peft|trl|accelerate)")
def test_losses_by_a_model() -> None:
    pytest.importorskip("torch")
    chats = [
        {
            "messages": [
                {"role": "user", "content": "Say it."},
                {"role": "assistant", "content": text},
            ]
        }
        for text in TEXTS
    ]
    selector = CoresetSelector("loss_topk", 3)
    losses = selector.compute_losses(chats, "tiny")
    assert all(math.isfinite(loss) for loss in losses)
    assert len(set(losses)) == 7
    best = sorted(range(7), key=lambda n: -losses[n])[:3]
    assert selector.select(chats, model="tiny") == [chats[n] for n in best]
