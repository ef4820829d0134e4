"""An export shows what was edited in the store: no writer copies the source. Every ordered pair."""

from __future__ import annotations

import itertools
import json

import pytest

from adp.converters.registry import BUILTIN, formats
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from tests.conservation import missing, tokens, write_back
from tests.roundtrip import read_one
from tools.tables.field_table import load_probe

PAIRS = list(itertools.product(sorted(BUILTIN), repeat=2))


def runs_of(name: str) -> list[Trajectory]:
    """The example of a format, as the store gives it back: without its raw record."""
    data = json.dumps(load_probe(name)["example"]).encode()
    runs = read_one(formats.get(name), data)
    assert not any(run.raw for run in runs)
    return runs


def write(target: str, runs: list[Trajectory]) -> list[bytes]:
    return write_back(target, runs, Losses())[0]


def assert_only(before: list[bytes], after: list[bytes], old: str, new: str) -> None:
    """The two differ in nothing but that the old word became the new one, at least once."""
    assert len(before) == len(after)
    changed = 0
    for first, second in zip(before, after, strict=True):
        result, two = tokens(first), tokens(second)
        assert len(result) == len(two)
        for old_token, new_token in zip(result, two, strict=True):
            if old_token != new_token:
                assert old_token.replace(old, new) == new_token
                changed += 1
    assert changed


def first_call(runs: list[Trajectory]):
    return next(call for run in runs for step in run.steps for call in step.calls)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_tool_is_renamed(source, target):
    before = write(target, runs_of(source))
    runs = runs_of(source)
    call = first_call(runs)
    old, call.name = call.name, "another_tool"
    assert_only(before, write(target, runs), old, "another_tool")


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_an_argument_is_changed(source, target):
    before = write(target, runs_of(source))
    runs = runs_of(source)
    call = first_call(runs)
    old = str(next(iter(json.loads(call.arguments).values())))
    call.arguments = call.arguments.replace(old, "something else")
    assert_only(before, write(target, runs), old, "something else")


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_text_is_changed(source, target):
    before = write(target, runs_of(source))
    runs = runs_of(source)
    step = next(step for step in runs[0].steps if step.source == "user" and step.text)
    old, step.text = step.text, "A longer question than the one that was asked before?"
    assert_only(before, write(target, runs), old, step.text)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_result_is_changed(source, target):
    before = write(target, runs_of(source))
    runs = runs_of(source)
    row = next(row for step in runs[0].steps for row in step.observations if row.text)
    old, row.text = row.text, "no result"
    assert_only(before, write(target, runs), old, "no result")


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_step_is_dropped(source, target):
    """The last turn of the agent goes; all else is there, and nothing of the turn."""
    runs = runs_of(source)
    gone = runs[0].steps.pop()
    assert gone.text
    losses = Losses()
    written, back = write_back(target, runs, losses)
    assert missing(runs, back, losses) == []
    assert not any(gone.text in token for record in written for token in tokens(record))
