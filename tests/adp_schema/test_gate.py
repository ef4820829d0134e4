from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adp_schema import gate_engine
from adp_schema.errors import QueryError, QueryTimeoutError, StoreError
from adp_schema.gate import QueryGate
from adp_schema.gate_files import ExtraView, StoreFiles
from adp_schema.views import VIEWS
from tests.shards import write_shards


def shard(first: int, count: int = 3, dataset: str = "d") -> dict[str, list[dict[str, Any]]]:
    """Some trajectories of two steps; the second makes a call that has a result."""
    seqs = range(first, first + count)
    key = {seq: {"seq": seq, "trajectory_id": f"{dataset}/{seq}"} for seq in seqs}
    return {
        "trajectories": [{**key[seq], "dataset": dataset, "task_id": "t"} for seq in seqs],
        "steps": [{**key[seq], "step": n, "text": f"{seq}:{n}"} for seq in seqs for n in (0, 1)],
        "tool_calls": [{**key[seq], "step": 1, "call": 0, "name": "bash"} for seq in seqs],
        "observations": [
            {**key[seq], "step": 1, "order": 0, "call_step": 1, "call": 0, "text": f"out {seq}"}
            for seq in seqs
        ],
    }


@pytest.fixture
def files(tmp_path: Path) -> dict[str, list[str]]:
    return write_shards(tmp_path / "store", shard(0), shard(100))


@pytest.fixture
def gate(files: dict[str, list[str]]) -> Iterator[QueryGate]:
    with QueryGate(files) as opened:
        yield opened


def value_of(gate: QueryGate, sql: str, parameters: Any = None) -> Any:
    """The only value of the only row."""
    (row,) = gate.query(sql, parameters).to_pylist()
    (value,) = row.values()
    return value


def refusal(gate: QueryGate, sql: str, parameters: Any = None) -> str:
    """The message of the error, which must be one line without a Python or engine class name."""
    with pytest.raises(QueryError) as caught:
        gate.query(sql, parameters)
    message = str(caught.value)
    assert "\n" not in message
    assert "Error:" not in message
    return message


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT count(*) FROM steps", 12),
        ("FROM steps SELECT count(*)", 12),
        ("WITH x AS (SELECT seq FROM steps) SELECT count(DISTINCT seq) FROM x", 6),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9)"
         " SELECT max(i) FROM n", 9),
        ("VALUES (42)", 42),
        ("(SELECT 1) INTERSECT (SELECT 1)", 1),
        ("SELECT 1;", 1),
        (";;SELECT 1;;", 1),
        ("-- COPY\n/* ; DROP */ SELECT 1 -- ; SELECT 2", 1),
        ("SELECT 'COPY x TO ''/tmp/y''; DROP'", "COPY x TO '/tmp/y'; DROP"),
        ('SELECT 1 AS "copy"', 1),
        ("SELECT sum(i)::INT FROM range(4) t(i)", 6),
        ("SELECT value FROM json_each('[7]')", "7"),
        ("SELECT unnest([5])", 5),
        ("SELECT x FROM unnest([6]) t(x)", 6),
        ("SELECT list_sum([x + 1 FOR x IN [1, 2]])::INT", 5),
        ("SELECT count(*) FROM steps SEMI JOIN tool_calls USING (seq, step)", 6),
        ("SELECT bash FROM (SELECT name FROM calls) PIVOT (count(*) FOR name IN ('bash'))", 6),
        ("SELECT column_name FROM (DESCRIBE calls) WHERE column_name = 'language'", "language"),
        ("SELECT count(*) FROM information_schema.tables WHERE table_name = 'attempts'", 1),
        ("SELECT current_setting('TimeZone')", "UTC"),
    ],
)  # fmt: skip
def test_what_reads_passes(gate: QueryGate, sql: str, value: object) -> None:
    assert value_of(gate, sql) == value


@pytest.mark.parametrize("sql", ["SHOW TABLES", "DESCRIBE steps", "SUMMARIZE trajectories"])
def test_looking_around_passes(gate: QueryGate, sql: str) -> None:
    assert gate.query(sql).num_rows > 5


