"""Rows that are steps: how a run ended, its task, and what an observation belongs to."""

from __future__ import annotations

import json

import pytest
import yaml

import adp

RECIPE = {
    "name": "own_runs",
    "title": "Runs",
    "rows": "seen",
    "unit": "file",
    "reader": "steps",
    "steps": {
        "group": "run",
        "order": "n",
        "task": "goal",
        "observation": {"text": "saw"},
        "action": {"name": "act", "arguments": "args"},
    },
}


def step(run, n, act, saw, **more):
    return {"run": run, "n": n, "goal": f"Goal {run}", "act": act, "args": {"n": n}, "saw": saw,
            "model": f"model-{run}-{n}", **more}  # fmt: skip


ROWS = [
    step("a", 0, "look", "a door", won=False, points=0.5),
    step("a", 1, "open", "it is open", won=True, points=1.5),
    step("b", 0, "look", "a wall", won=True, points=2.0),
    step("b", 1, "knock", "nothing", won=False, points=None),
    step("b", 2, "wait", None, won=None),
]


def runs_of(folder, rows, **more):
    (folder / "my.yaml").write_text(yaml.safe_dump({**RECIPE, **more}), encoding="utf-8")
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "rows.jsonl").write_text(lines, encoding="utf-8")
    store = adp.convert(
        str(folder / "rows.jsonl"), str(folder / "store"), recipes=[str(folder / "my.yaml")]
    )
    return list(store)


def last(rows, run, key):
    """The last value of a run that is not null, by a plain walk."""
    return [row[key] for row in rows if row["run"] == run and row.get(key) is not None][-1]


def test_how_a_run_ended_is_what_its_last_row_says(tmp_path):
    fields = {"success": "won", "reward": "points", "agent_model": "model", "source_id": "run"}
    for run in runs_of(tmp_path, ROWS, fields=fields):
        name = run.source_id
        assert run.success == last(ROWS, name, "won")
        assert run.reward == last(ROWS, name, "points")
        assert run.agent_model == f"model-{name}-0"


def test_a_path_may_say_which_row_counts(tmp_path):
    fields = {
        "success": "$[0].won",
        "agent_model": "$[-1].model",
        "agent_version": {"path": "$[1].model", "format": "v {} of {$[0].run}"},
    }
    first, second = runs_of(tmp_path, ROWS, fields=fields)
    assert (first.success, second.success) == (False, True)
    assert (first.agent_model, second.agent_model) == ("model-a-1", "model-b-2")
    assert first.agent_version == "v model-a-1 of a"


@pytest.mark.parametrize(
    "tasks",
    [
        {"task_id": "run", "instruction": "goal"},
        {"task_id": "goal", "instruction": "goal"},
        {"instruction": "goal"},
    ],
    ids=str,
)
def test_runs_have_tasks(tasks, tmp_path):
    runs = runs_of(tmp_path, ROWS, fields={"source_id": "run"}, tasks=tasks)
    assert [run.task.instruction for run in runs] == ["Goal a", "Goal b"]
    assert all(run.task_id for run in runs)
    assert len({run.task_id for run in runs}) == 2
    if "task_id" in tasks:
        assert [run.task_id for run in runs] == [
            next(row[tasks["task_id"]] for row in ROWS if row["run"] == run) for run in "ab"
        ]


def test_a_task_of_several_runs_is_there_once(tmp_path):
    rows = [{**row, "goal": "One goal"} for row in ROWS]
    runs_of(tmp_path, rows, tasks={"instruction": "goal"})
    tasks = adp.Store.open(tmp_path / "store").scan("tasks").collect()
    assert tasks["instruction"].to_list() == ["One goal"]


def test_steps_in_a_record_are_a_run_with_what_stands_around_them(tmp_path):
    record = {"goal_id": "g1", "ask": "Open it.", "mood": "calm", "logs": ROWS[:2]}
    (run,) = runs_of(
        tmp_path,
        [record],
        unit="record",
        rows_at="logs",
        steps={"order": "n", "action": RECIPE["steps"]["action"]},
        fields={"success": "won", "task_id": "$record.goal_id"},
        tasks={"task_id": "$record.goal_id", "instruction": "$record.ask"},
    )
    assert (run.task_id, run.task.instruction, run.success) == ("g1", "Open it.", True)
    assert [call.name for it in run.steps for call in it.calls] == ["look", "open"]
    assert json.loads(run.extra)["record"]["mood"] == "calm"


@pytest.mark.parametrize("before", [True, False, None])
def test_an_observation_was_seen_before_the_action_or_is_its_result(before, tmp_path):
    more = {} if before is None else {"before": before}
    first, _ = runs_of(tmp_path, ROWS, steps={**RECIPE["steps"], **more})
    names = {it.step: call.name for it in first.steps for call in it.calls}
    answers = {
        seen.text: names.get(seen.call_step) for it in first.steps for seen in it.observations
    }
    if before is False:
        assert answers == {"a door": "look", "it is open": "open"}
    else:
        assert answers["it is open"] == "look"
        assert answers.get("a door") is None
