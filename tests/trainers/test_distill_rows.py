"""The rows of a distillation lose no trained token, and the sampler no row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.trainers.distill_rows import complete_row, step_rows

SPANS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=6)
"""Tokens of context, and tokens of the step that follows; as often as there are steps."""


def laid_out(spans: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    steps: list[int] = []
    for number, (context, trained) in enumerate(spans):
        steps += [-1] * context + [number] * trained
    ids = np.arange(100, 100 + len(steps), dtype=np.int32)
    labels = np.where(np.array(steps, int) >= 0, ids, -100)
    return ids, labels.astype(np.int32), np.array(steps, np.int32)


@given(SPANS)
def test_a_complete_row_has_the_mask_of_sft(spans: list[tuple[int, int]]) -> None:
    ids, labels, _ = laid_out(spans)
    row = complete_row(ids, labels)
    # The first token of all has none before it from which it could be learnt.
    wanted = [int(label) for label in labels[1:] if label != -100]
    if row is None:
        assert not wanted
        return
    joined = [*row.prompt, *row.answer]
    assert joined == ids[: len(joined)].tolist()
    assert len(row.prompt) >= 1
    assert row.answer[row.mask].tolist() == wanted


@given(SPANS)
def test_each_trained_token_is_in_the_row_of_its_step(spans: list[tuple[int, int]]) -> None:
    ids, labels, steps = laid_out(spans)
    rows = list(step_rows(ids, labels, steps))
    trained = [token for row in rows for token in row.answer[row.mask].tolist()]
    assert trained == [int(label) for label in labels[1:] if label != -100]
    for row in rows:
        assert row.mask.all()
        assert row.prompt.tolist() == ids[: len(row.prompt)].tolist()
        assert len(set(steps[len(row.prompt) : len(row.prompt) + len(row.answer)].tolist())) == 1


@pytest.mark.train
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@settings(deadline=None)
@given(
    count=st.integers(1, 12),
    batch=st.integers(1, 5),
    repeats=st.integers(1, 3),
    epoch=st.integers(0, 3),
    shuffle=st.booleans(),
)
def test_the_sampler_has_the_order_of_trl_and_all_rows(
    count: int, batch: int, repeats: int, epoch: int, shuffle: bool
) -> None:
    from trl.trainer.utils import RepeatSampler

    from adp.trainers.trl_distill import FilledSampler

    given_to_both = (range(count), 1, batch, repeats, shuffle, 7)
    theirs = RepeatSampler(*given_to_both)
    orders = [list(theirs) for _ in range(epoch + 1)]
    ours = FilledSampler(*given_to_both)
    ours.set_epoch(epoch)
    order = list(ours)
    assert len(order) == len(ours) == -(-count // batch) * batch * repeats
    assert order[: len(orders[epoch])] == orders[epoch]
    assert set(order) == set(range(count))
    last = order[-batch * repeats :]
    assert last == last[:batch] * repeats
