"""ShareGPT: any record comes back token by token."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings

from adp.converters.sharegpt import CONVERTER
from adp_schema.protocols import Losses
from tests.converters.sharegpt_records import sharegpt_records
from tests.converters.test_openai_chat_any import tokens
from tests.roundtrip import read_one, write_one

MANY = settings(
    max_examples=300,
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@MANY
@given(sharegpt_records())
def test_any_record_comes_back(data):
    losses = Losses()
    run, *branches = read_one(CONVERTER, data)
    assert run.losses is None
    run.branches = branches
    assert tokens(write_one(CONVERTER, run, losses)) == tokens(data)
    assert losses.items == []
