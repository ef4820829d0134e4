"""Scripts out of files."""

from __future__ import annotations

import json

import pytest

from adp.rollouts.policies.scripted import KIND, ScriptedSettings, read_scripts
from adp.rollouts.turns import Call, Turn
from adp_schema.errors import InputError, UsageError
from adp_schema.model import Task


def written(folder, *lines):
    path = folder / "script.jsonl"
    path.write_text(
        "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    )
    return path


def test_a_file_of_scripts(tmp_path):
    calls = [{"name": "add", "arguments": {"a": 1}}, {"name": "add", "arguments": "{", "id": "x"}]
    turn = {"text": "So\u2028be it", "reasoning": "hm", "calls": calls}
    path = written(tmp_path, {"task_id": 1, "turns": [turn]}, "", {"turns": [{"malformed": "no"}]})
    assert read_scripts(path) == {
        "1": [
            Turn(
                text="So\u2028be it",
                reasoning="hm",
                calls=(Call("add", '{"a": 1}'), Call("add", "{", "x")),
            )
        ],
        None: [Turn(malformed="no")],
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"turns": [{"tool_calls": []}]}, "turn 0: unknown key 'tool_calls'; known: text, reas"),
        ({"turns": [{"text": ""}, {"content": "x"}]}, "turn 1: unknown key 'content'"),
        ({"turns": [], "messages": []}, "a script: unknown key 'messages'; known: task_id, turns"),
        ({"turns": [{"calls": [{"function": {}}]}]}, "turn 0, call 0: unknown key 'function'"),
        ({"turns": [{"calls": [{"arguments": {}}]}]}, "turn 0, call 0: its name"),
        ({"turns": [{"calls": {}}]}, "turn 0: its calls are no list"),
        ({"turns": [{"text": 42}]}, "turn 0: its text is no text"),
        ({"turns": {"text": ""}}, "its turns are no list"),
        ({"task_id": "a"}, "its turns are no list"),
        ({"task_id": [], "turns": []}, "its task_id is no text"),
        ([1], "a script is no JSON object"),
        ("{", "script.jsonl#2: this is no script"),
        ({"task_id": "first", "turns": []}, "line 1 is a script of 'first' already"),
    ],
)
def test_what_is_no_script_is_refused(tmp_path, line, message):
    path = written(tmp_path, {"task_id": "first", "turns": []}, line)
    with pytest.raises(InputError, match=message):
        read_scripts(path)


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match="holds no script"):
        read_scripts(written(tmp_path, ""))


def test_scripts_and_tasks_that_do_not_fit_are_told(tmp_path):
    tasks = [Task(task_id=name, instruction="?") for name in "abc"]
    ours = {"task_id": "a", "turns": []}, {"task_id": "d", "turns": []}
    path = written(tmp_path, *ours)
    remarks = KIND.make(ScriptedSettings(file=path)).remarks(tasks)
    assert [remark.partition(" are ")[0].partition(";")[0] for remark in remarks] == [
        "2 of 3 tasks have no script",
        "1 of 2 scripts",
    ]
    others = KIND.make(ScriptedSettings(file=written(tmp_path, ours[0], {"turns": []})))
    assert others.remarks(tasks) == []
