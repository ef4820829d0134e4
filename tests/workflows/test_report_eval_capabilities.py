"""The section about capabilities: its numbers are those of the scorer."""

from __future__ import annotations

import json

import pytest

from adp.eval.scoring import choose, score_store
from adp.workflows.report import Report
from adp.workflows.report_eval import evaluation
from adp.workflows.report_eval.capabilities import capability_axes
from adp_schema.model import Step, Task
from adp_schema.store import Store
from tests.eval.scoring.small import grown, run

WEIGHTS = "capability:weights={reasoning: 3, planning: 1, tool_use: 0, instruction_following: 1}"


def episode(name, kind, answer, agent):
    extra = json.dumps({"task_type": kind, "must_contain": ["2"]})
    task = Task(task_id=name, dataset="d", answers='["2"]', expected_calls='["f"]', extra=extra)
    runs = run(name, agent_name=agent, final_answer=answer, task=task)
    runs.steps = [Step(source="user", text="?"), Step(source="agent", text=answer)]
    return runs


@pytest.fixture
def stores(tmp_path):
    made = []
    for agent, answers in (("one", "2727"), ("two", "2227")):
        kinds = ("reasoning", "reasoning", "general", "general")
        runs = [
            episode(f"t{n}", kind, answer, agent)
            for n, (kind, answer) in enumerate(zip(kinds, answers, strict=True))
        ]
        runs += [episode("plan", "planning", "no", agent), episode("odd", "odd", "2", agent)]
        store = grown(tmp_path / agent, *runs)
        score_store(store, choose([WEIGHTS]))
        made.append(Store.open(store.root))
    return made


def test_numbers_are_those_of_the_scorer(stores):
    result = evaluation(stores)
    first, second = result.capabilities
    assert (first.run, second.run) == ("one", "two")
    assert (first.unassigned, first.episodes) == (1, 6)
    rows = {item.name: (item.figure.value, item.figure.count) for item in second.figures}
    assert rows["reasoning"] == (1.0, 2)
    assert rows["planning"] == (0.0, 1)
    assert rows["instruction_following"] == (0.5, 2)
    assert rows["overall"] == (pytest.approx((3 * 1 + 0 + 0.5) / 5), 5)
    weights = {item.name: item.weight for item in second.figures}
    assert weights == {"overall": None, "tool_use": 0, "planning": 0.2, "reasoning": 0.6,
                       "instruction_following": 0.2}  # fmt: skip
    plain = json.loads(json.dumps(result.plain(), allow_nan=False))
    assert plain["capabilities"][1]["figures"][0]["figure"]["value"] == pytest.approx(0.7)


def test_the_report_shows_a_table_and_a_picture(stores):
    result = evaluation(stores)
    text = Report(result).markdown()
    section = text.partition("## Capabilities")[2].partition("## Scores")[0]
    assert "Of 6 episodes of one, 1 belong to tasks that name no capability" in section
    (row,) = [line for line in section.splitlines() if line.startswith("| reasoning | two")]
    assert "| 1.000 |" in row
    assert "| 0.600 |" in row
    axes = capability_axes(result)
    assert [axis.label for axis in axes] == ["planning", "reasoning", "instruction following"]
    assert axes[1].places == axes[1].values == (0.5, 1.0)
    assert "Capabilities: planning" in Report(result).html()


def test_without_such_scores_there_is_no_section(tmp_path, stores):
    bare = evaluation([grown(tmp_path / "bare", run("a"))])
    assert bare.capabilities == capability_axes(bare) == ()
    assert "Capabilities" not in Report(bare).markdown()
    mixed = evaluation([grown(tmp_path / "more", run("a", agent_name="three")), stores[0]])
    assert [axis.values[0] for axis in capability_axes(mixed)] == [None, None, None]
