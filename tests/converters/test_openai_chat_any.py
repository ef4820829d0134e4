"""OpenAI chat: any record comes back token by token."""

from __future__ import annotations

import json
import re

from hypothesis import HealthCheck, Phase, given, settings

from adp.converters.openai_chat import CONVERTER
from adp_schema.losses import Losses
from tests.converters.strategies import openai_records
from tests.effort import examples
from tests.roundtrip import read_one, write_one

MANY = settings(
    max_examples=examples(250),
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+', re.DOTALL)


def tokens(data: bytes) -> list[str]:
    """The tokens of JSON text: numbers as spelled, strings decoded, keys in order."""
    return [
        "s" + json.loads(token, strict=False) if token[0] == '"' else token
        for token in _TOKEN.findall(data.decode("utf-8"))
    ]


def test_tokens_tell_spellings_apart():
    assert tokens(b'{"a": 1.0}') == tokens(b'{"\\u0061":1.0}')
    assert tokens(b'{"a":1.0}') != tokens(b'{"a":1}')
    assert tokens(b'{"a":1,"a":2}') != tokens(b'{"a":2}')
    assert tokens(b'{"a":"1"}') != tokens(b'{"a":1}')
    assert tokens(b'{"a":1,"b":2}') != tokens(b'{"b":2,"a":1}')
    assert tokens(b'"\\ud83d"') != tokens(b'"\\ufffd"')


@MANY
@given(openai_records())
def test_any_record_comes_back(data):
    losses = Losses()
    (trajectory,) = read_one(CONVERTER, data)
    assert trajectory.losses is None
    assert trajectory.raw == []
    assert tokens(write_one(CONVERTER, trajectory, losses)) == tokens(data)
    assert losses.items == []
