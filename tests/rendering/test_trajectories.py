"""From trajectories to rows: what is never trained, what is lost, and what the model saw.

Every step, call and result has a word of its own, so that a row tells by its text what is in it.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adp.rendering.chat import chats_of, expand
from adp.rendering.options import RenderOptions
from adp.rendering.render import IGNORED, Rendered, Renderer
from adp_schema.model import Observation, Step, ToolCall, Trajectory
from tests.effort import examples
from tests.rendering.families import renderer

TOOLS = json.dumps([{"name": "look", "parameters": {"type": "object", "properties": {}}}])


def word(kind: str, *numbers: int) -> str:
    """A word that nothing else has."""
    return f"{kind}{'q'.join(str(number) for number in numbers)}z"


def trajectory(*steps: dict[str, Any], **columns: Any) -> Trajectory:
    """A trajectory with steps that have texts, calls and results of their own.

    The keys ``calls``, ``results`` and ``words`` of a step say how many calls and answered calls it
    has, and whether it has a text; all other keys are columns.
    """
    made = []
    for index, messages in enumerate(steps):
        given_keys = {"source": "agent", "kind": None, **messages}
        calls, results = given_keys.pop("calls", 0), given_keys.pop("results", None)
        has_text = given_keys.pop("words", True)
        step = Step(step=index, text=word("step", index) if has_text else None, **given_keys)
        for call in range(calls):
            step.calls.append(
                ToolCall(
                    step=index,
                    call=call,
                    call_id=f"c{index}_{call}",
                    name="look",
                    arguments=json.dumps({"at": word("call", index, call)}),
                )
            )
        for call in range(calls if results is None else results):
            answered = {"call_step": index, "call": call} if call < calls else {}
            text = word("result", index, call)
            step.observations.append(Observation(step=index, order=call, text=text, **answered))
        made.append(step)
    return Trajectory(
        seq=0, trajectory_id="talk", tools=TOOLS, steps=made, source_format="test", **columns
    )


def trained_text(made: Renderer, value: Rendered) -> str:
    """All trained tokens, decoded."""
    texts = [made.tokenizer.decode(row.labels[row.labels != IGNORED]) for row in value.rows]
    return "\n".join(texts)


USER, AGENT = {"source": "user"}, {"source": "agent"}

sources = st.sampled_from(["user", "agent", "agent", "agent", "system", "environment", None])
step_columns = st.fixed_dictionaries(
    {"source": sources},
    optional={
        "kind": st.sampled_from(["message", "llm_turn", "event", None]),
        "loss_weight": st.sampled_from(
            [0.0, 0.3, 1.0, 2.0, None, -1.0, float("nan"), float("inf")]
        ),
        "is_copied_context": st.sampled_from([True, False, None]),
        "visibility": st.sampled_from(["llm", "user", "both", "none", None]),
        "llm_call_count": st.sampled_from([0, 1, None]),
        "reasoning": st.sampled_from(["", "I think.", None]),
        "calls": st.integers(0, 2),
        "results": st.integers(0, 3),
        "words": st.booleans(),
    },
)
edits = st.fixed_dictionaries(
    {"source": st.sampled_from(["agent", "system", None]), "kind": st.just("context_edit")},
    optional={
        "edit_boundary": st.sampled_from(["replace", "append", "truncate", None]),
        "edit_from": st.integers(0, 6),
        "edit_to": st.integers(0, 8),
        "edit_summary": st.sampled_from(["In short: done.", "", None]),
    },
)
optioned = st.fixed_dictionaries(
    {},
    optional={
        "train": st.sampled_from(["all", "last_step", "last_turn"]),
        "reasoning": st.sampled_from(["keep", "strip", "last_turn"]),
        "tools": st.sampled_from(["template", "text"]),
        "parallel_calls": st.sampled_from(["keep", "split"]),
    },
)


def weighed(step: Step) -> bool:
    """Whether a step may be trained, said once more in other words."""
    weight = 1.0 if step.loss_weight is None else step.loss_weight
    return (
        step.source == "agent"
        and step.kind not in ("event", "context_edit")
        and not step.is_copied_context
        and step.llm_call_count != 0
        and weight > 0
    )


@settings(max_examples=examples(60), suppress_health_check=list(HealthCheck), database=None)
@given(
    steps=st.lists(step_columns | edits, max_size=9),
    options=optioned,
    name=st.sampled_from(["qwen2_5", "mistral_tekken", "granite"]),
    begin=st.integers(0, 3),
)
def test_what_must_not_be_trained_is_not(
    steps: list[dict[str, Any]], options: dict[str, Any], name: str, begin: int
) -> None:
    columns = {"parent_id": "p", "parent_step": begin} if begin else {}
    messages = trajectory(*steps, **columns)
    made = renderer(name, "bytes", RenderOptions(**options))
    entry = made.trajectory(messages)
    may = {index for index, step in enumerate(messages.steps) if weighed(step) and index >= begin}
    assert entry.steps == len(may) == entry.trained + entry.lost.total()
    steps_of = [set(row.step_index.tolist()) - {-1} for row in entry.rows]
    counted = Counter(step for row in steps_of for step in row)
    assert set(counted) <= may
    assert entry.trained == len(counted)
    assert set(counted.values()) <= {1}
    text, whole = trained_text(made, entry), "\n".join(row.text for row in entry.rows)
    for index, step in enumerate(messages.steps):
        hidden = step.kind == "event" or step.visibility in ("user", "none")
        ours = [word("step", index)] if step.text else []
        ours += [word("call", index, call) for call in range(len(step.calls))]
        for our in ours:
            assert our not in text or index in counted
            assert not (hidden and our in whole)
        if index in counted:
            output = ours if step.source == "agent" else ours[:1]
            assert all(text.count(item) == 1 for item in output)
        for result in range(len(step.observations)):
            assert word("result", index, result) not in text
    for row in entry.rows:
        for index in set(row.step_index.tolist()) - {-1}:
            wanted = messages.steps[index].loss_weight
            weights = row.loss_weights[row.step_index == index]
            assert np.all(weights == np.float32(1.0 if wanted is None else wanted))


def test_weights_and_masks() -> None:
    messages = trajectory(
        *(
            USER,
            {"loss_weight": 0.0, "calls": 1},
            {"loss_weight": 0.25},
            {"is_copied_context": True},
        ),
        *({"llm_call_count": 0}, {"visibility": "user"}, {"visibility": "llm", "calls": 2}),
    )
    made = renderer("qwen2_5")
    result = made.trajectory(messages)
    assert result.steps == 3
    assert result.lost == {"the model did not see the step": 1}
    (row,) = result.rows
    assert set(row.step_index.tolist()) == {-1, 2, 6}
    assert set(row.loss_weights[row.step_index == 2].tolist()) == {0.25}
    assert word("step", 5) not in row.text
    assert all(word("step", index) in row.text for index in (1, 3, 4))


def test_an_infinite_weight_is_not_trained() -> None:
    result = renderer("qwen2_5").trajectory(trajectory(USER, {"loss_weight": float("inf")}, {}))
    assert result.steps == 2
    assert result.lost == {"the weight of the step is too large": 1}


@pytest.mark.parametrize("boundary", ["replace", "truncate", "append"])
def test_context_edits(boundary: str) -> None:
    """Each stretch sees what its edit left, and trains its own steps alone."""
    edit = {"kind": "context_edit", "edit_boundary": boundary, "edit_summary": "In short."}
    messages = trajectory(
        {"source": "system"},
        USER,
        {"calls": 1},
        {},
        {**edit, "edit_from": 0, "edit_to": 2},
        USER,
        {},
    )
    result = renderer("qwen2_5").trajectory(messages)
    assert not result.lost
    texts = [row.text for row in result.rows]
    steps = [set(row.step_index.tolist()) - {-1} for row in result.rows]
    if boundary == "append":
        assert steps == [{2, 3, 6}]
        return
    assert steps == [{2, 3}, {6}]
    assert [row.segment for row in result.rows] == [0, 1]
    kept = [word("step", 0), word("step", 1), "In short.", word("step", 5), word("step", 6)]
    places = [texts[1].index(item) for item in kept]
    assert places == sorted(places)
    for gone in (word("step", 2), word("call", 2, 0), word("result", 2, 0), word("step", 3)):
        assert gone in texts[0]
        assert gone not in texts[1]


def test_an_edit_without_a_range_keeps_the_system() -> None:
    edit = {"kind": "context_edit", "edit_boundary": "replace", "edit_summary": "In short."}
    messages = trajectory({"source": "system"}, USER, {}, edit, {})
    first, second = renderer("qwen2_5").trajectory(messages).rows
    assert word("step", 1) in first.text
    assert word("step", 0) in second.text
    assert word("step", 1) not in second.text
    assert "<|im_start|>assistant\nIn short.<|im_end|>" in second.text


def test_train_the_last() -> None:
    messages = trajectory(USER, {}, {}, USER, {"calls": 1}, {})
    for train, wanted in {"all": {1, 2, 4, 5}, "last_turn": {4, 5}, "last_step": {5}}.items():
        made = renderer("qwen2_5", "bytes", RenderOptions(train=train))
        result = made.trajectory(messages)
        steps = {step for row in result.rows for step in row.step_index.tolist()} - {-1}
        assert steps == wanted
        assert result.steps == 4
        assert result.lost.total() == 4 - len(wanted)


def test_reasoning_by_option() -> None:
    thought = [{"reasoning": f"thought{index}"} for index in range(2)]
    messages = trajectory(USER, thought[0], USER, thought[1])
    for option, wanted in {"keep": "01", "strip": "", "last_turn": "1"}.items():
        made = renderer("qwen3_8", "bytes", RenderOptions(reasoning=option))
        text = trained_text(made, made.trajectory(messages))
        assert [index for index in "01" if f"thought{index}" in text] == list(wanted)


def test_a_branch_trains_its_own_steps() -> None:
    messages = trajectory(USER, {}, {}, {}, parent_id="main", parent_step=2)
    (row,) = renderer("qwen2_5").trajectory(messages).rows
    assert set(row.step_index.tolist()) == {-1, 2, 3}
    assert word("step", 1) in row.text


@given(steps=st.lists(step_columns, max_size=9))
@settings(max_examples=examples(50), suppress_health_check=list(HealthCheck), database=None)
def test_expanded_chats_train_their_last_message(steps: list[dict[str, Any]]) -> None:
    for chat in chats_of(trajectory(*steps)).chats:
        parts = list(expand(chat))
        assert [len(part.messages) - 1 for part in parts] == chat.trained()
        for part in parts:
            assert part.trained() == [len(part.messages) - 1]
            assert [message.text for message in part.messages] == [
                message.text for message in chat.messages[: len(part.messages)]
            ]


@pytest.mark.parametrize(
    "name", ["qwen3", "gptoss", "mistral", "gemma", "cohere2", "qwen3_5_think"]
)
def test_damaged_trajectories_do_not_crash(name: str) -> None:
    odd = [
        Trajectory(),
        Trajectory(steps=[Step()]),
        Trajectory(tools="no JSON", steps=[Step(source="agent", text="a\ud7ff\x00\ue000\ue001b")]),
        Trajectory(
            tools='[1, {"name": 5}, {"name": "x"}]',
            steps=[
                Step(step=0, source="user", text=""),
                Step(step=1, source="agent", calls=[ToolCall(step=1, call=0)]),
                Step(
                    step=2,
                    source="agent",
                    calls=[ToolCall(step=2, call=0, name="x", arguments_raw="{", call_id="")],
                ),
                Step(step=3, source="agent", observations=[Observation(step=3, text=None)]),
            ],
        ),
    ]
    for messages in odd:
        result = renderer(name).trajectory(messages)
        assert result.steps == result.trained + result.lost.total()
