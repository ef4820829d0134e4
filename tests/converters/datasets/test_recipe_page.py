"""The examples of docs/datasets.md: their recipes read their rows as the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest
import yaml

import adp
from adp.converters.datasets.reader_specs import TurnKind
from adp.converters.text_calls.registry import DIALECTS

PAGE = (Path(__file__).parents[3] / "docs" / "datasets.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    match = re.search(f"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert match
    return match[1]


@pytest.fixture
def store(tmp_path):
    (tmp_path / "my.yaml").write_text(block("yaml"), encoding="utf-8")
    row = json.loads(block("json"))
    empty = {**row, "run": "r2", "dialog": []}
    lines = "".join(json.dumps(it) + "\n" for it in (row, empty))
    (tmp_path / "rows.jsonl").write_text(lines, encoding="utf-8")
    return adp.convert(
        [str(tmp_path / "rows.jsonl")], str(tmp_path / "store"), recipes=[str(tmp_path / "my.yaml")]
    )


def test_the_example_reads_its_row(store):
    counts = store.manifest.counts
    assert (counts.used, counts.skipped, counts.rejected) == (1, 1, 0)
    assert store.manifest.reasons == {"skipped: nobody speaks in it - at $": 1}
    (run,) = store
    assert (run.source_id, run.agent_model, run.success) == ("r1", "m-7b", True)
    assert run.license == "apache-2.0"
    assert run.task.instruction == "Count the files."
    assert run.task_id == "count_r1"
    assert '"note":"kept in extra"' in run.extra


@pytest.mark.skipif("react" not in DIALECTS, reason="the dialect react is not there")
def test_the_example_gives_calls_and_results(store):
    (run,) = store
    calls = [call for step in run.steps for call in step.calls]
    assert [call.name for call in calls] == ["shell", "finish"]
    assert [row.text for step in run.steps for row in step.observations] == ["12"]
    assert run.terminated is True
    assert run.final_answer == "12"
    assert {tool["function"]["name"] for tool in json.loads(run.tools)} == {"shell", "finish"}
    assert run.tools_origin == "inferred"


BLOCKS = dict(
    zip(
        (yaml.safe_load(it)["reader"] for it in re.findall("```yaml\n(.*?)```", PAGE, re.DOTALL)),
        re.findall("```json\n(.*?)```.*?```yaml\n(.*?)```", PAGE, re.DOTALL),
        strict=True,
    )
)


def store_of(folder, reader):
    rows, recipe = BLOCKS[reader]
    (folder / "my.yaml").write_text(recipe, encoding="utf-8")
    (folder / "rows.jsonl").write_text(rows, encoding="utf-8")
    return adp.convert(
        str(folder / "rows.jsonl"), str(folder / "store"), recipes=[str(folder / "my.yaml")]
    )


def test_there_is_an_example_of_each_reader():
    assert list(BLOCKS) == ["messages", "steps", "lists", "columns", "tasks"]


def test_the_example_of_steps(tmp_path):
    first, second = store_of(tmp_path, "steps")
    assert [(it.source_id, it.success) for it in (first, second)] == [("g1", True), ("g2", False)]
    assert [it.task.instruction for it in (first, second)] == ["Open the door.", "Find the key."]
    steps = [it for it in first.steps if it.source == "agent"]
    assert [[call.name for call in it.calls] for it in steps] == [["look"], ["open"]]
    assert [[(seen.text, seen.call_step) for seen in it.observations] for it in steps] == [
        [("It is closed.", steps[0].step)], [("It opens.", steps[1].step)]
    ]  # fmt: skip


def test_the_example_of_lists(tmp_path):
    (run,) = store_of(tmp_path, "lists")
    steps = [it for it in run.steps if it.source == "agent"]
    assert [it.calls[0].arguments_raw for it in steps] == ["ls", "wc -l a.csv"]
    assert [it.observations[0].text for it in steps] == ["a.csv", "12 a.csv"]
    assert [it.reward for it in steps] == [0.0, 1.0]


def test_the_example_of_columns(tmp_path):
    store = store_of(tmp_path, "columns")
    assert {run.steps[-1].text for run in store} == {"4", "5"}
    assert len(store.scan("pairs").collect()) == 1


def test_the_example_of_tasks(tmp_path):
    store = store_of(tmp_path, "tasks")
    (task,) = store.scan("tasks").collect().to_dicts()
    assert (task["task_id"], task["instruction"]) == ("puzzle_7", "What is 6 * 7?")
    assert (json.loads(task["answers"]), task["difficulty"]) == ("42", "easy")


def test_the_page_says_all_that_a_role_may_be():
    part = PAGE[PAGE.index("`roles` gives") :].partition("\n\n")[0]
    assert all(f"`{kind}`" in part for kind in get_args(TurnKind))
