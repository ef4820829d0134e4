"""Tables as an environment: what can be asked, and what cannot be done."""

from __future__ import annotations

import json
import sqlite3

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.eval.environments.sql import KIND, SqlSettings
from adp.eval.turns import Call, ErrorType, Turn
from adp_schema.errors import InputError, UsageError
from adp_schema.model import Task, Trajectory

TASK = Task(task_id="t", instruction="Who is the oldest?")
PEOPLE = pl.DataFrame(
    {"name": ["Ada", "Bo", "Cy", None], "age": [36, 71, 12, 50], "city": ["x", "y", "x", "y"]}
)
CITIES = pl.DataFrame({"city": ["x", "y"], "country": ["Fin'land", "Peru"]})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables")
    PEOPLE.write_parquet(path / "people.parquet")
    CITIES.write_csv(path / "cities.csv")
    (path / "notes.txt").write_text("no table")
    with sqlite3.connect(path / "shop.sqlite") as connection:
        connection.execute("CREATE TABLE sales (what TEXT, price)")
        connection.executemany("INSERT INTO sales VALUES (?, ?)", [("a", 1), ("b", "free")])
    return path


def make(folder, **settings):
    environment = KIND.make(SqlSettings(tables=folder, **settings))
    environment.reset(TASK)
    return environment


def do(environment, name, **arguments):
    outcome = environment.step(Turn(calls=(Call(name, json.dumps(arguments), "c"),)))
    return outcome.results[0]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_what_stands_between_cells_is_recognised(tmp_path, separator):
    frame = pl.DataFrame({"a;b": ["1,5", "x\ty"], "c": [1, 2]})
    frame.write_csv(tmp_path / "t.csv", separator=separator)
    found = do(make(tmp_path), "run_sql", query='SELECT "a;b", c FROM t ORDER BY c')
    assert found.structured["rows"] == [["1,5", 1], ["x\ty", 2]]


def test_the_answers_of_a_task_judge(folder):
    environment = KIND.make(SqlSettings(tables=folder))
    task = Task(task_id="t", instruction="Who is the oldest?", answers='["Bo"]')
    for text, success in (("The answer is Bo.", True), ("Ada", False)):
        environment.reset(task)
        assert environment.score(Trajectory(final_answer=text)).success is success
    environment.reset(TASK)
    assert environment.score(Trajectory(final_answer="Bo")).success is None


def test_sql_over_files_of_several_kinds(folder):
    environment = make(folder)
    assert do(environment, "list_tables").structured == ["cities", "people", "sales"]
    assert do(environment, "describe_table", table="sales").structured == {
        "what": "VARCHAR",
        "price": "VARCHAR",
    }
    found = do(
        environment,
        "run_sql",
        query="SELECT name, country FROM people JOIN cities USING (city) ORDER BY age DESC LIMIT 1",
    )
    assert found.structured == {"columns": ["name", "country"], "rows": [["Bo", "Peru"]]}


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE people",
        "COPY people TO '/tmp/adp-attack.csv'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "WITH x AS (COPY people TO '/tmp/adp-attack.csv') SELECT 1",
        "ATTACH '/tmp/adp-attack.db'",
        "INSTALL httpfs",
        "SET memory_limit='100GB'",
        "SELECT 1; SELECT 2",
        "SELECT FROM WHERE",
    ],
)
def test_what_is_more_than_reading_is_refused(folder, query, tmp_path):
    assert do(make(folder), "run_sql", query=query).error == ErrorType.EXECUTION


def test_long_queries_and_large_answers_are_cut(folder):
    environment = make(folder, seconds=0.5, rows=3, cell=4)
    late = (
        "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE (a.range * b.range) % 7 = 1"
    )
    assert do(environment, "run_sql", query=late).error == ErrorType.TIMEOUT
    many = do(environment, "run_sql", query="SELECT 'abcdefgh' AS t FROM range(1000000)")
    assert many.structured["rows"] == [["abcd..."]] * 3
    assert many.structured["note"] == "only the first 3 rows are shown"
    big = "SELECT list(range) FROM range(100000000)"
    assert do(make(folder, memory="64MB"), "run_sql", query=big).error == ErrorType.EXECUTION


def test_steps_and_their_forks(folder):
    environment = make(folder, style="slot_filling")
    rows = do(
        environment, "filter_data", data="people", column="age", condition="less_than", value=60
    )
    assert rows.structured["data"] == "result_1"
    joined = {"left": "result_1", "right": "cities", "left_column": "city", "right_column": "city"}
    do(environment, "join_data", **joined)
    other = environment.fork()
    where = {"column": "country", "condition": "equal_to", "value": "Fin'land"}
    do(environment, "filter_data", data="result_2", **where)
    do(environment, "sort_data", data="result_3", column="age", descending=True)
    shown = do(environment, "select_columns", data="result_4", columns=["name"])
    assert do(environment, "retrieve_data", data=shown.structured["data"]).structured["rows"] == [
        ["Ada"],
        ["Cy"],
    ]
    assert do(other, "retrieve_data", data="result_3").error == ErrorType.INVALID_ARGS
    assert do(environment, "filter_data", data="nothing", **where).error == ErrorType.INVALID_ARGS
    assert do(environment, "sort_data", data="people", column="no").error == ErrorType.EXECUTION


@given(
    condition=st.sampled_from(["equal_to", "less_than", "greater_or_equal", "not_equal_to"]),
    value=st.integers(-5, 80),
    group=st.booleans(),
)
def test_steps_of_selection_are_what_polars_says(folder, condition, value, group):
    environment = make(folder, style="selection")
    kept = do(environment, f"filter_{condition}", data="people", column="age", value=value)
    by = {"group_by": ["city"]} if group else {}
    number = do(
        environment, "compute_count", data=kept.structured["data"], column="age", **by
    ).structured["data"]
    age = pl.col("age")
    test = {
        "equal_to": age == value,
        "less_than": age < value,
        "greater_or_equal": age >= value,
        "not_equal_to": age != value,
    }[condition]
    frame = PEOPLE.filter(test)
    wanted = (
        [list(row) for row in frame.group_by("city").len().sort("city").rows()]
        if group
        else [[frame.height]]
    )
    assert do(environment, "retrieve_data", data=number).structured["rows"] == wanted


@given(text=st.text(max_size=30), column=st.text(max_size=10))
def test_no_text_breaks_out_of_its_quotes(folder, text, column):
    environment = make(folder, style="slot_filling")
    where = {"data": "people", "condition": "equal_to", "value": text}
    found = do(environment, "filter_data", column="name", **where)
    assert found.error in (None, ErrorType.EXECUTION, ErrorType.PARSING)
    if found.error is None:
        rows = do(environment, "retrieve_data", data="result_1").structured["rows"]
        assert rows == [list(row) for row in PEOPLE.rows() if row[0] == text]
    do(environment, "filter_data", column=column, **where)


def test_what_cannot_be_read_is_said(tmp_path):
    with pytest.raises(UsageError, match="holds no table"):
        make(tmp_path)
    with pytest.raises(InputError, match="is not there"):
        make(tmp_path / "none")
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read as a table"):
        make(tmp_path)
