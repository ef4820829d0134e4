"""Between ShareGPT and others: everything arrives, and a trainer can load what is written."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given

from adp_schema.losses import Losses
from tests.converters.sharegpt_records import sharegpt_records
from tests.converters.strategies import adp_v1_records, openai_records
from tests.converters.test_between_formats import (
    ADP_FILES,
    CHAT_FILES,
    DATA,
    MANY,
    between,
    check_adp,
    records,
)

SHAREGPT_FILES = [
    *sorted(DATA.glob("formats/sharegpt/*.json")),
    *sorted(DATA.glob("formats/hermes_fc/*.json")),
    *sorted(DATA.glob("formats/toolace/*.json")),
    *sorted(DATA.glob("datasets/eto/*.json")),
    *sorted(DATA.glob("datasets/glaive_sharegpt_demo/*.json")),
    *sorted(DATA.glob("datasets/agentinstruct_*/*.json")),
]


def check_sharegpt(record: dict[str, Any], losses: Losses) -> None:
    """The turns alternate, as LLaMA-Factory wants them, and calls are JSON; or it is reported."""
    reported = [item["reason"] for item in losses.items if item["path"] == "$.steps"]
    turns = record["conversations"]
    sides = [turn["from"] in ("gpt", "function_call") for turn in turns]
    assert all(turn.keys() == {"from", "value"} for turn in turns)
    assert {turn["from"] for turn in turns} <= {"human", "observation", "gpt", "function_call"}
    assert sides == [index % 2 == bool(sides and not sides[0]) for index in range(len(sides))]
    if sides:
        assert sides[0] == any("begins" in reason for reason in reported)
        assert sides[-1] != any("end" in reason for reason in reported)
    for turn in turns:
        if turn["from"] == "function_call":
            text = re.sub(r"^<think>.*</think>\s*", "", turn["value"], flags=re.DOTALL)
            calls = json.loads(text, strict=False)
            for call in calls if isinstance(calls, list) else [calls]:
                assert list(call) == ["name", "arguments"]
    assert isinstance(record["id"], str)
    assert isinstance(record.get("tools", ""), str)
    assert isinstance(record.get("system", ""), str)


@MANY
@given(openai_records())
def test_openai_chat_to_sharegpt(data):
    _, record, losses = between(data, "openai_chat", "sharegpt")
    check_sharegpt(record, losses)


@MANY
@given(adp_v1_records())
def test_adp_v1_to_sharegpt(data):
    _, record, losses = between(data, "adp_v1", "sharegpt")
    check_sharegpt(record, losses)


@MANY
@given(sharegpt_records(pairs=False))
def test_sharegpt_to_openai_chat(data):
    between(data, "sharegpt", "openai_chat")


@MANY
@given(sharegpt_records(pairs=False))
def test_sharegpt_to_adp_v1(data):
    run, record, _ = between(data, "sharegpt", "adp_v1")
    check_adp(run, record)


@pytest.mark.skipif(not DATA.exists(), reason="the reference data are not here")
def test_all_files_are_there():
    assert len(SHAREGPT_FILES) == 9


@pytest.mark.parametrize("path", SHAREGPT_FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_real_sharegpt_file_to_others(path):
    for data in records(path):
        between(data, "sharegpt", "openai_chat")
        run, record, _ = between(data, "sharegpt", "adp_v1")
        check_adp(run, record)


@pytest.mark.parametrize("path", ADP_FILES, ids=lambda path: path.parent.name)
def test_a_real_adp_file_to_sharegpt(path):
    for data in records(path):
        _, record, losses = between(data, "adp_v1", "sharegpt")
        check_sharegpt(record, losses)


@pytest.mark.parametrize("path", CHAT_FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_real_chat_file_to_sharegpt(path):
    for data in records(path):
        _, record, losses = between(data, "openai_chat", "sharegpt")
        check_sharegpt(record, losses)
