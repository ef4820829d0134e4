"""Slips in recipes are said, and data sets are named after their recipes."""

from __future__ import annotations

import json
import re

import pytest
import yaml

import adp
from adp.converters.datasets.catalogue import data_set_name, names
from adp_schema.errors import AdpError, UsageError

RECIPE = {
    "name": "own_runs",
    "title": "Runs",
    "rows": "seen",
    "match": {"keys": ["logs"]},
    "reader": "messages",
    "messages": {"path": "logs", "role": "who", "text": "says"},
    "fields": {"source_id": "id", "success": "won"},
}
ROWS = [
    {"id": n, "won": n > 0, "logs": [{"who": "user", "says": "hi"}, {"who": "bot", "says": "ho"}]}
    for n in range(3)
]


def write(folder, recipe=RECIPE, rows=ROWS, name="rows.jsonl"):
    (folder / "my.yaml").write_text(yaml.safe_dump(recipe, sort_keys=False), encoding="utf-8")
    (folder / name).write_text("".join(json.dumps(it) + "\n" for it in rows), encoding="utf-8")
    return str(folder / name), str(folder / "my.yaml")


def convert(folder, recipe=RECIPE, rows=ROWS):
    source, path = write(folder, recipe, rows)
    return adp.convert(source, str(folder / "store"), recipes=[path])


def changed(**more):
    return {**RECIPE, **more}


def test_a_recipe_without_slips_gives_no_note(tmp_path):
    assert convert(tmp_path).manifest.unknown == {}


@pytest.mark.parametrize(
    ("recipe", "note"),
    [
        (changed(fields={"success": "wonn"}), "wonn (fields.success)"),
        (changed(fields={"success": {"path": ["a.b", "c"]}}), "a.b or c (fields.success)"),
        (changed(messages={**RECIPE["messages"], "text": "speech"}), "speech (messages.text)"),
        (changed(messages={**RECIPE["messages"], "system": "sys"}), "sys (messages.system)"),
        (changed(tasks={"task_id": "id", "instruction": "ask"}), "ask (tasks.instruction)"),
        (changed(tools={"path": "tolls"}), "tolls (tools.path)"),
    ],
)
def test_a_key_that_no_row_has_is_noted_once(recipe, note, tmp_path):
    noted = convert(tmp_path, recipe).manifest.unknown
    assert noted == {f"own_runs: none of the first 3 rows of rows.jsonl has {note}": 1}


def test_a_key_that_the_only_row_has_not_is_noted(tmp_path):
    noted = convert(tmp_path, changed(fields={"success": "wonn"}), ROWS[:1]).manifest.unknown
    assert list(noted) == ["own_runs: the first row of rows.jsonl has no wonn (fields.success)"]


def test_a_key_that_no_turn_has_is_noted(tmp_path):
    noted = convert(tmp_path, changed(messages={**RECIPE["messages"], "role": "speaker"})).manifest
    assert (
        "own_runs: none of the first 3 rows of rows.jsonl has speaker (messages.role)"
        in noted.unknown
    )


def test_a_key_that_some_row_has_is_not_noted(tmp_path):
    rows = [{key: value for key, value in ROWS[0].items() if key != "won"}, *ROWS[1:]]
    assert convert(tmp_path, rows=rows).manifest.unknown == {}


def test_keys_of_steps_that_no_row_has_are_noted(tmp_path):
    spec = {"group": "run", "order": "nr", "action": {"call": "act", "name": "verb"},
            "observation": {"text": "sight"}}  # fmt: skip
    rows = [{"run": "a", "n": n, "act": {"name": "go"}, "seen": "x"} for n in range(2)]
    recipe = changed(reader="steps", steps=spec, unit="file", match={"keys": ["run"]}, fields={})
    places = {note.rpartition(" (")[2] for note in convert_notes(tmp_path, recipe, rows)}
    assert places == {"steps.order)", "steps.observation.text)", "steps.action.name)"}


def convert_notes(folder, recipe, rows):
    source, path = write(folder, recipe, rows)
    try:
        return adp.convert(source, str(folder / "store"), recipes=[path]).manifest.unknown
    except AdpError as error:  # nothing is left without the name of the action
        return pytest.fail(str(error))


