"""GRPO in an environment whose episodes branch: worlds, rows, weights, loss and store."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adp.trainers.environment_rules import environment_faults
from adp.trainers.run import train
from adp_schema.store import Store
from tests.trainers.rollouts.acting_runs import ScriptedWriter, acting_config, call_text, sums
from tests.trainers.rollouts.test_acting import Losses, facts_of
from tests.trainers.small_runs import log_of

pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

ALWAYS = "initial=2,probability=1.0,call_limit=null"


def answers_differ(prompt: str, seen: int) -> str:
    """Every episode works the sum out; every second one then says something else."""
    results = prompt.split("<tool_response>")[1:]
    if not results:
        question = prompt.rpartition("What is ")[2].partition("?")[0]
        return call_text("calculator", expression=question)
    value = results[-1].partition("</tool_response>")[0].strip()
    return f"answer: {value}" if seen % 2 == 0 else "answer: none"


def rows_of(run: Any) -> list[Any]:
    return list(Store.open(str(run / "rollouts")).trajectories())


@pytest.mark.parametrize(("mode", "call_weights"), [
    ("share", [0.5, 0.5, 0.5, 0.5]), ("once", [1.0, 1.0, 0.0, 0.0]), ("full", [1.0] * 4),
])  # fmt: skip
def test_what_branches_share_counts_as_chosen(tmp_path, monkeypatch, mode, call_weights):
    losses = Losses(monkeypatch)
    ScriptedWriter(answers_differ).install(monkeypatch)
    config = acting_config(sums(tmp_path), {"branching": ALWAYS, "shared_tokens": mode})
    train(config, tmp_path / "run")
    rows = rows_of(tmp_path / "run")
    assert len(rows) == 16
    kinds = [json.loads(row.extra)["branching"]["kind"] for row in rows]
    assert kinds == ["initial", "initial", "branch", "branch"] * 4
    for step in range(2):
        check_step([row for row in rows if facts_of(vars(row))["step"] == step], call_weights,
                   losses.inputs[step], losses.values[step])  # fmt: skip
    log = log_of(tmp_path / "run")
    assert log[0]["rollouts/branches"] == 0.5
    assert log[0]["rollouts/success"] == 0.5


def check_step(rows: list[Any], call_weights: list[float], inputs: dict[str, Any], loss: float):
    """The loss by the formula of GRPO at ratio 1, with weights that are written down here."""
    total = count = 0.0
    for place, row in enumerate(rows):
        call, answer = [step for step in row.steps if step.source == "agent"]
        weight = call_weights[place % 4] * len(call.completion_token_ids)
        weight += len(answer.completion_token_ids)
        facts = facts_of(vars(row))
        assert facts["weight"] == pytest.approx(weight)
        assert facts["in_loss"] == len(call.completion_token_ids) + len(answer.completion_token_ids)
        total += facts["advantage"] * weight
        count += weight
    assert float(inputs["num_items_in_batch"]) == pytest.approx(count)
    masked = (inputs["completion_mask"] * inputs["tool_mask"]).sum(1).tolist()
    assert sorted(masked) == pytest.approx(sorted(facts_of(vars(row))["weight"] for row in rows))
    assert loss == pytest.approx(-total / count, abs=1e-5)


def test_a_branch_goes_on_in_the_world_and_with_the_tokens_of_its_parent(tmp_path, monkeypatch):
    ScriptedWriter(answers_differ).install(monkeypatch)
    train(acting_config(sums(tmp_path), {"branching": ALWAYS}), tmp_path / "run")
    rows = {row.source_id: row for row in rows_of(tmp_path / "run")}
    branches = [row for row in rows.values() if "parent" in json.loads(row.extra)["branching"]]
    assert len(branches) == 8
    for row in branches:
        facts = json.loads(row.extra)["branching"]
        parent = rows[facts["parent"].removeprefix("grpo/")]
        # The store of a training holds a branch as a whole: no other row is needed to read it.
        assert (row.parent_id, row.parent_step, row.branch_kind) == (None, None, None)
        assert row.task is not None
        shared = [step.model_dump() for step in row.steps[: facts["shared"]]]
        assert shared == [step.model_dump() for step in parent.steps[: facts["shared"]]]
        assert facts["shared"] < len(row.steps)
        assert json.loads(row.extra)["seed"] == json.loads(parent.extra)["seed"]


def test_without_branches_nothing_is_weighed(tmp_path, monkeypatch):
    losses = Losses(monkeypatch)
    ScriptedWriter(answers_differ).install(monkeypatch)
    train(acting_config(sums(tmp_path)), tmp_path / "run")
    assert "weight" not in facts_of(vars(rows_of(tmp_path / "run")[0]))
    assert not losses.inputs[0]["tool_mask"].is_floating_point()


@pytest.mark.slow
def test_a_model_that_really_writes_gives_its_entropies(tmp_path):
    config = acting_config(sums(tmp_path), {"branching": "initial=2,probability=1.0"})
    train(config, tmp_path / "run")
    rows = rows_of(tmp_path / "run")
    assert len(rows) == 16
    for row in rows:
        facts = json.loads(row.extra)["branching"]
        turns = [step for step in row.steps[facts.get("shared", 0) :] if step.source == "agent"]
        entropies = facts["entropies"]
        assert len(entropies) == len(turns)
        assert all(value > 0 for value in entropies)


@pytest.mark.parametrize(
    ("environment", "grpo", "words"),
    [
        ({"branching": "beams=2"}, {}, "grpo.environment.branching: unknown setting 'beams'"),
        ({"branching": "arpo"}, {"use_vllm": True}, "set grpo.use_vllm: false"),
    ],
)
def test_what_does_not_go_with_branches_is_refused(tmp_path, environment, grpo, words):
    config = acting_config(sums(tmp_path), environment, **grpo)
    assert any(words in fault for fault in environment_faults(config))
