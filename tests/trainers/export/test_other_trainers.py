"""The exporters for other trainers under the runner, on runs with all that is special."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adp.trainers.export.output import RowFile
from adp.trainers.export.run import export_rows
from adp_schema.builder import Origin, RowBuilder
from adp_schema.errors import UsageError
from adp_schema.growing import seal
from adp_schema.model import Step, Task, Trajectory
from adp_schema.store import Store
from tests.store_builders import write_store
from tools.oracle.differences import EMPTY, END, OPENING, OTHER, SAME, kind_of
from tools.oracle.runs import CASES, made_pairs, made_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Store:
    return made_runs(tmp_path_factory.mktemp("runs") / "store", 3)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> Store:
    return made_pairs(tmp_path_factory.mktemp("pairs") / "store", 1)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("openai-ft-sft", {}),
        ("llamafactory-sharegpt", {"expand": True}),
        ("llamafactory-sharegpt", {"unfit": "leave_out"}),
        ("llamafactory-sharegpt", {"expand": True, "template": "mistral"}),
        ("llamafactory-sharegpt", {"engine": "v1", "template": "qwen3"}),
    ],
)
def test_every_step_is_in_a_row_or_counted(runs, tmp_path, name, settings) -> None:
    report = export_rows(runs, name, str(tmp_path / "out"), settings)
    assert report.in_rows + sum(report.left_out.values()) == report.in_store
    lines = (tmp_path / "out" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == report.rows
    if settings.get("expand") or settings.get("engine") or name == "openai-ft-sft":
        whole = "mistral" not in settings.values()
        assert (report.in_rows == report.in_store) is whole


@pytest.mark.parametrize("name", ["openai-ft-dpo", "llamafactory-ranking"])
def test_every_pair_is_a_row(pairs, tmp_path, name) -> None:
    report = export_rows(pairs, name, str(tmp_path / "out"))
    assert report.rows == report.in_rows == len(CASES)


def test_masked_steps_are_not_trained_in_silence(runs, tmp_path) -> None:
    with pytest.raises(UsageError, match="expand=true") as error:
        export_rows(runs, "llamafactory-sharegpt", str(tmp_path / "out"))
    assert "engine=v1" in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_task_that_was_tried_twice_has_one_row(tmp_path: Path) -> None:
    builder = RowBuilder()
    for attempt in (0, 1):
        builder.begin(Origin(seq=attempt, dataset="d"))
        builder.trajectory({"source_id": f"run{attempt}", "task_id": "t", "attempt": attempt})
        builder.task({"dataset": "d", "task_id": "t", "answers": json.dumps(["the sea"])})
        builder.step({"source": "user", "kind": "message", "text": "What is there?"})
        builder.step({"source": "agent", "kind": "llm_turn", "text": f"answer {attempt}"})
        builder.call({"kind": "function", "name": "look", "arguments": "{}"})
        builder.observation({"source": "environment", "text": "water"}, by_order=True)
        builder.finish()
    store = write_store(tmp_path / "store", builder)
    report = export_rows(store, "verl-rl", str(tmp_path / "out"))
    assert (report.rows, report.in_rows) == (1, 1)
    assert sum(report.left_out.values()) == 1
    [row] = pq.read_table(tmp_path / "out" / "train.parquet").to_pylist()
    assert row["reward_model"]["ground_truth"] == "the sea"


@pytest.mark.parametrize("exporter", ["verl-rl", "trl-grpo"])
def test_a_task_that_two_policies_tried_has_one_row(tmp_path: Path, exporter: str) -> None:
    """The data set of a rollout is named after its run, which is not what the row is about."""
    tasks = {
        "a": Task(task_id="1", instruction="What is there?", answers='["the sea"]'),
        "b": Task(task_id="1", instruction="And here?", answers='["sand"]'),
    }
    with Store.grow(str(tmp_path / "store")) as growing:
        for run, name in (("first", "a"), ("second", "a"), ("second", "b")):
            growing.append(
                Trajectory(
                    trajectory_id=run + name, source_format="adp_rollout", dataset=run,
                    extra='{"environment": "beach"}', task_id="1", task=tasks[name],
                    steps=[Step(source="user", kind="message", text=tasks[name].instruction),
                           Step(source="agent", kind="llm_turn", text=run)],
                )
            )  # fmt: skip
    seal(str(tmp_path / "store"))
    report = export_rows(Store.open(str(tmp_path / "store")), exporter, str(tmp_path / "out"))
    assert report.rows == 2
    if exporter == "trl-grpo":
        lines = (tmp_path / "out" / "train.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        reporter = [(row["dataset"], row["answers"]) for row in rows]
        assert reporter == [("beach", '["the sea"]'), ("beach", '["sand"]')]
    else:
        rows = pq.read_table(tmp_path / "out" / "train.parquet").to_pylist()
        reporter = [(row["data_source"], row["reward_model"]["ground_truth"]) for row in rows]
        assert reporter == [("beach", "the sea"), ("beach", "sand")]


def test_equal_rows_are_written_once_in_parquet_too(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.string())])
    file = RowFile(tmp_path / "x.parquet", schema, unique=True, mix=None)
    assert [file.add([{"a": text}]) for text in ("one", "one", "two")] == [True, False, True]
    file.close()
    assert file.rows == 2
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == [{"a": "one"}, {"a": "two"}]


def test_the_oracle_tells_kinds_of_differences_apart() -> None:
    thought = "<think>\n\n</think>\n\n"
    assert kind_of(["a"], ["a"]) == SAME
    assert kind_of(["a"], ["a\n"]) == END
    assert kind_of(["a"], ["<|im_start|>assistant\na\n"]) == f"{END}; {OPENING}"
    assert kind_of([thought + "a"], ["a"]) == EMPTY
    assert kind_of(["a"], ["a", "b"]) == OTHER
    assert kind_of(["a b"], ["a c"]) == OTHER
