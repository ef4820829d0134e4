"""Whatever an agent sends, a built-in environment answers with a result, and soon."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adp.rollouts.environments.calculator import Calculator
from adp.rollouts.environments.configured import KIND as CONFIGURED
from adp.rollouts.environments.from_object import from_object
from adp.rollouts.environments.retrieve_documents import KIND as RETRIEVE
from adp.rollouts.environments.search import SearchEnvironment
from adp.rollouts.environments.weather import Weather
from adp.rollouts.turns import Call, Turn
from adp_schema.model import Task
from tests.rollouts.environments.test_from_object import Shop

MOST = 400_000
"""Characters that a result may have, far more than any of these should."""

HUGE = [
    '{"expression": "' + "9" * 100_000 + '"}',
    '{"expression": "' + "(" * 100_000 + '"}',
    '{"expression": "9**9**9**9**9"}',
    '{"expression": ' + "9" * 100_000 + "}",
    '{"query": "' + "a " * 500_000 + '"}',
    '{"location": "' + "x" * 1_000_000 + '"}',
    '{"id": "x", "start": ' + "9" * 4000 + "}",
    '{"location": "x", "day": "9999999-99-99"}',
    '{"location": "\\ud800", "day": "\\udfff"}',
    "[" * 100_000,
    '{"a":' * 100_000,
    '{"x": 1, "x": 2}',
    '{"x": NaN}',
    '{"x": 1e999}',
    "",
    "null",
    "\ud800",
    "\x00",
]


def worlds(tmp_path):
    (tmp_path / "docs").mkdir(exist_ok=True)
    (tmp_path / "docs" / "a.txt").write_text("an owl", encoding="utf-8")
    properties = {"expression": {"type": "string"}}
    tool = {"name": "calculator", "parameters": {"type": "object", "properties": properties}}
    file = tmp_path / "tools.json"
    file.write_text(json.dumps([tool]), encoding="utf-8")
    return [
        Calculator(),
        Weather(),
        SearchEnvironment(),
        RETRIEVE.make(RETRIEVE.settings(collections=tmp_path)),
        CONFIGURED.make(CONFIGURED.settings(file=file)),
        from_object(Shop),
    ]


@pytest.fixture(scope="module")
def worlds_begun(tmp_path_factory):
    result = worlds(tmp_path_factory.mktemp("hostile"))
    for world in result:
        world.reset(Task(task_id="t", instruction="Do it."), seed=0)
    return result


def answered(world, turn):
    outcome = world.step(turn)
    assert len(outcome.results) == len(turn.calls)
    for result in outcome.results:
        assert isinstance(result.text, str)
        assert len(result.text) < MOST
        json.dumps(result.structured, allow_nan=False)
        assert not (result.error and not result.text)


@pytest.mark.parametrize("arguments", HUGE, ids=range(len(HUGE)))
def test_huge_and_broken_arguments_are_answered(worlds_begun, arguments):
    for world in worlds_begun:
        for tool in world.tools():
            answered(world, Turn(calls=(Call(tool["function"]["name"], arguments),)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_arguments_are_answered(worlds_begun, data):
    world = data.draw(st.sampled_from(worlds_begun))
    tool = data.draw(st.sampled_from(world.tools()))["function"]
    keys = st.sampled_from([*tool["parameters"]["properties"], "other"])
    given_ = data.draw(st.dictionaries(keys, JSON, max_size=4))
    text = data.draw(st.just(json.dumps(given_)) | st.text(max_size=30))
    name = data.draw(st.just(tool["name"]) | st.text(max_size=10))
    answered(world, Turn(calls=(Call(name, text), Call(tool["name"], text))))
