"""ATIF: any record comes back token by token, and every flavour can be written of it."""

from __future__ import annotations

import json

from atif import Trajectory as Strict
from hypothesis import HealthCheck, Phase, given, settings

from adp.converters.atif import CONVERTER
from adp_schema import jsontext
from adp_schema.losses import Losses
from tests.converters.atif_records import atif_records, read, write
from tests.converters.test_openai_chat_any import tokens
from tests.effort import examples

MANY = settings(
    max_examples=examples(80),
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@MANY
@given(atif_records())
def test_any_record_comes_back(data):
    losses = Losses()
    run = read(data)
    assert run.losses is None
    assert run.raw == []
    assert tokens(write(run, losses)) == tokens(data)
    assert losses.items == []


@MANY
@given(atif_records())
def test_any_record_becomes_valid_for_harbor(data):
    run = read(data)
    written = jsontext.encode(CONVERTER.write(run, Losses(), "harbor"))
    text = written.decode("utf-8")
    if "\\ud83d" in text or "\\udc00" in text:
        return  # pydantic takes no lone surrogates
    Strict.model_validate(json.loads(text))


@MANY
@given(atif_records())
def test_any_record_keeps_its_words_upstream(data):
    record = CONVERTER.write(read(data), Losses(), "upstream")
    plain = json.loads(jsontext.encode(record))
    assert plain["schema_version"] == "ATIF-v1.7"
    assert [step["step_id"] for step in plain["steps"]] == list(range(1, len(plain["steps"]) + 1))
