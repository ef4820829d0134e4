"""Session traces: any session comes back token by token, and from and to any other format."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

from adp.converters.registry import formats
from adp.converters.sts import CONVERTER
from adp_schema.losses import Losses
from tests.conservation import missing
from tests.converters.strategies import openai_records, sts_records
from tests.converters.test_openai_chat_any import tokens
from tests.effort import examples
from tests.roundtrip import read_one, write_one

MANY = settings(
    max_examples=examples(120),
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@MANY
@example(b'[{"type":"session"},{"type":"message","message":{"role":"user","line.id":"x"}}]')
@example(b'[{"type":"session"},{"type":"message","message":{"role":"user","line.id":"x"},"id":1}]')
@example(
    b'[{"type":"session"},{"type":"message","message":{"role":"user","line.id":1},"p":null,"q":2}]'
)
@given(sts_records())
def test_any_session_comes_back(data):
    losses, read = Losses(), Losses()
    (run,) = read_one(CONVERTER, data, read)
    if run.losses is not None:
        assert "line." in run.losses
        return
    assert tokens(write_one(CONVERTER, run, losses)) == tokens(data)
    assert losses.items == []


@settings(MANY, max_examples=examples(60))
@given(sts_records())
def test_any_session_arrives_as_chat(data):
    arrives(data, "sts", "openai_chat")


@settings(MANY, max_examples=examples(60))
@given(openai_records())
def test_any_chat_arrives_as_a_session(data):
    arrives(data, "openai_chat", "sts")


def arrives(data: bytes, source: str, target: str) -> None:
    losses = Losses()
    (run,) = read_one(formats.get(source), data)
    written = write_one(formats.get(target), run, losses)
    (back,) = read_one(formats.get(target), written)
    assert missing([run], [back], losses) == []


def test_the_oracle_can_fail():
    data = b'[{"type":"session","harness":"a","id":"b"},'
    data += b'{"type":"message","message":{"role":"user","content":"c"}}]'
    (run,) = read_one(CONVERTER, data)
    run.steps.clear()
    assert tokens(write_one(CONVERTER, run)) != tokens(data)
    with pytest.raises(AssertionError):
        assert missing(read_one(CONVERTER, data), [run], Losses()) == []
