"""Rows of trajectories: what was thought, called and observed is in them, in each format."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from adp.workflows.sage.conversion import SFTConversionConfig, TrajectoryToSFTConverter
from adp.workflows.sage.trajectories import AgentTrajectory, TrajectoryStep
from adp_schema.errors import UsageError

RUN = AgentTrajectory(
    "t1",
    "How warm is Ghent?",
    [
        TrajectoryStep(0, "I ask.", "weather", {"city": "Ghent"}, "It is 7 degrees.", 1.0),
        TrajectoryStep(1, "I know.", "finish", {"answer": "7"}, "", 5.0),
    ],
    True,
    6.0,
    trajectory_id="r1",
    available_tools=["weather"],
)


def row(form: Literal["chatml", "alpaca", "sharegpt"], **more: Any) -> dict[str, Any]:
    return TrajectoryToSFTConverter(SFTConversionConfig(form, **more)).convert_single(RUN)


def test_chatml_keeps_an_observation_as_a_message_of_its_own() -> None:
    messages = row("chatml", system_prompt="Be brief.")["messages"]
    assert [message["role"] for message in messages[:4]] == ["system", "user", "assistant", "tool"]
    assert messages[0]["content"] == "Be brief."
    assert messages[3]["content"] == "It is 7 degrees."
    assert messages[2]["reasoning_content"] == "I ask."
    [call] = messages[2]["tool_calls"]
    assert call["function"] == {"name": "weather", "arguments": {"city": "Ghent"}}


@pytest.mark.parametrize("form", ["chatml", "alpaca", "sharegpt"])
@pytest.mark.parametrize("observed", [True, False])
def test_every_format_has_the_thoughts_and_calls(
    form: Literal["chatml", "alpaca", "sharegpt"], observed: bool
) -> None:
    text = json.dumps(row(form, include_observation=observed))
    assert "I ask." in text
    assert "I know." in text
    assert "weather" in text
    assert "finish" in text
    assert ("7 degrees" in text) is observed
    assert json.loads(text)["metadata"] == {
        "trajectory_id": "r1", "task_id": "t1", "success": True, "total_reward": 6.0,
        "num_steps": 2,
    }  # fmt: skip
    without = json.dumps(row(form, include_observation=observed, include_thought=False))
    assert "I ask." not in without
    assert "weather" in without


def test_a_format_that_is_not_written() -> None:
    with pytest.raises(UsageError, match="choose chatml, alpaca, sharegpt"):
        TrajectoryToSFTConverter(SFTConversionConfig("xml"))  # type: ignore[arg-type]


def test_a_run_without_steps_is_named() -> None:
    empty = AgentTrajectory("t", "Do it.", trajectory_id="empty")
    with pytest.raises(UsageError, match="empty has no step to train"):
        TrajectoryToSFTConverter(SFTConversionConfig("alpaca")).convert([RUN, empty])
