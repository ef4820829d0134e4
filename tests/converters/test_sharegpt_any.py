"""ShareGPT: any record comes back token by token, and the quick way gives the same rows."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from adp.converters.sharegpt import CONVERTER, turns
from adp_schema import jsontext
from adp_schema.builder import Origin, RowBuilder
from adp_schema.losses import Losses
from adp_schema.protocols import RawRecord
from tests.converters.sharegpt_records import sharegpt_records
from tests.converters.test_openai_chat_any import tokens
from tests.effort import examples
from tests.roundtrip import read_one, write_one

MANY = settings(
    max_examples=examples(200),
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


def rows(data: bytes) -> object:
    marked = not jsontext.is_valid(data)
    text = jsontext.sanitise(data) if marked else data
    builder, losses = RowBuilder(), Losses()
    builder.begin(Origin(0, "d", {"source_hash": "h"}, marked=marked))
    CONVERTER.read(RawRecord(text, "f", 1, 0, len(data), marked), builder, losses)
    builder.close_record(losses)
    return builder.rows


@MANY
@given(sharegpt_records())
def test_the_quick_way_gives_the_same_rows(data):
    quick = rows(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turns, "_plain_text", lambda _: None)
        assert rows(data) == quick
