"""Steps that no model saw: formats of chats leave them out, and say so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adp.converters.registry import formats
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, ToolCall, Trajectory

CALLED = ToolCall(step=1, call=0, call_id="c1", name="look", arguments="{}", kind="function")
LISTED = ToolCall(step=3, call=0, call_id="c2", name="list", arguments="{}", kind="function")
RESULT = Observation(
    source="environment", text="a picture", call_id="c1", call_step=1, call=0, step=2, order=0
)
STRAY = Observation(
    source="environment", text="a list", call_id="c2", call_step=3, call=0, step=3, order=0
)


def log() -> Trajectory:
    """A log in which an event stands between a call and its result."""
    return Trajectory(
        trajectory_id="d/run",
        source_format="pi",
        steps=[
            Step(step=0, source="user", kind="message", text="hello"),
            Step(step=1, source="agent", kind="llm_turn", calls=[CALLED]),
            Step(
                step=2, source="environment", kind="event", visibility="none", native_id="e7",
                observations=[RESULT],
            ),
            Step(
                step=3, source="user", kind="message", visibility="user", text="a note",
                calls=[LISTED], observations=[STRAY],
            ),
            Step(
                step=4, source="environment", kind="context_edit", edit_boundary="replace",
                edit_summary="they looked",
            ),
            Step(step=5, source="agent", kind="llm_turn", text="seen"),
        ],
    )  # fmt: skip


def written(name: str, run: Trajectory) -> tuple[Any, dict[str, str]]:
    losses = Losses()
    record = formats.get(name).write(run, losses)
    return json.loads(jsontext.encode(record)), {
        item["path"]: item["reason"] for item in losses.items
    }


def check_reasons(reasons: dict[str, str]) -> None:
    event = "a step of kind event, which no model saw, is left out"
    assert reasons["$.steps[2].kind"] == event
    assert "$.steps[2].native_id" in reasons
    assert reasons["$.steps[3].visibility"] == "a step that no model saw is left out"
    assert {"$.steps[3].text", "$.steps[3].calls[0].name", "$.steps[4].kind"} <= set(reasons)
    assert "$.steps[4].edit_summary" in reasons


def test_a_chat_has_only_what_a_model_saw():
    record, reasons = written("openai_chat", log())
    messages = [(message["role"], message["content"]) for message in record["messages"]]
    assert messages == [
        ("user", "hello"),
        ("assistant", None),
        ("tool", "a picture"),
        ("user", "a list"),
        ("assistant", "seen"),
    ]
    check_reasons(reasons)
    assert reasons["$.steps[3].observations[0].call_id"] == "the call that it answers is left out"


def test_a_preference_row_has_only_what_a_model_saw():
    record, reasons = written("preference", log())
    sides = [message for value in record.values() if isinstance(value, list) for message in value]
    roles = [message["role"] for message in sides]
    assert roles == ["user", "assistant", "tool", "user", "assistant"]
    check_reasons(reasons)


def test_a_turn_of_sharegpt_has_only_what_a_model_saw():
    record, reasons = written("sharegpt", log())
    assert "a note" not in str(record)
    assert [turn["from"] for turn in record["conversations"]][:3] == [
        "human",
        "function_call",
        "observation",
    ]
    check_reasons(reasons)


def test_adp_v1_has_only_what_a_model_saw():
    record, reasons = written("adp_v1", log())
    assert [
        (item["class_"], item["content"]) for item in record["content"] if "content" in item
    ] == [
        ("text_observation", "hello"),
        ("text_observation", "a picture"),
        ("text_observation", "a list"),
        ("message_action", "seen"),
    ]
    check_reasons(reasons)
    assert reasons["$.steps[3].observations[0].call_id"] == "the call that it answers is left out"


def test_a_run_of_m3_has_only_what_a_model_saw():
    run = log()
    run.steps.insert(0, Step(step=-1, source="environment", kind="event", visibility="none"))
    run.steps.insert(1, Step(step=-1, source="system", kind="message", text="be brief"))
    record, reasons = written("m3", run)
    assert record["system"] == "be brief"
    last = list(record["interactions"].values())[-1]
    texts = [message["content"] for message in last["input"]]
    assert not {"a note", "", "they looked"} & set(texts)
    assert texts[-2:] == ["a picture", "a list"]
    assert reasons["$.steps[4].kind"] == "a step of kind event, which no model saw, is left out"
    assert {"$.steps[5].text", "$.steps[5].calls[0].name", "$.steps[6].edit_summary"} <= set(
        reasons
    )


@pytest.mark.parametrize("source", ["user", "environment"])
def test_a_message_without_words_has_an_empty_content(source):
    steps = [Step(step=0, source=source, kind="message"), Step(step=1, source="agent", text="hi")]
    run = Trajectory(trajectory_id="d/run", source_format="pi", steps=steps)
    record, _ = written("openai_chat", run)
    assert record["messages"][0] == {"role": "user", "content": ""}
