from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from adp_schema.gate import QueryGate
from adp_schema.tables import TABLES, Table
from adp_schema.views import SHARDS, VIEWS, View, duckdb_type
from tests.shards import write_shards

Row = dict[str, Any]


def trajectory(seq: int, **columns: Any) -> Row:
    return {"seq": seq, "trajectory_id": f"d/{seq}", "dataset": "d", **columns}


def child(seq: int, step: int, **columns: Any) -> Row:
    return {"seq": seq, "trajectory_id": f"d/{seq}", "step": step, **columns}


def rows(gate: QueryGate, sql: str) -> list[Row]:
    to_pylist: list[Row] = gate.query(sql).to_pylist()
    return to_pylist


def described(gate: QueryGate, name: str) -> list[tuple[str, str]]:
    return [(row["column_name"], row["column_type"]) for row in rows(gate, f"DESCRIBE {name}")]


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[QueryGate]:
    """One of everything that the views tell apart."""
    shard = {
        "trajectories": [
            trajectory(1, task_id="t", attempt=1, success=True, reward=0.5),
            trajectory(2, task_id="t", attempt=0, success=False, reward=0.0),
            trajectory(3, task_id="t", attempt=2, success=True, reward=1.0),
            trajectory(4, task_id="t", attempt=3),
            trajectory(5, task_id="u", error_type="Timeout"),
            trajectory(6, task_id="t", success=True, parent_id="d/1", error_message="broken"),
            trajectory(7),
        ],
        "steps": [
            child(
                1,
                0,
                labels=["a", "b"],
                prompt_token_ids=[1, 2],
                timestamp=datetime(2024, 5, 1, 12, tzinfo=UTC),
            )
        ],
        "tool_calls": [
            child(1, 0, call=0, call_id="x", name="bash", arguments='{"b": 1, "a": 1e5}'),
            child(1, 0, call=1, name="edit", duration_ms=7.0),
            child(1, 2, call=0, name="bash"),
            child(6, 0, call=0, name="view"),
        ],
        "observations": [
            child(1, 0, order=0, call_step=0, call=1, text="late", duration_ms=3.0),
            child(1, 0, order=1, call_step=0, call=0, text="part", is_error=False, exit_code=0),
            child(1, 1, order=0, call_step=0, call=0, text="rest", is_error=True),
            child(2, 0, order=0, text="alone", name="shell", exit_code=2),
            child(2, 1, order=0, text="fine", is_error=False),
            child(2, 2, order=0, text="typed", error_type="Nope"),
        ],
    }
    with QueryGate(write_shards(tmp_path, shard)) as opened:
        yield opened


@pytest.mark.parametrize("name", VIEWS)
def test_the_columns_of_a_view_are_the_described_ones(gate: QueryGate, name: str) -> None:
    assert [column for column, _ in described(gate, name)] == list(VIEWS[name].columns)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_descriptions_are_one_sentence_a_line(view: View) -> None:
    for text in (view.description, *view.columns.values()):
        assert text.endswith("."), text
        assert "\n" not in text
        assert 8 < len(text) < 120, text
    assert (view.table is None) == (view.sql != SHARDS)


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_without_rows_has_the_types_of_one_with_rows(tmp_path: Path, name: str) -> None:
    everything: dict[str, list[Row]] = {table: [{}] for table in TABLES}
    with QueryGate(write_shards(tmp_path, everything)) as full, QueryGate({}) as empty:
        assert described(empty, name) == described(full, name)
        assert rows(empty, f"SELECT count(*) AS n FROM {name}") == [{"n": 0}]


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_comes_out_with_its_arrow_types(tmp_path: Path, table: Table) -> None:
    name = "all_trajectories" if table.name == "trajectories" else table.name
    with QueryGate(write_shards(tmp_path, {table.name: [{}]})) as gate:
        schema = gate.query(f"FROM {name}").schema
    for field in table.schema:
        # The name of a list's items is a matter of taste and differs.
        same = schema.field(field.name).type
        if pa.types.is_list(field.type):
            assert (pa.types.is_list(same), same.value_type) == (True, field.type.value_type)
        else:
            assert same == field.type


def test_values_come_through_whole(gate: QueryGate) -> None:
    step = rows(gate, "SELECT labels, prompt_token_ids, timestamp, text FROM steps")[0]
    assert step == {
        "labels": ["a", "b"],
        "prompt_token_ids": [1, 2],
        "timestamp": datetime(2024, 5, 1, 12, tzinfo=UTC),
        "text": None,
    }
    assert rows(gate, "SELECT timestamp::VARCHAR AS t FROM steps") == [
        {"t": "2024-05-01 12:00:00+00"}
    ]
    assert rows(gate, "SELECT arguments FROM calls WHERE call_id = 'x'") == [
        {"arguments": '{"b": 1, "a": 1e5}'}
    ]


def test_trajectories_are_main_lines(gate: QueryGate) -> None:
    assert [row["seq"] for row in rows(gate, "SELECT seq FROM trajectories")] == [1, 2, 3, 4, 5, 7]
    assert len(rows(gate, "SELECT seq FROM all_trajectories")) == 7


