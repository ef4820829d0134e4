"""Tables as an environment: what can be asked, and what cannot be done."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import polars as pl
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.environments.sql import KIND
from adp.rollouts.environments.sql_settings import SqlSettings
from adp.rollouts.turns import Call, ErrorType, Turn
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
    # How long a query may take is tried by those tests that say it.
    environment = KIND.make(SqlSettings(tables=folder, **({"seconds": 600.0} | settings)))
    environment.reset(TASK)
    return environment


def do(environment, name, **arguments):
    outcome = environment.step(Turn(calls=(Call(name, json.dumps(arguments), "c"),)))
    return outcome.results[0]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_what_stands_between_cells_is_recognised(tmp_path, separator):
    frame = pl.DataFrame({"a;b": ["1,5", "x\ty"], "c": [1, 2]})
    frame.write_csv(tmp_path / "t.csv", separator=separator)
    result = do(make(tmp_path), "run_sql", query='SELECT "a;b", c FROM t ORDER BY c')
    assert result.structured["rows"] == [["1,5", 1], ["x\ty", 2]]


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
    result = do(
        environment,
        "run_sql",
        query="SELECT name, country FROM people JOIN cities USING (city) ORDER BY age DESC LIMIT 1",
    )
    assert result.structured == {"columns": ["name", "country"], "rows": [["Bo", "Peru"]]}


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
    environment = make(folder, rows=3, cell=4)
    many = do(environment, "run_sql", query="SELECT 'abcdefgh' AS t FROM range(1000000)")
    assert many.structured["rows"] == [["abcd..."]] * 3
    assert many.structured["note"] == "only the first 3 rows are shown"
    big = "SELECT list(range) FROM range(100000000)"
    assert do(make(folder, memory="64MB"), "run_sql", query=big).error == ErrorType.EXECUTION


def test_what_cannot_be_interrupted_is_ended(folder):
    environment = make(folder, seconds=0.3)
    # The engine is inside of one function for minutes.
    slow = "SELECT levenshtein(repeat('a', 1000000), repeat('b', 1000000))"
    result = do(environment, "run_sql", query=slow)
    assert result.error == ErrorType.TIMEOUT
    assert "longer than 0.3 s" in result.text
    # The tables, and the processes that answer, are those of the first one.
    rows = do(make(folder), "run_sql", query="SELECT count(*) AS n FROM people").structured
    assert rows == {"columns": ["n"], "rows": [[4]]}


@pytest.mark.parametrize(
    "large",
    [
        "SELECT length(repeat('x', 2000000000) || repeat('y', 2000000000))",
        "SELECT max(length(repeat(chr(97 + range::INT), 900000000))) FROM range(3)",
        "SELECT list(range) FROM range(300000000)",
    ],
)
def test_memory_that_the_engine_does_not_count_is_limited(folder, large):
    environment = make(folder, memory="64MB")
    result = do(environment, "run_sql", query=large)
    assert result.error == ErrorType.EXECUTION
    assert "memory" in result.text
    assert do(environment, "run_sql", query="SELECT 1 AS n").structured["rows"] == [[1]]


def test_a_query_that_is_run_to_be_explained_is_refused(folder):
    for query in ("EXPLAIN ANALYZE SELECT 1", "/* a */ explain -- b\n analyze from people"):
        result = do(make(folder), "run_sql", query=query)
        assert result.error == ErrorType.EXECUTION
        assert "write EXPLAIN" in result.text
    assert do(make(folder), "run_sql", query="EXPLAIN SELECT 1").error is None


def test_only_the_tables_of_the_user_are_there(folder):
    environment = make(folder)
    for query, column in (
        ("SHOW TABLES", 0),
        ("SELECT name FROM sqlite_master ORDER BY name", 0),
        ("SELECT table_name FROM information_schema.tables ORDER BY 1", 0),
        ("SELECT DISTINCT table_name FROM duckdb_columns() WHERE NOT internal ORDER BY 1", 0),
    ):
        rows = do(environment, "run_sql", query=query).structured["rows"]
        assert [row[column] for row in rows] == ["cities", "people", "sales"], query
    unknown = do(environment, "run_sql", query="SELECT * FROM trajectorie").text
    assert "trajectories" not in unknown


def test_values_of_all_kinds_are_shown_or_said_not_to_be(folder):
    environment = make(folder)
    both = do(environment, "run_sql", query="SELECT name AS n, age AS n FROM people LIMIT 1")
    assert both.structured["rows"] == [["Ada", 36]]
    kinds = "SELECT 1.5::DECIMAL(5, 2), [1, 2], {'a': NULL}, 'inf'::DOUBLE, 'ab'::BLOB, NULL"
    assert do(environment, "run_sql", query=kinds).structured["rows"] == [
        ["1.50", "[1, 2]", "{'a': None}", "inf", "b'ab'", None]
    ]
    late = do(environment, "run_sql", query="SELECT DATE '99999-01-01'")
    assert late.error == ErrorType.EXECUTION
    assert "cannot be shown" in late.text


def test_many_threads_ask_at_the_same_time(folder):
    def asked(number):
        query = f"SELECT {number} + count(*) AS n FROM people"
        return do(make(folder), "run_sql", query=query).structured["rows"]

    with ThreadPoolExecutor(12) as pool:
        assert list(pool.map(asked, range(48))) == [[[number + 4]] for number in range(48)]


def test_no_process_is_left_behind(folder):
    code = f"""
import json, os, psutil, signal, sys, threading, time
from adp.rollouts.environments.sql import KIND
from adp.rollouts.environments.sql_settings import SqlSettings
from adp.rollouts.turns import Call, Turn
from adp_schema.model import Task
environment = KIND.make(SqlSettings(tables={str(folder)!r}, seconds=60))
environment.reset(Task(task_id="t", instruction="Who?"))
slow = "SELECT levenshtein(repeat('a', 1000000), repeat('b', 1000000))"
call = Turn(calls=(Call("run_sql", json.dumps({{"query": slow}}), "c"),))
(worker,) = psutil.Process().children()
before = worker.cpu_times().user
threading.Thread(target=environment.step, args=(call,), daemon=True).start()
while worker.cpu_times().user < before + 0.1:
    time.sleep(0.02)
print(worker.pid, flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(0)
"""
    for how in ("ends", "killed"):
        done = subprocess.run(
            [sys.executable, "-c", code, how],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert done.stdout, done.stderr
        with suppress(psutil.NoSuchProcess):
            psutil.Process(int(done.stdout)).wait(120)
        assert not psutil.pid_exists(int(done.stdout)), how


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
    result = do(environment, "filter_data", column="name", **where)
    assert result.error in (None, ErrorType.EXECUTION, ErrorType.PARSING)
    if result.error is None:
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


def test_tables_of_a_killed_process_are_swept(folder, tmp_path, monkeypatch):
    import tempfile

    base = tmp_path / "temporary"
    base.mkdir()
    code = f"""
import os, signal
from pathlib import Path
from adp.rollouts.environments.sql_tables import Tables
tables = Tables.open(Path({str(folder)!r}), "100MB")
os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "TMPDIR": str(base)}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    subprocess.run([sys.executable, "-c", code], check=False, env=environment)
    (left,) = base.glob("adp-tables-*/")
    assert list(left.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(base))
    make(folder, memory="101MB")
    assert not left.exists()
    assert len(list(base.glob("adp-tables-*/"))) == 1
