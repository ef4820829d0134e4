"""The builder: numbers, pairs, unique ids, roll back, checks."""

from datetime import datetime

import pytest

from adp_schema.builder import Origin, RowBuilder
from adp_schema.errors import RecordError, SchemaError
from adp_schema.losses import Losses


def begin(builder, seq=0, source_hash="h"):
    builder.begin(Origin(seq=seq, dataset="d", columns={"source_hash": source_hash}))
    return builder


def test_numbers_turns_and_steps():
    builder = begin(RowBuilder())
    builder.trajectory({"source_id": "x"})
    for source in ("system", "user", "agent", "user", "user"):
        builder.step({"source": source})
    assert builder.finish() == "d/x"
    steps = builder.tables()["steps"].to_pylist()
    assert [step["step"] for step in steps] == [0, 1, 2, 3, 4]
    assert [step["turn"] for step in steps] == [0, 0, 0, 1, 1]
    assert {step["trajectory_id"] for step in steps} == {"d/x"}


def test_a_branch_numbers_on():
    builder = begin(RowBuilder())
    builder.trajectory({"source_id": "b", "parent_id": "d/x", "parent_step": 3})
    assert builder.step({"source": "agent"}) == 3


def test_repeated_ids_are_numbered_and_missing_ones_are_hashes():
    builder = RowBuilder()
    ids = []
    for seq, columns in enumerate([{"source_id": "x"}, {"source_id": "x"}, {}, {}]):
        begin(builder, seq).trajectory(columns)
        ids.append(builder.finish())
    assert ids == ["d/x", "d/x#2", "d/h", "d/h#2"]


def observe(builder, **options):
    builder.observation({"source": "environment"}, **options)
    return builder.rows["observations"][-1]


def test_pairing_by_id_with_repeats():
    builder = begin(RowBuilder())
    builder.trajectory({})
    builder.step({"source": "agent"})
    builder.call({"name": "a", "call_id": "i"})
    first = observe(builder, answers="i")
    builder.step({"source": "agent"})
    builder.call({"name": "b", "call_id": "i"})
    second = observe(builder, answers="i")
    assert (first["call_step"], first["call"], first["call_id"]) == (0, 0, "i")
    assert (second["call_step"], second["call_id"], second["native_call_id"]) == (1, "i#2", "i")
    orphan = observe(builder, answers="nobody")
    assert "call_step" not in orphan
    assert orphan["native_call_id"] == "nobody"


def test_pairing_by_order_prefers_the_name():
    builder = begin(RowBuilder())
    builder.trajectory({})
    builder.step({"source": "agent"})
    builder.call({"name": "a"})
    builder.call({"name": "b"})
    builder.observation({"source": "environment", "name": "b"}, by_order=True)
    builder.observation({"source": "environment"}, by_order=True)
    builder.observation({"source": "environment"}, by_order=True)
    assert [row.get("call") for row in builder.rows["observations"]] == [1, 0, None]


def test_an_observation_before_the_first_step():
    builder = begin(RowBuilder())
    builder.trajectory({})
    assert observe(builder)["step"] == -1


def test_roll_back_forgets_the_record_only():
    builder = begin(RowBuilder())
    builder.trajectory({"source_id": "x"})
    builder.step({"source": "user"})
    builder.finish()
    begin(builder, 1).trajectory({"source_id": "x"})
    builder.step({"source": "user"})
    builder.finish()
    builder.trajectory({"source_id": "y"})
    builder.step({"source": "user"})
    builder.rollback()
    begin(builder, 2).trajectory({"source_id": "x"})
    assert builder.finish() == "d/x#2"
    tables = builder.tables()
    assert tables["trajectories"]["trajectory_id"].to_pylist() == ["d/x", "d/x#2"]
    assert tables["steps"]["seq"].to_pylist() == [0]


def test_a_record_without_trajectory_is_an_error():
    builder = begin(RowBuilder())
    with pytest.raises(RecordError, match="no trajectory"):
        builder.close_record(Losses())


def test_losses_are_noted_on_the_trajectory():
    builder, losses = begin(RowBuilder()), Losses()
    builder.trajectory({})
    losses.add("$.a[3].b", "gone")
    builder.close_record(losses)
    assert builder.rows["trajectories"][0]["losses"] == '[{"path":"$.a[3].b","reason":"gone"}]'
    assert losses.counts == {"$.a[*].b: gone": 1}


def test_wrong_words_and_columns_are_refused():
    builder = begin(RowBuilder())
    builder.trajectory({})
    builder.step({"source": "robot"})
    builder.finish()
    with pytest.raises(SchemaError, match="robot"):
        builder.tables()
    builder = begin(RowBuilder())
    builder.trajectory({"colour": "red"})
    builder.finish()
    with pytest.raises(SchemaError, match="colour"):
        builder.tables()


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        (
            {"started_at": "2026-01-31T09:30:00Z"},
            "column trajectories.started_at takes a time (a datetime, or whole microseconds since "
            "1970 in UTC), not str; datetime.fromisoformat makes one of ISO 8601",
        ),
        (
            {"rewards": {"a": 1}},
            "column trajectories.rewards takes JSON text, not dict; use json.dumps",
        ),
        ({"source_id": 4}, "column trajectories.source_id takes a text, not int"),
        ({"success": "yes"}, "column trajectories.success takes True or False, not str"),
        ({"tags": "a"}, "column trajectories.tags takes a list, not str"),
    ],
)
def test_a_wrong_type_is_said_in_one_sentence(columns, sentence):
    builder = begin(RowBuilder())
    builder.trajectory(columns)
    builder.finish()
    with pytest.raises(SchemaError) as caught:
        builder.check_record()
    assert str(caught.value) == sentence


def test_a_time_is_a_datetime_or_microseconds():
    moment = datetime.fromisoformat("2026-01-31T09:30:00Z")
    for time in (moment, moment.replace(tzinfo=None), int(moment.timestamp()) * 1_000_000):
        builder = begin(RowBuilder())
        builder.trajectory({"started_at": time})
        builder.finish()
        assert builder.tables()["trajectories"]["started_at"].to_pylist() == [moment]


def test_a_task_is_kept_once_a_data_set_and_again_when_it_says_something_else():
    builder = RowBuilder()
    output = [("a", "1", "x"), ("a", "1", "x"), ("b", "1", "x"), ("a", "1", "y"), ("a", "1", "x")]
    for seq, (dataset, name, text) in enumerate(output):
        builder.begin(Origin(seq=seq, dataset=dataset))
        builder.trajectory({"task_id": name})
        builder.task({"task_id": name, "instruction": text})
        builder.finish()
    rows = [(row["seq"], row["instruction"]) for row in builder.tables()["tasks"].to_pylist()]
    assert rows == [(0, "x"), (2, "x"), (3, "y")]


def test_a_task_of_a_record_that_failed_is_added_by_the_next_one():
    builder = RowBuilder()
    for seq in range(2):
        begin(builder, seq).trajectory({"task_id": "1"})
        builder.task({"task_id": "1", "instruction": "x"})
        builder.finish()
        if seq == 0:
            builder.rollback()
    assert [row["seq"] for row in builder.tables()["tasks"].to_pylist()] == [1]
