"""Tasks out of files and stores."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adp
from adp.rollouts.collecting.collect import alone, collect_now
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.collecting.task_files import read_task_file, task_of
from adp.rollouts.collecting.tasks import read_tasks
from adp.rollouts.environments.toolworld import KIND as TOOLWORLD
from adp_schema.arrow import json_columns
from adp_schema.errors import InputError, UsageError
from adp_schema.growing import GrowingStore
from adp_schema.jsontext import is_valid
from adp_schema.model import Task, Trajectory
from tests.rollouts.collecting.adder import KIND, Adder, AdderSettings, Waiting, sums

SHARED = Path(__file__).parents[3].parent / "shared" / "data"
shared = pytest.mark.skipif(not SHARED.exists(), reason="the reference data are not here")


def lines(path, *records):
    path.write_text("\n".join(json.dumps(record) for record in records) + "\n")
    return path


def test_names_of_other_data_sets_are_understood(tmp_path):
    path = lines(
        tmp_path / "tasks.jsonl",
        {"question": "a?", "answer": ["x", "y"]},
        {"problem": "b?", "answer": 70, "id": 0},
        {"prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "c?"}]},
        {"instruction": "d?", "answers": '["q"]', "task_id": "t", "level": 3, "extra": {"a": 1}},
        {"prompt": "e?", "expected_tool": "add", "expected_params": {"a": 1}},
    )
    a, b, c, d, e = read_task_file(path).tasks
    assert (a.instruction, a.answers, len(a.task_id)) == ("a?", '["x", "y"]', 32)
    assert (b.task_id, b.answers) == ("0", "[70]")
    assert c.instruction == "c?"
    assert (d.task_id, d.answers, json.loads(d.extra)) == ("t", '["q"]', {"a": 1, "level": 3})
    assert json.loads(e.expected_calls) == [{"name": "add", "arguments": {"a": 1}}]


def test_what_is_no_task_is_refused_with_its_place(tmp_path):
    path = tmp_path / "tasks.jsonl"
    good = b'{"id": "one", "question": "a?"}\n'
    path.write_bytes(
        good
        + b"{oops\n\n[1]\n"
        + good
        + b'{"id": "two"}\n{"question": "\xff"}\n{"question": NaN}\n'
        + b"[" * 100_000 + b"\n"
        + b'{"question": {"a": 1}}\n'
    )  # fmt: skip
    task_file = read_task_file(path)
    assert [task.task_id for task in task_file.tasks] == ["one"]
    assert task_file.records == len(task_file.tasks) + task_file.refused == 9
    places = [reason.partition(": ")[0] for reason in task_file.reasons]
    assert places == [f"tasks.jsonl#{number}" for number in (2, 4, 5, 6, 7, 8, 9, 10)]
    for reason, words in zip(
        task_file.reasons,
        ["no JSON", "no JSON object", "record 1 has the id 'one'", "no instruction", "not UTF-8",
         "NaN", "", "neither a text"],
        strict=True,
    ):  # fmt: skip
        assert words in reason


def test_a_file_without_a_task_is_an_error(tmp_path):
    for name, content in [
        ("a.jsonl", ""), ("b.jsonl", "{}\n"), ("c.json", "3"), ("d.json", "{"), ("e.csv", "x\n1\n"),
    ]:  # fmt: skip
        (tmp_path / name).write_text(content)
        with pytest.raises(InputError):
            read_task_file(tmp_path / name)
    with pytest.raises(InputError, match="cannot be read"):
        read_task_file(tmp_path / "none.jsonl")


def test_documents_and_tables_hold_the_same_tasks(tmp_path):
    records = [
        {"id": f"t{k}", "question": f'{k}, "or"\nmore?', "answer": f"a{k}"} for k in range(5)
    ]
    wanted = read_task_file(lines(tmp_path / "a.jsonl", *records)).tasks
    for name, content in [
        ("b.json", json.dumps(records, indent=2)),
        ("c.json", json.dumps({"version": 1, "tasks": records})),
        ("d.json", "\n".join(map(json.dumps, records))),
        ("e.json", "\ufeff" + json.dumps(records)),
    ]:
        (tmp_path / name).write_text(content)
        assert read_task_file(tmp_path / name).tasks == wanted
    with (tmp_path / "f.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "question", "answer"])
        writer.writeheader()
        writer.writerows(records)
        file.write("x,y\n")
    task_file = read_task_file(tmp_path / "f.csv")
    assert task_file.tasks == wanted
    assert task_file.reasons == ["f.csv#12: it has another number of cells than the head"]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
names = st.sampled_from([*Task.model_fields, "question", "answer", "id", "expected_tool", "x"])


@given(st.dictionaries(names, anything, max_size=6))
def test_any_record_is_a_task_that_a_store_holds_or_is_refused(record):
    try:
        task = task_of(record)
    except ValueError:
        return
    assert task.task_id
    for name, value in task.model_dump(exclude_none=True).items():
        assert value.encode()  # no half characters
        assert name not in json_columns("tasks") or is_valid(value)
    assert task_of(record) == task


def test_tasks_of_a_store_come_once(tmp_path):
    store = tmp_path / "first"
    collect_now(
        store, Adder, alone(Waiting()), sums(None, "test", 4, 0), CollectSettings(n=3, seal=False)
    )
    tasks = read_tasks(str(store), KIND, AdderSettings())
    assert [task.task_id for task in tasks.tasks] == [f"test-{k}" for k in range(4)]
    assert (tasks.records, tasks.refused) == (4, 0)
    assert tasks.tasks[1].answers == '["2"]'
    with GrowingStore(store) as more:
        other = Task(task_id="test-0", instruction="another")
        more.append(Trajectory(dataset="d", source_id="x", task_id="test-0", task=other))
        empty = Task(task_id="none")
        more.append(Trajectory(dataset="d", source_id="y", task_id="none", task=empty))
    tasks = read_tasks(str(store), KIND, AdderSettings())
    assert (len(tasks.tasks), tasks.refused) == (4, 2)
    assert tasks.reasons == [
        "task 'test-0' of first: another task has this id",
        "task 'none' of first: it has no instruction",
    ]
    with pytest.raises(InputError, match="holds no task"):
        read_tasks(str(store), KIND, AdderSettings(), split="train")


def test_tasks_that_the_environment_makes(tmp_path):
    tasks = read_tasks("test:5:7", TOOLWORLD, TOOLWORLD.settings())
    assert len(tasks.tasks) == 5
    assert {task.split for task in tasks.tasks} == {"test"}
    assert tasks.tasks == read_tasks("test:5:7", TOOLWORLD, TOOLWORLD.settings()).tasks
    assert tasks.tasks != read_tasks("test:5:8", TOOLWORLD, TOOLWORLD.settings()).tasks
    from dataclasses import replace

    with pytest.raises(UsageError, match="makes no tasks of its own"):
        read_tasks("test:5", replace(KIND, tasks=None), AdderSettings())
    with pytest.raises(UsageError, match="0 tasks"):
        read_tasks("test:0", KIND, AdderSettings())
    for missing in ("none.jsonl", "no/such", "test:x"):
        with pytest.raises(InputError):
            read_tasks(missing, KIND, AdderSettings())
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(UsageError, match="no file of tasks"):
        read_tasks(str(tmp_path / "a.txt"), KIND, AdderSettings())


@shared
@pytest.mark.parametrize(
    "name", ["etagent/test/aime25.jsonl", "etagent/test/bamboogle.jsonl",
             "playground/test_cases.json"],
)  # fmt: skip
def test_files_of_others_are_read_whole(name):
    path = SHARED / name
    task_file = read_task_file(path)
    text = path.read_text()
    records = json.loads(text) if name.endswith(".json") else text.splitlines()
    assert task_file.records == len(records) == len(task_file.tasks)
    assert not task_file.refused
    for task in task_file.tasks:
        assert task.instruction
        assert json.loads(task.answers or task.expected_calls)


def test_semicolons_and_tabs_stand_between_cells_too(tmp_path):
    (tmp_path / "a.csv").write_text("id;question;answer\n1;One, two?;2\n2;Three?;3\n")
    (tmp_path / "b.tsv").write_text("id\tquestion\tanswer\n1\tOne, two?\t2\n2\tThree?\t3\n")
    task_file = read_task_file(tmp_path / "a.csv")
    assert [task.instruction for task in task_file.tasks] == ["One, two?", "Three?"]
    assert task_file.tasks == read_task_file(tmp_path / "b.tsv").tasks


def test_equal_records_and_columns_of_other_names_are_told(tmp_path):
    records = [
        {"question": "One?", "solution": 1},
        {"question": "One?", "solution": 1},
        {"question": "Two?", "answer": 2, "level": 3},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, records)))
    task_file = read_task_file(tmp_path / "a.jsonl")
    assert task_file.reasons == [
        "a.jsonl#2: it is the same as record 1; give each an id to run both"
    ]
    (note,) = task_file.notes
    assert note.endswith("kept in extra: 'solution'")
    assert json.loads(task_file.tasks[0].extra) == {"solution": 1}


VERL = {
    "data_source": "bridges", "ability": "qa",
    "prompt": [{"role": "user", "content": "Use tools. How long is it?"}],
    "reward_model": {"style": "rule", "ground_truth": ["464 m"]},
    "extra_info": {"index": 3, "split": "test", "question": "How long is it?"},
}  # fmt: skip


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_rows_of_verl(ending, tmp_path):
    rows = [VERL, {**VERL, "extra_info": {"index": 4}, "reward_model": {"ground_truth": ["5"]}}]
    path = tmp_path / f"valid.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    first, second = read_task_file(path).tasks
    assert (first.task_id, first.split) == ("bridges_test_3", "test")
    assert first.instruction == "How long is it?"
    assert json.loads(first.answers) == ["464 m"]
    assert json.loads(first.extra)["extra_info"]["question"] == "How long is it?"
    assert (second.task_id, second.instruction) == ("bridges_4", "Use tools. How long is it?")
    assert json.loads(second.answers) == ["5"]


def test_a_file_that_is_no_parquet(tmp_path):
    (tmp_path / "x.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match="no Parquet file that can be read"):
        read_task_file(tmp_path / "x.parquet")


def test_the_tasks_of_a_store_without_runs(tmp_path):
    path = tmp_path / "valid.jsonl"
    path.write_text(json.dumps(VERL) + "\n", "utf-8")
    store = adp.convert([str(path)], str(tmp_path / "store"))
    (task,) = read_tasks(store.root, KIND, None).tasks
    assert task.instruction == "How long is it?"
    assert task.dataset == store.manifest.datasets.popitem()[0]


@pytest.mark.parametrize(
    ("name", "row", "dataset"),
    [
        ("aime25.jsonl", {}, "aime25"),
        ("bamboogle.jsonl", {"dataset": "mine"}, "mine"),
        ("questions.jsonl", {}, None),
    ],
)
def test_a_file_of_a_known_set_names_the_data_set_of_its_tasks(tmp_path, name, row, dataset):
    path = tmp_path / name
    path.write_text(json.dumps({"problem": "2 + 2?", "answer": 4, **row}), encoding="utf-8")
    (task,) = read_task_file(path).tasks
    assert task.dataset == dataset
