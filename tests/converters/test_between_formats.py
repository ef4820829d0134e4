"""From one format to another: every text, name and argument arrives, or the report says not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from adp.converters.registry import formats
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from tests.conservation import missing
from tests.converters.strategies import adp_v1_records, openai_records
from tests.effort import examples
from tests.roundtrip import read_one, write_one

DATA = Path(__file__).parents[2].parent / "shared" / "data"
ADP_FILES = sorted(DATA.glob("adp_v1/*/sample_std.json"))
CHAT_FILES = [
    *sorted(DATA.glob("datasets/toucan_like/*.json")),
    *sorted(DATA.glob("datasets/swe_smith_trajectories/*.json")),
    *sorted(DATA.glob("datasets/nnetnav_wa/*.json")),
    *sorted(DATA.glob("datasets/fireact/gpt_format*")),
    *sorted(DATA.glob("formats/llamafactory_v1/*_demo_[24].jsonl")),
    *sorted(DATA.glob("formats/dataclaw/*.jsonl")),
    *(
        DATA / "adp_v1" / name / "sample_raw.json"
        for name in ("code_feedback", "mini-coder", "nnetnav-wa", "swe-smith")
        if DATA.exists()
    ),
]
MANY = settings(
    max_examples=examples(150),
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def between(data: bytes, source: str, target: str) -> tuple[Trajectory, dict[str, Any], Losses]:
    """Convert a record, check that all of it arrived, and return what was written."""
    losses = Losses()
    (run,) = read_one(formats.get(source), data)
    written = write_one(formats.get(target), run, losses)
    (back,) = read_one(formats.get(target), written)
    assert back.losses is None or not back.json_value("losses") or b"\\ud" in data
    assert missing([run], [back], losses) == []
    return run, json.loads(written), losses


def check_ids(run: Trajectory, record: dict[str, Any], losses: Losses) -> None:
    """Ids of calls are unique or the source's own; a result has that of an earlier call."""
    native_ids = {call.native_id for step in run.steps for call in step.calls}
    seen: set[str] = set()
    strays = 0
    for message in record["messages"]:
        for call in message.get("tool_calls") or []:
            assert call["id"] not in seen or call["id"] in native_ids
            seen.add(call["id"])
            assert isinstance(json.loads(call["function"]["arguments"]), (dict, list, str, int))
        if message["role"] == "tool":
            strays += message["tool_call_id"] not in seen
        assert message["role"] in ("system", "user", "assistant", "tool")
    reported = [item for item in losses.items if item["path"].endswith("_id")]
    assert strays <= len(reported)


def check_adp(run: Trajectory, record: dict[str, Any]) -> None:
    """The record is ADP 1.5.0, and its action ids are unique or the source's own."""
    native_ids = {call.native_id for step in run.steps for call in step.calls}
    assert record["schema_version"] == "1.5.0"
    assert isinstance(record["id"], str)
    ids = [
        item["tool_call_id"]
        for item in record["content"]
        if item["class_"].endswith("action") and item.get("tool_call_id") is not None
    ]
    assert all(ids.count(name) == 1 or name in native_ids for name in ids)
    for item in record["content"]:
        if item["class_"] == "api_action":
            assert isinstance(item["kwargs"], dict)


@MANY
@given(adp_v1_records())
def test_adp_v1_to_openai_chat(data):
    run, record, losses = between(data, "adp_v1", "openai_chat")
    check_ids(run, record, losses)


@MANY
@given(openai_records())
def test_openai_chat_to_adp_v1(data):
    run, record, _ = between(data, "openai_chat", "adp_v1")
    check_adp(run, record)


def records(path: Path) -> list[bytes]:
    data = path.read_bytes()
    if path.suffix == ".jsonl":
        return [line for line in data.splitlines() if line.strip()]
    return [bytes(raw) for raw in jsontext.decode_array(data)]


@pytest.mark.skipif(not DATA.exists(), reason="the reference data are not here")
def test_all_files_are_there():
    assert (len(ADP_FILES), len(CHAT_FILES)) == (17, 12)


@pytest.mark.parametrize("path", ADP_FILES, ids=lambda path: path.parent.name)
def test_a_real_adp_file_to_openai_chat(path):
    for data in records(path):
        run, record, losses = between(data, "adp_v1", "openai_chat")
        check_ids(run, record, losses)
        for step in run.steps:
            assert all(re.search(r"\S", call.name or call.language or "") for call in step.calls)


@pytest.mark.parametrize("path", CHAT_FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_real_chat_file_to_adp_v1(path):
    for data in records(path):
        run, record, _ = between(data, "openai_chat", "adp_v1")
        check_adp(run, record)


def test_the_check_can_fail():
    data = b'{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b",'
    data += b'"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":'
    (run,) = read_one(formats.get("openai_chat"), data + b'{"x":[1.0]}}}]}]}')
    (other,) = read_one(formats.get("openai_chat"), data + b'{"x":[1]}}}]}]}')
    assert missing([run], [run], Losses()) == []
    assert [piece for piece, _ in missing([run], [other], Losses())] == [
        ("argument", (("x", 0), "1.0"))
    ]
    other.steps[0].text = other.steps[1].calls[0].name = None
    assert len(missing([run], [other], Losses())) == 3
    losses = Losses()
    losses.add("$.steps[1].calls[0].arguments", "")
    losses.add("$.steps[0]", "")
    assert len(missing([run], [other], losses)) == 2
