"""Capabilities over samples in memory."""

from __future__ import annotations

from typing import Any

import pytest

from adp.workflows.sage.capability import AgentCapabilityEvaluator
from adp.workflows.sage.mixing import TaskSample
from adp_schema.errors import UsageError

TESTS: dict[str, list[Any]] = {
    "tool_use": [
        {"instruction": "Weather?", "expected": "get_weather"},
        {"instruction": "Sum?", "expected": "calculator"},
    ],
    "planning": [TaskSample("planning", {"input": "Plan.", "output": "buy bread"})],
}
ANSWERS = {"Weather?": "I call GET_WEATHER now.", "Sum?": "4", "Plan.": "Step 1: buy milk"}


def test_scores_weights_and_the_report() -> None:
    report = AgentCapabilityEvaluator().evaluate(ANSWERS.get, TESTS)
    assert report.get_score("tool_use") == 0.5
    # 0.3 for its steps, and 0.7 times one of the two expected words.
    assert report.get_score("planning") == pytest.approx(0.3 + 0.7 / 2)
    assert report.get_score("reasoning") == 0.0
    assert report.overall == pytest.approx(0.25 * 0.5 + 0.25 * 0.65)
    assert report.num_total_samples == 3
    assert report.summary().splitlines()[2:] == [
        "Tool Use: 0.50 (n=2)", "Planning: 0.65 (n=1)", "Overall: 0.29",
    ]  # fmt: skip
    assert report.to_dict()["scores"]["tool_use"] == {"score": 0.5, "num_samples": 2}


def test_one_capability_and_other_ways_to_ask() -> None:
    class Model:
        def generate(self, prompt: str) -> str:
            return "calculator"

    evaluator = AgentCapabilityEvaluator(["tool_use", "planning"], {"tool_use": 3.0})
    assert evaluator.evaluate_capability(Model(), "tool_use", TESTS["tool_use"]).score == 0.5
    report = evaluator.evaluate(
        "any", TESTS, generate_fn=lambda model, prompt: f"{model}: get_weather calculator",
        max_samples_per_capability=1,
    )  # fmt: skip
    assert report.scores["tool_use"].num_samples == 1
    assert evaluator.capability_weights == {"tool_use": 0.75, "planning": 0.25}


@pytest.mark.train
def test_a_model_by_its_name() -> None:
    pytest.importorskip("torch")
    report = AgentCapabilityEvaluator().evaluate("transformers:model=tiny,max_tokens=4", TESTS)
    assert report.num_total_samples == 3


def test_what_cannot_be_measured() -> None:
    with pytest.raises(UsageError, match="no capability is called 'jumping'"):
        AgentCapabilityEvaluator(["jumping"])
    with pytest.raises(UsageError, match="add up to nothing"):
        AgentCapabilityEvaluator(
            capability_weights=dict.fromkeys(TESTS, 0.0), capabilities=list(TESTS)
        )
    with pytest.raises(UsageError, match="a int cannot be asked"):
        AgentCapabilityEvaluator().evaluate(3, TESTS)
    with pytest.raises(UsageError, match="sample 0 has none of expected"):
        AgentCapabilityEvaluator().evaluate(str, {"planning": [{"prompt": "x"}]})
