"""Preference rows: any row comes back token by token, with its worse answer."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings

from adp.converters.preference import CONVERTER
from adp_schema.losses import Losses
from tests.conservation import nest
from tests.converters.strategies import preference_records
from tests.converters.test_openai_chat_any import tokens
from tests.effort import examples
from tests.roundtrip import read_one, write_one


@settings(
    max_examples=examples(80),
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(preference_records())
def test_any_row_comes_back(data):
    losses = Losses()
    runs = read_one(CONVERTER, data)
    assert all(run.losses is None for run in runs)
    (run,) = nest(runs, CONVERTER)
    assert tokens(write_one(CONVERTER, run, losses)) == tokens(data)
    assert losses.items == []
