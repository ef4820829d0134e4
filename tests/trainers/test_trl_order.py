"""The order of prompts of a resumed GRPO is that of TRL's own sampler without a stop."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@settings(deadline=None)
@given(
    count=st.integers(1, 12),
    together=st.integers(1, 4),
    repeats=st.integers(1, 3),
    epoch=st.integers(0, 5),
    seed=st.integers(0, 2**32 - 1),
    shuffle=st.booleans(),
)
def test_an_epoch_has_the_order_that_it_has_without_a_stop(
    count, together, repeats, epoch, seed, shuffle
):
    from trl.trainer.utils import RepeatSampler

    from adp.trainers.trl_order import EpochSampler

    given_to_both = (range(count), 2, together, repeats, shuffle, seed)
    whole = RepeatSampler(*given_to_both)
    orders = [list(whole) for _ in range(epoch + 2)]
    resumed = EpochSampler(*given_to_both)
    resumed.set_epoch(epoch)
    assert [list(resumed), list(resumed)] == orders[epoch:]