def test_calls_with_results(gate: QueryGate) -> None:
    result = rows(
        gate,
        "SELECT step, call, name, result, is_error, result_step, result_order, latency_ms,"
        " success, dataset FROM calls_with_results WHERE seq = 1"
        " ORDER BY step, call, result_step, result_order",
    )
    keys = ("step", "call", "name", "result", "is_error", "result_step", "result_order")
    assert [tuple(row[key] for key in keys) for row in result] == [
        (0, 0, "bash", "part", False, 0, 1),
        (0, 0, "bash", "rest", True, 1, 0),
        (0, 1, "edit", "late", None, 0, 0),
        (2, 0, "bash", None, None, None, None),
    ]
    assert [row["latency_ms"] for row in result] == [None, None, 3.0, None]
    assert {(row["success"], row["dataset"]) for row in result} == {(True, "d")}
    assert len(rows(gate, "FROM calls_with_results WHERE seq = 6")) == 1


def test_pairs_of_calls_and_results_are_those_of_a_plain_join(tmp_path: Path) -> None:
    dice = random.Random(7)
    calls = [
        child(seq, step, call=call, name=f"{seq}.{step}.{call}")
        for seq, step, call in itertools.product(range(4), range(5), range(3))
        if dice.random() < 0.6
    ]
    results = [
        child(
            dice.randrange(4),
            dice.randrange(5),
            order=order,
            call_step=dice.choice([None, 0, 1, 2, 3, 4]),
            call=dice.choice([None, 0, 1, 2]),
            text=str(order),
        )
        for order in range(80)
    ]
    expected = []
    for call in calls:
        key = (call["seq"], call["step"], call["call"])
        rs = [r for r in results if (r["seq"], r["call_step"], r["call"]) == key]
        expected += [(call["name"], r["text"]) for r in rs] or [(call["name"], None)]
    shard = {"trajectories": [], "tool_calls": calls, "observations": results}
    with QueryGate(write_shards(tmp_path, shard)) as gate:
        result = rows(gate, "SELECT name, result FROM calls_with_results")
    assert sorted(map(repr, expected)) == sorted(repr(tuple(row.values())) for row in result)
    assert len(expected) > len(calls)


def test_errors(gate: QueryGate) -> None:
    result = rows(gate, "FROM errors ORDER BY level, seq, step")
    keys = ("seq", "level", "step", "call_step", "call", "name", "error_type", "exit_code", "text")
    assert [tuple(row[key] for key in keys) for row in result] == [
        (1, "observation", 1, 0, 0, "bash", None, None, "rest"),
        (2, "observation", 0, None, None, "shell", None, 2, "alone"),
        (2, "observation", 2, None, None, None, "Nope", None, "typed"),
        (5, "trajectory", None, None, None, None, "Timeout", None, None),
        (6, "trajectory", None, None, None, None, None, None, "broken"),
    ]
    assert {row["dataset"] for row in result} == {"d"}


def test_attempts(gate: QueryGate) -> None:
    solved, failed = rows(gate, "FROM attempts ORDER BY task_id")
    assert solved == {
        "dataset": "d",
        "task_id": "t",
        "attempts": 4,
        "successes": 2,
        "failures": 1,
        "unscored": 1,
        "success_rate": pytest.approx(2 / 3),
        "best_reward": 1.0,
        "mean_reward": 0.5,
        "first_success": 2,
        "first_success_id": "d/1",
    }
    assert failed["task_id"] == "u"
    assert (failed["attempts"], failed["unscored"]) == (1, 1)
    assert failed["success_rate"] is None
    assert failed["first_success"] is None


def test_filters_reach_the_row_groups(tmp_path: Path) -> None:
    shards = [
        {
            "trajectories": [trajectory(seq) for seq in range(start, start + 50)],
            "steps": [child(seq, step) for seq in range(start, start + 50) for step in range(4)],
        }
        for start in (100, 200)
    ]
    files = write_shards(tmp_path, *shards, row_group_size=20)

    def scanned(gate: QueryGate, where: str) -> tuple[int, int]:
        plan = gate.query(f"EXPLAIN ANALYZE SELECT text FROM steps WHERE {where}")
        read, there = re.findall(
            r"Row Groups Scanned: (\d+) / (\d+)", str(plan["explain_value"][0])
        )[0]
        return int(read), int(there)

    with QueryGate(files) as gate:
        assert scanned(gate, "seq = 117") == (1, 20)
        assert scanned(gate, "trajectory_id = 'd/217'") == (1, 20)
        assert scanned(gate, "text IS NULL") == (20, 20)
        plan = gate.query("EXPLAIN SELECT step FROM steps")["explain_value"][0].as_py()
        assert "reasoning" not in plan


def test_duckdb_type_knows_every_type_in_use() -> None:
    for table in TABLES.values():
        for field in table.schema:
            assert duckdb_type(field.type)
    with pytest.raises(KeyError):
        duckdb_type(pa.int8())