@pytest.mark.parametrize(
    "sql",
    ["EXPLAIN SELECT 1", "explain analyze SELECT 1", "/* a */ EXPLAIN -- b\n ANALYZE\nSELECT 1;"],
)
def test_explain_of_a_select_passes(gate: QueryGate, sql: str) -> None:
    assert gate.query(sql).column_names == ["explain_key", "explain_value"]


def test_parameters(gate: QueryGate) -> None:
    sql = "SELECT text FROM steps WHERE trajectory_id = {} AND step = {}"
    assert value_of(gate, sql.format("?", "?"), ["d/101", 1]) == "101:1"
    assert value_of(gate, sql.format("$id", "$step"), {"id": "d/101", "step": 1}) == "101:1"
    hostile = "'; COPY steps TO 'x'; --"
    assert value_of(gate, "SELECT ?", [hostile]) == hostile
    assert "parameters: 1" in refusal(gate, "SELECT ?")
    assert "Expected 0, got 1" in refusal(gate, "SELECT 1", [1])
    refusal(gate, "SELECT ?", [object()])


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT * FROM step", "unknown table 'step'; did you mean steps?"),
        ("SELECT txt FROM steps", "unknown column 'txt'; did you mean text?"),
        ("SELECT s.txt FROM steps s", "unknown column 'txt'; did you mean text?"),
        ("SELECT 1 FROM steps JOIN calls USING (sep)", "unknown column 'sep'; did you mean step or"
         " seq?"),
        ("SELECT lenght(text) FROM steps", 'Scalar Function with name lenght does not exist; did'
         ' you mean "length"?'),
        ("SELECT 1 frm x", 'syntax error at or near "x" (line 1, column 14)'),
        ("SELECT\n  1,\n  a b c", 'syntax error at or near "c" (line 3, column 7)'),
        ("SELECT '" + "x" * 200 + "', 1 frm x", 'syntax error at or near "x" (line 1)'),
        ("SELECT 'a", "unterminated string literal (line 1, column 8)"),
        ("SELECT CAST('x' AS INT)", "Could not convert string 'x' to INT32 (line 1, column 8)"),
        ("SELECT error('two\nlines')", "two"),
        ("SELECT '\ud800'", "the query has half a character at position 9"),
    ],
    ids=lambda text: text[:30] if isinstance(text, str) else None,
)  # fmt: skip
def test_a_fault_is_one_sentence(gate: QueryGate, sql: str, message: str) -> None:
    assert refusal(gate, sql).startswith(message) or message in refusal(gate, sql)


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        ("", "not no statements"),
        ("-- nothing", "not no statements"),
        ("SELECT 1; SELECT 2", "not 2 statements"),
        ("SET threads = 1", "not SET"),
        ("UPDATE EXTENSIONS", "not OTHER"),
        ("PIVOT calls ON name", "FROM t PIVOT"),
        ("EXPLAIN (FORMAT json) SELECT 1", "without options"),
        ("FROM read_csv('x')", "may not read from read_csv()"),
    ],
)
def test_a_refusal_says_what_is_allowed(gate: QueryGate, sql: str, part: str) -> None:
    message = refusal(gate, sql)
    assert part in message
    assert message.startswith(("a query is one SELECT", "a query may not read from"))


def test_batches_come_one_by_one(gate: QueryGate) -> None:
    with gate.batches("SELECT i, repeat('x', 1000) FROM range(1000000000000) t(i)") as reader:
        assert reader.schema.names[0] == "i"
        first = reader.read_next_batch()
        assert 0 < first.num_rows <= 4096
    assert value_of(gate, "SELECT 1") == 1


def test_a_fault_in_a_running_query_is_one_sentence(gate: QueryGate) -> None:
    sql = "SELECT if(i = 500000, error('boom'), i) FROM range(1000000) t(i)"
    reader = gate.batches(sql)
    with pytest.raises(QueryError, match=r"^boom$"):
        for _ in reader:
            pass


def test_no_rows_still_have_a_schema(gate: QueryGate) -> None:
    reader = gate.batches("SELECT step, text FROM steps WHERE false")
    assert reader.schema.names == ["step", "text"]
    assert reader.read_all().num_rows == 0


