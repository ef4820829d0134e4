"""What a pool knows of each trajectory: its task, its size, its branches."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from adp.curation.inputs import open_inputs
from adp.curation.load import load
from adp.stores.tasks.rows import ROLLOUT
from adp_schema.builder import Origin, RowBuilder
from adp_schema.growing import seal
from adp_schema.model import Step, Task, Trajectory
from adp_schema.store import Store
from tests.curation.recipes import curate
from tests.store_builders import write_store

PREAMBLE = "You are in a room and have to do what is asked. " * 100


def tasks(
    folder, *runs: list[tuple[str, str | None]], task_id: str | None = None
) -> list[str | None]:
    """Keys of the tasks of runs, each a list of (source, text)."""
    builder = RowBuilder()
    for seq, run in enumerate(runs):
        builder.begin(Origin(seq=seq, dataset="d"))
        builder.trajectory({"source_id": str(seq), **({"task_id": task_id} if task_id else {})})
        for source, text in run:
            builder.step({"source": source, **({} if text is None else {"text": text})})
        builder.finish()
    store = write_store(folder, builder)
    return load(open_inputs({"s": store.root}), Path("none")).rows["task"].to_list()


def test_the_same_question_is_the_same_task(tmp_path):
    a, b, c = tasks(
        tmp_path,
        [("system", "x"), ("user", "Find a  train."), ("agent", "Here is one.")],
        [("user", "find a train."), ("agent", "There is none."), ("user", "Really?")],
        [("user", "find a tram."), ("agent", "Here.")],
    )
    assert a == b != c


def test_a_long_preamble_does_not_make_two_tasks_one(tmp_path):
    a, b, c = tasks(
        tmp_path,
        [("user", PREAMBLE + "Count the files.")],
        [("user", PREAMBLE + "Count the lines.")],
        [("user", PREAMBLE + "Count the files.")],
    )
    assert a == c != b


@pytest.mark.parametrize("answer", ["OK", "Ok. I'll follow your instructions.", "Understood!"])
def test_a_preamble_that_was_understood_is_not_the_task(answer, tmp_path):
    a, b, c = tasks(
        tmp_path,
        [("user", PREAMBLE), ("agent", answer), ("user", "Put the cup away."), ("agent", "x")],
        [("user", PREAMBLE), ("agent", answer), ("user", "Put the pan away."), ("agent", "x")],
        [("user", PREAMBLE), ("agent", answer), ("user", "Put the cup away."), ("agent", "y")],
    )
    assert a == c != b


def test_a_worked_example_is_not_the_task(tmp_path):
    shown = [("user", PREAMBLE), ("agent", "ls"), ("user", "a b"), ("agent", "two files")]
    a, b, c, d = tasks(
        tmp_path,
        [*shown, ("user", "Count the lines."), ("agent", "wc")],
        [*shown, ("user", "Count the words."), ("agent", "wc")],
        [*shown, ("user", "Count the lines."), ("agent", "cat")],
        [*shown, ("user", "Count the words."), ("agent", "wc")],
    )
    assert a == c != b == d


def test_attempts_that_part_at_a_step_of_the_agent_are_one_task(tmp_path):
    runs = [
        [("user", "Count."), ("agent", f"I try {number}"), ("user", f"result {number}")]
        for number in range(5)
    ]
    runs.append([("user", "Count."), ("agent", None), ("user", "other")])
    assert len(set(tasks(tmp_path, *runs))) == 1


def test_a_task_id_is_the_key_and_nothing_to_go_by_is_none(tmp_path):
    assert tasks(tmp_path / "a", [("user", "x")], task_id="t") == ["d/t"]
    assert tasks(tmp_path / "b", [("agent", "x")]) == [None]


def test_equal_ids_of_two_inputs_are_told_apart(tmp_path):
    stores = {}
    for name in ("a", "b", "c"):
        builder = RowBuilder()
        builder.begin(Origin(seq=0, dataset="d"))
        builder.trajectory({"source_id": "x"})
        builder.step({"source": "user", "text": name})
        builder.finish()
        stores[name] = write_store(tmp_path / name, builder).root
    loaded = load(open_inputs(stores), Path("none"))
    assert loaded.rows["trajectory_id"].to_list() == ["d/x", "d/x#2", "d/x#3"]
    assert loaded.rows["input"].to_list() == ["a", "b", "c"]
    assert [seq >> 50 for seq in loaded.rows["seq"]] == [0, 1, 2]


def collected(folder, *tasks: Task) -> str:
    """A store of rollouts: its data set is named after the folder."""
    with Store.grow(str(folder)) as store:
        for attempt, task in enumerate(tasks):
            store.append(
                Trajectory(
                    source_id=str(attempt), dataset=folder.name, source_format=ROLLOUT,
                    agent_name="a", task_id=task.task_id, task=task,
                    extra=json.dumps({"environment": "sums"}),
                    steps=[Step(source="user", kind="message", text="Go on.")],
                )
            )  # fmt: skip
    seal(str(folder))
    return str(folder)


def test_runs_of_two_policies_at_one_task_have_one_key(tmp_path):
    """The data set of a rollout is named after its store, which says nothing about the task."""
    known = Task(task_id="1", dataset="math", instruction="1 + 1?")
    same = Task(task_id="1", instruction="1 + 1?")
    other = Task(task_id="1", instruction="1 + 2?")
    nameless = Task(instruction="1 + 1?")
    stores = {
        "first": collected(tmp_path / "first", known, same, other),
        "second": collected(tmp_path / "second", same, known, nameless),
    }
    keys = load(open_inputs(stores), Path("none")).rows["task"].to_list()
    assert keys[0] == keys[4] == "math/1"
    assert keys[1] == keys[3]
    assert len(set(keys)) == 4
    assert keys[5].startswith("words:")


def test_one_split_for_a_task_of_two_runs(tmp_path):
    tasks = [Task(task_id=str(number), dataset="math") for number in range(30)]
    stores = {name: collected(tmp_path / name, *tasks) for name in ("first", "second")}
    out = tmp_path / "out"
    curate(stores, out, {"split": {"shares": {"train": 0.5, "test": 0.5}, "leakage": "off"}})
    rows = Store.open(str(out)).scan("trajectories").select("task_id", "split").collect()
    splits = rows.group_by("task_id").agg(pl.col("split").n_unique())["split"]
    assert len(splits) == 30
    assert set(splits) == {1}
    assert rows["split"].n_unique() == 2