def test_an_order_that_is_no_number_is_noted(tmp_path):
    spec = {"group": "run", "order": "n", "action": {"text": "act"}}
    rows = [{"run": "a", "n": word, "act": word} for word in ("first", "second")]
    recipe = changed(reader="steps", steps=spec, unit="file", match={"keys": ["run"]}, fields={})
    (note,) = convert(tmp_path, recipe, rows).manifest.unknown.items()
    assert note[0].endswith(": n of a step, which is no number")
    assert note[1] == len(rows)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"success": {"path": "won", "map": {"true": "maybe"}}},
         "fields.success.map.true: 'maybe' is no value of the column success, "
         "which is true or false"),
        ({"reward": {"path": "won", "map": {"true": "much"}}},
         "fields.reward.map.true: 'much' is no value of the column reward, which is a number"),
        ({"reward": {"path": "won", "map": {"true": 1}, "otherwise": "none"}},
         "fields.reward.otherwise: 'none' is no value of the column reward, which is a number"),
        ({"agent_model": {"path": "won", "map": {"true": [1]}}},
         "fields.agent_model.map.true: [1] is no value of the column agent_model, which is a text"),
        ({"sucess": "won"}, "fields: sucess is no column of a trajectory; did you mean success?"),
    ],
)  # fmt: skip
def test_values_and_columns_of_no_use_are_an_error(fields, sentence, tmp_path):
    with pytest.raises(UsageError) as fault:
        convert(tmp_path, changed(fields=fields))
    assert re.fullmatch(rf"my\.yaml, line \d+: {re.escape(sentence)}", str(fault.value))


@pytest.mark.parametrize("value", [True, "yes", 1, None])
def test_values_of_use_are_none(value, tmp_path):
    fields = {"success": {"path": "won", "map": {"true": value, "false": False}}}
    runs = list(convert(tmp_path, changed(fields=fields)))
    assert [run.success for run in runs] == [False] + 2 * [None if value is None else True]


def test_a_slip_in_a_column_of_a_task(tmp_path):
    with pytest.raises(UsageError, match=r"no column of a task; did you mean instruction\?"):
        convert(tmp_path, changed(tasks={"instruction_text": "id"}))


@pytest.mark.parametrize(
    ("match", "reason"),
    [
        ({"keys": ["log", "id"]}, "it has no key 'log'"),
        ({"keys": ["a", "b"]}, "it has no keys 'a', 'b'"),
        ({"keys": ["id"], "absent": ["won"]}, "it has the key 'won', which is under absent"),
        ({"keys": ["id"], "no_other_keys": True}, "it has another key, 'logs'"),
        ({"values": {"id": "x"}}, "the value at 'id' is another one"),
        ({"keys": ["id"], "file": "other"}, "is not named as 'other' says"),
        ([{"keys": ["a"]}, {"keys": ["b"]}], "it has no key 'a' and it has no key 'b'"),
    ],
)
def test_why_a_recipe_does_not_fit_is_said(match, reason, tmp_path):
    with pytest.raises(AdpError) as fault:
        convert(tmp_path, changed(match=match))
    sentence = str(fault.value)
    assert "; the recipe own_runs does not fit: " in sentence
    assert reason in sentence


def test_runs_are_of_the_data_set_that_a_recipe_names(tmp_path):
    assert {run.dataset for run in convert(tmp_path)} == {"own_runs"}


def test_a_data_set_that_is_named_goes_before(tmp_path):
    source, path = write(tmp_path)
    store = adp.convert(source, str(tmp_path / "s"), recipes=[path], dataset="mine")
    assert {run.dataset for run in store} == {"mine"}


def test_recipes_for_rows_of_any_set_leave_the_name_to_the_file():
    unnamed = {name for name in names() if data_set_name(name) is None}
    assert {"questions", "verl_questions"} <= unnamed
    assert data_set_name("agentinstruct") == "agentinstruct"
    assert data_set_name("openai_chat") is None