def test_one_gate_serves_many_threads(gate: QueryGate) -> None:
    def ask(seq: int) -> Any:
        return value_of(gate, "SELECT text FROM calls_with_results, steps WHERE steps.seq = ? AND"
                   " steps.seq = calls_with_results.seq AND steps.step = 0", [seq])  # fmt: skip

    seqs = [0, 1, 2, 100, 101, 102] * 10
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, seqs)) == [f"{seq}:0" for seq in seqs]


def test_a_result_can_be_read_while_another_query_runs(gate: QueryGate) -> None:
    outer = gate.batches("SELECT i FROM range(100000) t(i)")
    first = outer.read_next_batch().num_rows
    assert value_of(gate, "SELECT count(*) FROM steps") == 12
    assert first + outer.read_all().num_rows == 100_000


def test_trusted_statements_give_what_queries_give(
    gate: QueryGate, files: dict[str, list[str]]
) -> None:
    sql = """
        SELECT s.step, count(*) AS n, arg_min({'seq': s.seq, 'text': s.text}, s.seq, 2) AS first
        FROM steps s JOIN calls_with_results c ON c.seq = s.seq GROUP BY s.step ORDER BY s.step"""
    rows = gate.trusted(sql)
    assert rows == gate.query(sql).to_pylist()
    assert rows[1]["first"] == [{"seq": 0, "text": "0:1"}, {"seq": 1, "text": "1:1"}]
    with pytest.raises(QueryError, match="txet") as caught:
        gate.trusted("SELECT txet FROM steps")
    assert "\n" not in str(caught.value)
    with pytest.raises(QueryError):  # the engine is shut
        gate.trusted(f"SELECT * FROM read_parquet('{Path(files['steps'][0]).parent}/../*')")
    Path(files["observations"][0]).write_bytes(b"torn")
    with QueryGate(files) as other, pytest.raises(StoreError):
        other.trusted("SELECT count(*) FROM observations")
    gate.close()
    with pytest.raises(QueryError, match="closed"):
        gate.trusted("SELECT 1")


def test_a_closed_gate_says_so(files: dict[str, list[str]]) -> None:
    gate = QueryGate(files)
    gate.close()
    gate.close()
    assert refusal(gate, "SELECT 1") == "this query gate is closed"


def test_memory_is_limited_and_a_folder_helps(files: dict[str, list[str]], tmp_path: Path) -> None:
    sql = "SELECT max(n) FROM (SELECT i, count(*) AS n FROM range(6000000) t(i) GROUP BY i)"
    with QueryGate(files, memory_limit="60MB", threads=2) as gate:
        assert "more memory than 60MB" in refusal(gate, sql)
        assert value_of(gate, "SELECT count(*) FROM steps") == 12
    folder = tmp_path / "spill"
    folder.mkdir()
    with QueryGate(files, memory_limit="60MB", threads=2, temp_directory=str(folder)) as gate:
        assert value_of(gate, sql) == 1
        assert len(list(folder.iterdir())) == 1
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"memory_limit": "plenty"}, "the query engine does not start"),
        ({"threads": -1}, "the query engine does not start"),
        ({"temp_directory": "/nowhere/at/all"}, "cannot use /nowhere/at/all for temporary files"),
    ],
)
def test_a_wrong_option_is_one_sentence(options: dict[str, Any], part: str) -> None:
    with pytest.raises(QueryError, match=part) as caught:
        QueryGate({}, **options)
    assert "\n" not in str(caught.value)


def test_a_missing_or_damaged_shard_is_one_sentence(files: dict[str, list[str]]) -> None:
    Path(files["steps"][0]).write_bytes(b"no parquet at all")
    with QueryGate(files) as gate:
        with pytest.raises(StoreError, match="cannot read the table 'steps': ") as caught:
            gate.query("SELECT count(*) FROM calls JOIN steps USING (seq)")
        with pytest.raises(StoreError, match="cannot read the table 'steps': "):
            gate.query("SHOW TABLES")
        Path(files["steps"][0]).unlink()
        with pytest.raises(StoreError, match=r"the table 'steps': .* is missing"):
            gate.query("SELECT 1 FROM transcript")
        assert value_of(gate, "SELECT count(*) FROM calls")
    assert "\n" not in str(caught.value)
    with pytest.raises(StoreError, match="unknown table 'stepz'; did you mean steps"):
        QueryGate({"stepz": []})


