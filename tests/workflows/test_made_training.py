"""Data that a training makes first, without training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from adp.trainers.config_file import read_config
from adp.workflows.made_training import is_untried, try_trained, with_made_data
from adp_schema.errors import InputError, OutputExistsError, UsageError
from adp_schema.store import Store

TOOLS = [
    {
        "name": "calculator",
        "description": "Works out arithmetic",
        "type": "function",
        "function": "calculator",
        "parameters": {
            "type": "object",
            "properties": {"expression": {"type": "string"}},
            "required": ["expression"],
        },
    }
]
ROWS = Path(__file__).parents[1] / "converters/datasets/examples/toolllama/rows.json"


def configuration(**changes: Any) -> dict[str, Any]:
    """A configuration in the shape of those of Tiny Tool Use; changes by section__key."""
    given: dict[str, Any] = {
        "model": {"name": "tiny"},
        "training": {"method": "sft", "learning_rate": 1e-4},
        "data": {"strategy": "manual_templates", "max_samples": 6, "train_split": 0.8},
        "tools": TOOLS,
        "evaluation": {"metrics": ["tool_accuracy"]},
        "seed": 42,
    }
    for path, value in changes.items():
        section, _, key = path.partition("__")
        if key:
            given[section][key] = value
        else:
            given[section] = value
    return given


def made(out: Path, given: dict[str, Any], *settings: str, resume: bool = False) -> Store:
    config, _ = read_config(given, ["data.make.test_count=2", *settings])
    done = with_made_data(config, out, resume=resume)
    assert done.data.store is not None
    return Store.open(done.data.store)


def instructions(store: Store) -> set[str]:
    return set(store.scan("tasks").select("instruction").collect()["instruction"])


@pytest.mark.parametrize(
    ("strategy", "generator"),
    [
        ("manual_templates", "templates"),
        ("toolbench", "synthetic"),
        ("teacher_mode", "synthetic"),
    ],
)
def test_each_strategy_makes_samples_whose_calls_were_carried_out(tmp_path, strategy, generator):
    store = made(tmp_path / "run", configuration(data__strategy=strategy))
    runs = [*store.trajectories()]
    assert len(runs) == 6
    assert all(run.success for run in runs)
    assert {json.loads(str(run.extra))["generator"]["name"] for run in runs} == {generator}
    tests = Store.open(str(tmp_path / "run" / "data" / "tests"))
    assert len([*tests.trajectories()]) == 2
    assert not instructions(tests) & instructions(store)
    again = made(tmp_path / "run", configuration(data__strategy=strategy), resume=True)
    assert again.manifest == store.manifest


def test_pairs_of_dpo_have_a_call_without_its_tags_on_the_worse_side(tmp_path):
    given = configuration(training__method="dpo")
    store = made(tmp_path / "run", given, "data.make.pairs=4")
    pairs = store.scan("pairs").collect()
    assert pairs.height == 4
    worse = store.scan("trajectories").filter(pl.col("branch_kind") == "revision").collect()
    calls = store.scan("tool_calls").select("seq").collect()["seq"]
    assert worse.height == 4
    assert not set(worse["seq"]) & set(calls)
    again = made(tmp_path / "run", given, "data.make.pairs=4", resume=True)
    assert again.manifest == store.manifest


def test_a_teachers_failed_calls_are_the_worse_sides(tmp_path):
    teacher = tmp_path / "teacher.jsonl"
    calls = ("two plus", "1+1", "2+2", "3+3")
    turns = [
        {"question": f"What is {text}?", "name": "calculator", "arguments": {"expression": text}}
        for text in calls
    ]
    lines = [
        {"task_id": f"calculator/{number}", "turns": [{"text": json.dumps(turn)} for turn in pair]}
        for number, pair in enumerate((turns[:2], turns[2:3], turns[3:]))
    ]
    teacher.write_text("".join(json.dumps(line) + "\n" for line in lines))
    given = configuration(training__method="dpo", data__strategy="teacher_mode")
    given["data"]["max_samples"] = 2
    settings = (f"data.make.policy='scripted:file={teacher}'", "data.make.test_count=0")
    store = made(tmp_path / "run", given, *settings)
    assert store.scan("pairs").collect().height == 1


def test_the_real_file_becomes_a_store(tmp_path):
    given = configuration(data__strategy="toolbench", data__generation_type="real", tools={})
    store = made(tmp_path / "run", given, f"data.make.file={ROWS}")
    assert store.scan("tool_calls").collect().height > 0


def test_a_store_that_is_named_is_taken():
    config, _ = read_config(configuration(), (), {"data.store": "mine"})
    assert with_made_data(config, "nowhere") is config


def test_only_data_that_were_made_have_test_cases(tmp_path):
    (tmp_path / "run.json").write_text("{}")  # the training is finished
    config, _ = read_config(configuration(), ["data.make.test_count=3"])
    assert not is_untried(config, tmp_path)
    assert try_trained(config, tmp_path) is None
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "tools.json").write_text("{}")
    assert is_untried(config, tmp_path)


@pytest.mark.parametrize(
    ("changes", "settings", "kind", "message"),
    [
        ({"tools": []}, (), UsageError, "the section 'tools' is empty"),
        ({"data__strategy": "toolbench", "data__generation_type": "real"}, (), InputError,
         "toolllama_G123_dfs_train.json is not there"),
        ({"data__generation_type": "real"}, (), UsageError, "real is for toolbench"),
        ({"data__strategy": "mirror"}, (), UsageError, "data.make.strategy"),
        ({"tools": [{"name": "unheard_of"}]}, (), UsageError, "unheard_of"),
        ({}, ("data.make.test_cases=nowhere.json",), InputError, "nowhere.json is not there"),
        ({}, ("method=kto",), UsageError, "not for kto"),
    ],
)  # fmt: skip
def test_what_cannot_be_made_is_said(tmp_path, changes, settings, kind, message):
    with pytest.raises(kind, match=message):
        made(tmp_path / "run", configuration(**changes), *settings)


def test_a_folder_that_holds_something_is_not_written_to(tmp_path):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(OutputExistsError):
        made(tmp_path, configuration())


def test_what_is_made_is_part_of_what_decides_the_result():
    first, second = (read_config(configuration(data__max_samples=n))[0] for n in (5, 6))
    assert first.hash() != second.hash()
