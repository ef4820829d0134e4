"""Words that stand for nothing, answers inside of arguments, and tasks that only a recipe knows."""

from __future__ import annotations

import json
import shlex

import pytest
import yaml

import adp
from adp.cli.main import main
from adp.rollouts.collecting.task_files import read_task_file
from adp.rollouts.collecting.tasks import read_tasks
from adp_schema.errors import AdpError, InputError
from tests.rollouts.collecting.test_task_files import KIND, AdderSettings

PUZZLES = {
    "name": "puzzles",
    "title": "Puzzles",
    "rows": "seen",
    "match": {"keys": ["nr", "riddle"]},
    "reader": "tasks",
    "tasks": {"task_id": "nr", "instruction": "riddle"},
}


def write(folder, *rows, name="rows.jsonl"):
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_turn_that_was_not_recorded_has_no_text(tmp_path):
    turns = ["user: Book it.", "assistant: None", "tool: booked", "assistant: Done. None left."]
    source = write(tmp_path, {"messages_display": "\n".join(turns)})
    (run,) = adp.convert(str(source), str(tmp_path / "store"), format="tau_bench_few_shot")
    empty, last = (it for it in run.steps if it.source == "agent")
    assert (empty.text or "", empty.loss_weight) == ("", 0.0)
    assert json.loads(empty.extra)["cut"] == ["assistant: ", "None\n"]
    assert (last.text, last.loss_weight) == ("Done. None left.", None)
    assert [it.text for it in empty.observations] == ["booked"]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('{\n "return_type": "give_answer",\n "final_answer": "It is 4."\n}', "It is 4."),
        ('{"return_type": "give_up_and_restart"}', None),
        ("It is 4.", "It is 4."),
        ('{"sum": 4}', '{"sum": 4}'),
        ('{"return_type": "give_answer", "final_ans', '{"return_type": "give_answer", "final_ans'),
    ],
)
def test_the_answer_of_toolbench_is_the_sentence_in_the_arguments(text, answer, tmp_path):
    node = {"node_type": "Thought", "description": "I add.", "children": []}
    row = {
        "win": True,
        "tree": {"tree": {"node_type": "Action Input", "description": "", "children": [node]}},
        "answer_generation": {
            "query": "2 + 2?", "final_answer": text, "finish_type": "give_answer",
            "valid_data": True, "function": [],
        },
    }  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps(row), encoding="utf-8")
    store = adp.convert(str(tmp_path / "a.json"), str(tmp_path / "store"), format="toolbench")
    run = next(it for it in store if it.parent_id is None)
    assert run.final_answer == answer
    if answer != text:
        assert json.loads(run.extra)["answer_generation"]["final_answer"] == text


def test_the_status_of_a_run_is_no_answer(tmp_path):
    step = {"thought": "t", "screenshot": "a.png",
            "action_content": {"action": "terminate", "status": "success"}}  # fmt: skip
    row = {"goal": "Open it.", "is_successful": True, "steps": [step], "episode_id": 1}
    source = write(tmp_path, row)
    (run,) = adp.convert(str(source), str(tmp_path / "store"), format="ui_s1_android_control")
    assert (run.success, run.terminated, run.final_answer) == (True, True, None)


@pytest.mark.parametrize("key", ["args", "extras"])
def test_the_model_of_a_session_with_feedback(key, tmp_path):
    events = [
        {"action": "initialize", "source": "environment", key: {"LLM_MODEL": "m-7b"}},
        {"action": "message", "source": "user", "content": "hi", key: {"content": "hi"}},
        {"action": "message", "source": "agent", "content": "ho", key: {"content": "ho"}},
    ]
    row = {"version": "1", "feedback": "positive", "permissions": "public", "trajectory": events}
    source = write(tmp_path, row)
    (run,) = adp.convert(str(source), str(tmp_path / "store"), format="openhands_feedback")
    assert run.agent_model == "m-7b"


def test_rows_that_only_a_recipe_knows_become_a_store_of_tasks(tmp_path):
    source = write(tmp_path, {"nr": "p1", "riddle": "What is 6 * 7?"})
    with pytest.raises(InputError, match="holds no task") as fault:
        read_task_file(source)
    line = str(fault.value).partition("takes: ")[2]
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(PUZZLES), encoding="utf-8")
    line = line.replace("my.yaml", str(tmp_path / "my.yaml"))
    words = shlex.split(line.replace("tasks_store", str(tmp_path / "tasks_store")))
    assert words[:2] == ["adp", "convert"]
    call(words[1:])
    (task,) = read_tasks(str(tmp_path / "tasks_store"), KIND, AdderSettings()).tasks
    assert (task.task_id, task.instruction) == ("p1", "What is 6 * 7?")


def call(words):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["adp", *words])
        try:
            main()
        except SystemExit as end:
            if end.code:
                pytest.fail(f"{words} ends with {end.code}")


def test_the_id_of_a_task_says_how_to_look_at_it(tmp_path, capsys):
    from adp.cli.show import _trajectory

    source = write(tmp_path, {"nr": "it's 1", "riddle": "What is 6 * 7?"})
    (tmp_path / "my.yaml").write_text(yaml.safe_dump(PUZZLES), encoding="utf-8")
    store = adp.convert(str(source), str(tmp_path / "store"), recipes=[str(tmp_path / "my.yaml")])
    with pytest.raises(AdpError, match="is a task, and no run; look at it with: adp query") as hint:
        _trajectory(store, "it's 1")
    capsys.readouterr()
    call(shlex.split(str(hint.value).partition("with: ")[2])[1:])
    assert "What is 6 * 7?" in capsys.readouterr().out
    with pytest.raises(AdpError) as other:
        _trajectory(store, "it's 2")
    assert "is a task" not in str(other.value)