SOME = ["SELECT count(*) FROM steps", "WITH steps AS (FROM steps) FROM steps", "DESCRIBE steps"]
ALL = [
    "SHOW TABLES",
    "SHOW steps",
    "SELECT table_name FROM information_schema.tables",
    "FROM sqlite_master",
    "SELECT table_name, column_name FROM duckdb_columns()",
    "FROM histogram(steps, seq)",
    "FROM main.steps",
    "FROM no_such_table",
]


@pytest.mark.parametrize("sql", [*SOME, *ALL])
def test_views_are_there_when_they_are_named(files: dict[str, list[str]], sql: str) -> None:
    """A query that may look at all views finds all of them, as if they had been there before."""

    def views(gate: QueryGate) -> list[str]:
        cursor = gate._cursor()
        rows = cursor.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        return sorted(name for (name,) in rows)

    def answer(gate: QueryGate) -> object:
        try:
            return sorted(map(repr, gate.query(sql).to_pylist()))
        except QueryError as error:
            return str(error)

    with QueryGate(files) as lazy, QueryGate(files) as whole:
        assert views(lazy) == []
        whole.query("SHOW TABLES")
        assert views(whole) == sorted(VIEWS)
        assert answer(lazy) == answer(whole)
        assert views(lazy) == (["steps"] if sql in SOME else sorted(VIEWS))


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_comes_with_those_that_it_reads(files: dict[str, list[str]], name: str) -> None:
    with QueryGate(files) as gate:
        columns = gate.query(f'FROM "{name.upper()}"').column_names
    assert columns == list(VIEWS[name].columns)


def test_a_shard_that_goes_missing_later_is_one_sentence(
    gate: QueryGate, files: dict[str, list[str]]
) -> None:
    assert value_of(gate, "SELECT count(*) FROM steps") == 12
    Path(files["steps"][1]).unlink()
    refusal(gate, "SELECT sum(length(text)) FROM steps")


@pytest.mark.parametrize(
    "name", ["dataset=other", "it's", "a[1]", "b*", "c?", "d{e,f}", "g h", "ü%20"]
)
def test_any_folder_name_will_do(tmp_path: Path, name: str) -> None:
    for decoy in ("a1", "bb", "cc"):
        write_shards(tmp_path / decoy, shard(900))
    files = write_shards(tmp_path / name, shard(0), shard(100))
    with QueryGate(files) as gate:
        assert value_of(gate, "SELECT count(*) FROM steps") == 12
        assert value_of(gate, "SELECT DISTINCT dataset FROM trajectories") == "d"


