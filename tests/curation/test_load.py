"""What a pool knows of each trajectory: its task, its size, its branches."""

from __future__ import annotations

import pytest

from adp.curation.inputs import open_inputs
from adp.curation.load import load
from adp_schema.builder import Origin, RowBuilder
from tests.stores import write_store

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
    return load(open_inputs({"s": store.root})).rows["task"].to_list()


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
    loaded = load(open_inputs(stores))
    assert loaded.rows["trajectory_id"].to_list() == ["d/x", "d/x#2", "d/x#3"]
    assert loaded.rows["input"].to_list() == ["a", "b", "c"]
    assert [seq >> 50 for seq in loaded.rows["seq"]] == [0, 1, 2]