def test_relative_paths_and_file_urls(
    files: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    relative = {table: [os.path.relpath(path) for path in paths] for table, paths in files.items()}
    dotted = {table: [f"store/../{path}" for path in paths] for table, paths in relative.items()}
    urls = {table: [f"file://{path}" for path in paths] for table, paths in files.items()}
    for spelled in (relative, dotted, urls):
        with QueryGate(spelled) as gate:
            monkeypatch.chdir("/")
            assert value_of(gate, "SELECT count(*) FROM steps") == 12
            monkeypatch.chdir(tmp_path)


def test_a_store_behind_a_link(files: dict[str, list[str]], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "store")
    linked = {
        table: [path.replace("/store/", "/link/") for path in paths]
        for table, paths in files.items()
    }
    with QueryGate(linked) as gate:
        assert value_of(gate, "SELECT count(*) FROM steps") == 12


@pytest.fixture
def remote(files: dict[str, list[str]]) -> Iterator[dict[str, list[str]]]:
    """The store in fsspec's memory, with a file beside it that is none of its shards."""
    memory = fsspec.filesystem("memory")
    urls: dict[str, list[str]] = {}
    for table, paths in files.items():
        for path in paths:
            url = f"/remote/{table}/{Path(path).name}"
            memory.pipe_file(url, Path(path).read_bytes())
            urls.setdefault(table, []).append(f"memory:/{url}")
    memory.pipe_file("/remote/other.parquet", Path(files["steps"][0]).read_bytes())
    yield urls
    memory.rm("/remote", recursive=True)


def test_a_store_behind_a_url(remote: dict[str, list[str]], files: dict[str, list[str]]) -> None:
    with QueryGate(remote) as gate:
        assert value_of(gate, "SELECT count(*) FROM calls_with_results") == 6
        assert "disabled" in refusal(gate, "FROM 'memory://remote/other.parquet'")
    with QueryGate([("far", remote), ("near", files)]) as gate:
        assert value_of(gate, "SELECT count(*) FROM steps") == 24


@pytest.mark.parametrize("url", ["nothing://a/b.parquet", "memory://a/missing.parquet"])
def test_a_url_that_cannot_be_opened_is_one_sentence(url: str) -> None:
    with pytest.raises(StoreError, match=r"cannot (open|read)") as caught:
        QueryGate({"steps": [url]}).query("FROM steps")
    assert "\n" not in str(caught.value)


def test_several_stores(tmp_path: Path) -> None:
    a = write_shards(tmp_path / "a", shard(0), shard(100))
    b = write_shards(tmp_path / "b", shard(0, dataset="e"))
    with QueryGate([("a", a), ("b", b), ("empty", {})]) as gate:
        assert gate.query(
            "SELECT store, count(*) AS n, min(seq) AS first FROM trajectories"
            " GROUP BY store ORDER BY store"
        ).to_pylist() == [
            {"store": "a", "n": 6, "first": 0},
            {"store": "b", "n": 3, "first": 1 << 50},
        ]
        joined = (
            "SELECT count(*) FROM steps s JOIN trajectories t USING (seq)"
            " WHERE s.trajectory_id <> t.trajectory_id"
        )
        assert value_of(gate, joined) == 0
        assert value_of(gate, "SELECT count(*) FROM calls_with_results WHERE result IS NULL") == 0
        assert value_of(gate, "SELECT count(*) FROM calls_with_results") == 9
        assert (
            value_of(gate, f"SELECT text FROM steps WHERE seq = {(1 << 50) + 2} AND step = 1")
            == "2:1"
        )
        assert gate.query("DESCRIBE steps")["column_name"][-1].as_py() == "extra"
    with QueryGate([("only", a)]) as gate:
        assert value_of(gate, "SELECT DISTINCT store FROM all_trajectories") == "only"
    with QueryGate([]) as gate:
        assert value_of(gate, "SELECT count(*) FROM attempts") == 0


def test_files_of_an_older_version(tmp_path: Path, files: dict[str, list[str]]) -> None:
    (path, _) = files["tool_calls"]
    old = pq.read_table(path).drop_columns(["extra", "duration_ms"])
    names = ["tool" if name == "name" else name for name in old.column_names]
    older = tmp_path / "older.parquet"
    pq.write_table(old.rename_columns(names), older)
    renamed = {"tool_calls": {"tool": "name", "never_there": "arguments_raw"}}
    ask = "SELECT name, extra, seq FROM calls LIMIT 1"
    expected = {"name": "bash", "extra": None, "seq": 0}
    with QueryGate({"tool_calls": [str(older)]}, renamed=renamed) as gate:
        assert gate.query(ask).to_pylist() == [expected]
    with QueryGate([StoreFiles("x", {"tool_calls": [str(older)]}, renamed), ("y", files)]) as gate:
        assert gate.query(ask).to_pylist() == [expected]
        assert value_of(gate, "SELECT count(*) FROM calls WHERE name = 'bash'") == 9


def test_time_is_utc_wherever_the_machine_is(files: dict[str, list[str]]) -> None:
    code = (
        "import json, sys; from adp_schema.gate import QueryGate;"
        "gate = QueryGate(json.loads(sys.argv[1]));"
        "print(gate.query(\"SELECT '2024-01-01 00:00:00+00'::TIMESTAMPTZ::VARCHAR AS t\")['t'][0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(files)],
        env={**os.environ, "TZ": "America/New_York"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "2024-01-01 00:00:00+00"


def test_importing_the_package_does_not_load_duckdb() -> None:
    code = "import sys, adp_schema.gate, adp_schema.views; print('duckdb' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_an_interrupt_is_a_query_error(gate: QueryGate, monkeypatch: pytest.MonkeyPatch) -> None:
    cursors: list[duckdb.DuckDBPyConnection] = []
    cursor = gate._cursor

    def remember() -> duckdb.DuckDBPyConnection:
        cursors.append(cursor())
        return cursors[-1]

    monkeypatch.setattr(gate, "_cursor", remember)
    done = threading.Event()

    def interrupt() -> None:
        while not done.wait(0.1):  # one that comes before the query begins is lost
            for item in cursors:
                item.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        assert "nterrupt" in refusal(gate, "SELECT count(*) FROM range(100000000000) t(i)")
    finally:
        done.set()
        thread.join()


def test_a_query_that_begins_after_its_time_is_stopped(
    gate: QueryGate, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = []
    serve = gate_engine._serve

    def busy(jobs):
        """A thread that does not get to work for a while."""
        late = queue.SimpleQueue()
        threading.Thread(target=serve, args=(late,), daemon=True).start()
        while (job := jobs.get()) is not None:
            time.sleep(0.3)
            job[0].add_done_callback(lambda done: stopped.append(done.exception()))
            late.put(job)
        late.put(None)

    monkeypatch.setattr(gate_engine, "_serve", busy)
    endless = "SELECT count(*) FROM range(20000000000) t(i)"
    with pytest.raises(QueryTimeoutError):
        gate.batches(endless, seconds=1).read_all()
    assert isinstance(stopped[-1], duckdb.InterruptException)


def test_closing_with_a_query_half_read(files: dict[str, list[str]], tmp_path: Path) -> None:
    gate = QueryGate(files)
    reader = gate.batches("SELECT i FROM range(100000000) t(i)")
    reader.read_next_batch()
    gate.close()
    shutil.rmtree(tmp_path / "store")
    assert "closed" in refusal(gate, "SELECT 1")
    assert reader.schema.names == ["i"]


@pytest.mark.parametrize("depth", [900, 20_000])
def test_deep_expressions_run_or_are_refused_in_a_sentence(gate: QueryGate, depth: int):
    """How deep the parser of JSON goes differs between versions of Python."""
    rows, message = None, ""
    try:
        rows = gate.query("SELECT " + "+".join("1" * depth) + " AS n").to_pylist()
    except QueryError as error:
        message = str(error)
    assert rows == [{"n": depth}] or (message and "\n" not in message)


def test_views_of_stores_and_analysis_can_be_left_out(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "mine.parquet")
    extra = [ExtraView("mine", str(tmp_path / "mine.parquet"))]
    with QueryGate({}, extra=extra, store_views=False) as gate:
        assert gate.query("SHOW TABLES").to_pydict() == {"name": ["mine"]}
        with pytest.raises(QueryError, match="mine"):
            gate.query("SELECT * FROM trajectories")
        assert gate.batches("EXPLAIN ANALYZE FROM mine").read_all().num_rows
        with pytest.raises(QueryError, match="not allowed here"):
            gate.batches("explain /* x */ analyze FROM mine", analyze=False)
        assert gate.batches("EXPLAIN FROM mine", analyze=False).read_all().num_rows


def test_gates_share_what_was_checked_and_nothing_else(
    files: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adp_schema.gate.CHECKED_LIMIT", 2)
    statements = [
        "SELECT count(*) FROM steps",
        "EXPLAIN ANALYZE SELECT 1",
        "SELECT 1",
        "FROM tasks",
    ]
    for opened in (QueryGate(files), QueryGate({})):
        with opened as gate:
            assert [gate.query(sql).num_rows for sql in statements] == [1, 1, 1, 0]
            for _ in range(2):
                assert "not DELETE" in refusal(gate, "DELETE FROM steps")
                with pytest.raises(QueryError, match="EXPLAIN ANALYZE is not allowed here"):
                    gate.batches(statements[1], analyze=False)
    with QueryGate(files) as gate:
        assert value_of(gate, statements[0]) == 12
    with QueryGate({}) as gate:
        assert value_of(gate, statements[0]) == 0
