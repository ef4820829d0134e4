"""SQL that tries to write, to read other files, or to change the engine.

Each attack must end as a QueryError of one line that shows nothing of the canary files, and must
leave every file as it was. The controls at the end run attacks without the gate, or with only
one of its walls, so that a test that could not fail would be noticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adp_schema import gate as gate_module
from adp_schema.errors import QueryError
from adp_schema.gate import QueryGate
from adp_schema.sql_statement import Checked, check
from tests.shards import write_shards

CANARY = "canary-7f3a"

canary_of_the_module = pa.table({"text": [CANARY]})

WRITES = {
    "copy over a shard": "COPY (SELECT 1 AS seq) TO '{shard}' (FORMAT parquet)",
    "copy over a shard, in place": "COPY (SELECT 1 AS seq) TO '{shard}'"
    " (FORMAT parquet, USE_TMP_FILE false)",
    "copy over a shard, overwrite": "COPY steps TO '{shard}' (FORMAT csv, OVERWRITE_OR_IGNORE)",
    "copy to a new file": "COPY steps TO '{out}/new.csv'",
    "copy to a relative file": "COPY steps TO 'new.csv'",
    "copy to a URL": "COPY steps TO 's3://bucket/new.csv'",
    "copy as a shell would": "COPY steps TO PROGRAM 'touch {out}/new'",
    "copy partitioned": "COPY steps TO '{out}/parts' (FORMAT parquet, PARTITION_BY (step))",
    "copy in a CTE": "WITH x AS (COPY (SELECT 1 AS seq) TO '{shard}' (FORMAT parquet)) SELECT 1",
    "copy in a CTE, in place": "WITH x AS (COPY (SELECT 1 AS seq) TO '{shard}'"
    " (FORMAT parquet, USE_TMP_FILE false)) SELECT 1",
    "copy in a CTE to a new file": "WITH x AS (COPY (SELECT 1) TO '{out}/new.csv') FROM x",
    "copy in a materialised CTE": "WITH x AS MATERIALIZED (COPY (SELECT 1) TO '{out}/n') FROM x",
    "copy in the second CTE": "WITH a AS (SELECT 1), b AS (COPY (SELECT 1) TO '{out}/n') FROM a",
    "copy in a CTE of a subquery": "SELECT (WITH x AS (COPY (SELECT 1) TO '{out}/n') SELECT 1)",
    "copy in a CTE of a CTE": "WITH a AS (WITH b AS (COPY (SELECT 1) TO '{out}/n') FROM b) FROM a",
    "copy in a CTE of a union": "SELECT 1 UNION ALL (WITH x AS (COPY (SELECT 1) TO '{out}/n')"
    " SELECT 2)",
    "copy in a CTE of describe": "DESCRIBE WITH x AS (COPY (SELECT 1) TO '{out}/n') SELECT 1",
    "copy in a CTE of summarize": "SUMMARIZE WITH x AS (COPY (SELECT 1) TO '{out}/n') SELECT 1",
    "copy in SQL text": "FROM query('WITH x AS (COPY (SELECT 1) TO ''{out}/n'') SELECT 1')",
    "explain analyze copy": "EXPLAIN ANALYZE COPY steps TO '{shard}' (FORMAT csv)",
    "explain copy": "EXPLAIN COPY steps TO '{out}/new.csv'",
    "explain analyze copy in a CTE": "EXPLAIN ANALYZE WITH x AS (COPY (SELECT 1) TO '{out}/n')"
    " SELECT 1",
    "explain analyze in brackets": "EXPLAIN (ANALYZE, FORMAT json) COPY steps TO '{out}/n'",
    "explain analyze behind comments": "/* SELECT */ EXPLAIN /* SELECT */ ANALYZE -- SELECT\n"
    " COPY steps TO '{out}/new.csv'",
    "attach a new file": "ATTACH '{out}/new.duckdb' AS other",
    "attach a file": "ATTACH '{secret}.txt' AS other",
    "export": "EXPORT DATABASE '{out}/export'",
    "import": "IMPORT DATABASE '{out}'",
    "install": "INSTALL httpfs",
    "force install": "FORCE INSTALL httpfs FROM 'http://localhost:1'",
    "insert in a CTE": "WITH x AS (INSERT INTO steps VALUES (1) RETURNING *) FROM x",
    "delete in a CTE": "WITH x AS (DELETE FROM steps RETURNING *) SELECT 1",
    "update in a CTE": "WITH x AS (UPDATE steps SET text = '' RETURNING *) SELECT 1",
    "second statement": "SELECT 1; COPY steps TO '{out}/new.csv'",
    "first statement": "COPY steps TO '{out}/new.csv'; SELECT 1",
    "second statement behind a comment": "SELECT 1 /* ; */ ; -- SELECT\nCOPY steps TO '{out}/n'",
    "second statement behind a zero": "SELECT 1\0; COPY steps TO '{out}/new.csv'",
    "statement in a broken comment": "/* /* */ COPY steps TO '{out}/new.csv' /* */ */",
    "statement behind a hidden line end": "-- SELECT 1\u2028\nCOPY steps TO '{out}/new.csv'",
    "statement behind a carriage return": "SELECT 1 --\r; COPY steps TO '{out}/new.csv'",
    "pivot": "PIVOT steps ON step",
    "log to a file": "FROM enable_logging('QueryLog', storage = 'file',"
    " storage_path = '{out}/log.csv')",
    "profile to a file": "FROM enable_profiling(save_location = '{out}/profile.json')",
    "pragma profile to a file": "PRAGMA profile_output = '{out}/profile.json'",
    "checkpoint": "CHECKPOINT",
    "checkpoint as a table": "FROM checkpoint()",
    "vacuum": "VACUUM",
}
"""Attacks that would write a file or change the engine."""

CHANGES = {
    "set": "SET enable_external_access = true",
    "set paths": "SET allowed_paths = ['{secret}.txt']",
    "set a folder": "SET temp_directory = '{out}'",
    "set a variable": "SET VARIABLE x = (SELECT content FROM read_text('{secret}.txt'))",
    "reset": "RESET lock_configuration",
    "load": "LOAD json",
    "load a file": "LOAD '{out}/evil.duckdb_extension'",
    "pragma": "PRAGMA database_list",
    "pragma call": "PRAGMA table_info('steps')",
    "pragma as a table": "FROM pragma_table_info('steps')",
    "pragma versions": "FROM pragma_version()",
    "prepare": "PREPARE p AS SELECT 1",
    "prepare copy": "PREPARE p AS COPY steps TO '{out}/new.csv'",
    "execute": "EXECUTE p",
    "deallocate": "DEALLOCATE p",
    "create a table": "CREATE TABLE t AS SELECT 1",
    "create a table from a file": "CREATE TABLE t AS FROM read_text('{secret}.txt')",
    "create a view": "CREATE OR REPLACE VIEW steps AS SELECT 1",
    "create a macro": "CREATE MACRO f() AS TABLE FROM read_text('{secret}.txt')",
    "create a function": "CREATE FUNCTION f(a) AS a + 1",
    "create a secret": "CREATE SECRET s (TYPE s3, KEY_ID 'k', SECRET 's')",
    "create a schema": "CREATE SCHEMA s",
    "create a type": "CREATE TYPE mood AS ENUM ('a')",
    "create a sequence": "CREATE SEQUENCE s",
    "drop": "DROP VIEW steps",
    "alter": "ALTER VIEW steps RENAME TO gone",
    "comment on": "COMMENT ON VIEW steps IS 'x'",
    "insert": "INSERT INTO steps VALUES (1)",
    "update": "UPDATE steps SET text = ''",
    "delete": "DELETE FROM steps",
    "truncate": "TRUNCATE steps",
    "merge": "MERGE INTO steps USING calls ON false WHEN NOT MATCHED THEN INSERT VALUES (1)",
    "copy from": "COPY steps FROM '{secret}.csv'",
    "call": "CALL pragma_version()",
    "call a writer": "CALL enable_logging()",
    "use": "USE system",
    "begin": "BEGIN TRANSACTION",
    "detach": "DETACH memory",
    "update extensions": "UPDATE EXTENSIONS",
    "analyze": "ANALYZE steps",
    "explain create": "EXPLAIN CREATE TABLE t AS SELECT 1",
    "explain analyze create": "EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1",
    "explain analyze set": "EXPLAIN ANALYZE SET threads = 1",
    "explain explain": "EXPLAIN EXPLAIN ANALYZE COPY steps TO '{out}/n'",
    "resource": "FROM create_external_resource('x')",
    "python function": "FROM python_map_function(1, 2)",
    "pointer": "FROM arrow_scan(1, 2, 3)",
    "pandas pointer": "FROM pandas_scan(1)",
}
"""Attacks that would change the engine, or are no query at all."""

READS = {
    "read_text": "SELECT content FROM read_text('{secret}.txt')",
    "read_blob": "SELECT content FROM read_blob('{secret}.txt')",
    "read_csv": "FROM read_csv('{secret}.csv')",
    "read_csv_auto": "FROM read_csv_auto('{secret}.csv')",
    "sniff_csv": "FROM sniff_csv('{secret}.csv')",
    "read_json": "FROM read_json('{secret}.json')",
    "read_ndjson": "FROM read_ndjson_objects('{secret}.json')",
    "read_parquet": "FROM read_parquet('{secret}.parquet')",
    "parquet_scan": "FROM parquet_scan(['{secret}.parquet'])",
    "read_duckdb": "FROM read_duckdb('{secret}.duckdb', table_name = 't')",
    "parquet_metadata": "FROM parquet_metadata('{secret}.parquet')",
    "parquet_schema": "FROM parquet_schema('{secret}.parquet')",
    "parquet_kv_metadata": "FROM parquet_kv_metadata('{secret}.parquet')",
    "parquet_file_metadata": "FROM parquet_file_metadata('{secret}.parquet')",
    "glob": "FROM glob('{dir}/*')",
    "glob of a pattern": "FROM glob('**')",
    "glob reader": "SELECT content FROM read_text('{dir}/*.txt')",
    "a name": "FROM '{secret}.parquet'",
    "a quoted name": 'FROM "{secret}.csv"',
    "a name of a json file": "FROM '{secret}.json'",
    "passwords": "FROM '/etc/passwd'",
    "passwords as text": "SELECT content FROM read_text('/etc/passwd')",
    "a relative name": "FROM 'canary.parquet'",
    "the folder above a shard": "FROM '{shard}/../../../canary.parquet'",
    "the folder above the store": "SELECT content FROM read_text('{store}/../canary.txt')",
    "dots": "FROM read_parquet('{store}/steps/./../../canary.parquet')",
    "slashes": "FROM read_parquet('{dir}//canary.parquet')",
    "a link": "FROM '{store}/steps/link.parquet'",
    "a link to text": "SELECT content FROM read_text('{store}/steps/link.txt')",
    "a file beside a shard": "FROM read_parquet('{store}/steps/extra.parquet')",
    "a pattern over shards": "FROM read_parquet('{store}/steps/*.parquet')",
    "home": "SELECT content FROM read_text('~/canary.txt')",
    "a file URL": "SELECT content FROM read_text('file://{secret}.txt')",
    "http": "FROM read_csv('http://localhost:1/x.csv')",
    "https": "FROM 'https://localhost:1/x.parquet'",
    "s3": "FROM read_parquet('s3://bucket/x.parquet')",
    "hugging face": "FROM 'hf://datasets/a/b/x.parquet'",
    "gzip": "FROM read_csv('{secret}.csv', compression = 'none')",
    "describe": "DESCRIBE FROM read_csv('{secret}.csv')",
    "describe a name": "DESCRIBE '{secret}.parquet'",
    "summarize": "SUMMARIZE FROM read_csv('{secret}.csv')",
    "summarize a name": "SUMMARIZE '{secret}.parquet'",
    "show": "SHOW '{secret}.parquet'",
    "explain": "EXPLAIN FROM read_csv('{secret}.csv')",
    "explain analyze": "EXPLAIN ANALYZE FROM read_csv('{secret}.csv')",
    "query()": "FROM query('FROM read_text(''{secret}.txt'')')",
    "query_table()": "FROM query_table('{secret}.parquet')",
    "query_table() of several": "FROM query_table(['steps', '{secret}.parquet'])",
    "histogram()": "FROM histogram('{secret}.parquet', text)",
    "serialised SQL": "FROM json_execute_serialized_sql(json_serialize_sql("
    "'FROM read_text(''{secret}.txt'')'))",
    "a scalar subquery": "SELECT (SELECT content FROM read_text('{secret}.txt'))",
    "a filter": "FROM steps WHERE text = (SELECT content FROM read_text('{secret}.txt'))",
    "exists": "SELECT EXISTS (FROM read_text('{secret}.txt'))",
    "a join": "SELECT content FROM steps, read_text('{secret}.txt')",
    "a lateral join": "SELECT content FROM steps, LATERAL read_text('{secret}.txt')",
    "a CTE": "WITH x AS (FROM read_text('{secret}.txt')) SELECT content FROM x",
    "a recursive CTE": "WITH RECURSIVE x AS (SELECT '' AS content UNION ALL"
    " SELECT content FROM read_text('{secret}.txt')) SELECT content FROM x",
    "a union": "SELECT text FROM steps UNION ALL SELECT content FROM read_text('{secret}.txt')",
    "order": "FROM steps ORDER BY (SELECT content FROM read_text('{secret}.txt'))",
    "limit": "FROM steps LIMIT (SELECT size FROM read_text('{secret}.txt'))",
    "an argument": "FROM range((SELECT size FROM read_text('{secret}.txt')))",
    "unnest": "FROM unnest((SELECT [content] FROM read_text('{secret}.txt')))",
    "values": "VALUES ((SELECT content FROM read_text('{secret}.txt')))",
    "pivot": "FROM steps PIVOT (any_value((SELECT content FROM read_text('{secret}.txt')))"
    " FOR step IN (0))",
    "window": "SELECT max((SELECT content FROM read_text('{secret}.txt'))) OVER () FROM steps",
    "qualified": "SELECT content FROM system.main.read_text('{secret}.txt')",
    "quoted": "SELECT content FROM \"READ_TEXT\"('{secret}.txt')",
    "spaced": "SELECT content FROM read_text /* */ ('{secret}.txt')",
    "a local variable": "FROM canary_of_the_test",
    "a global variable": "FROM canary_of_the_module",
    "secrets": "FROM duckdb_secrets()",
    "which secret": "FROM which_secret('s3://x', 's3')",
    "environment": "SELECT getenv('CANARY')",
    "settings": "FROM duckdb_settings()",
    "logs": "FROM duckdb_logs()",
    "temporary files": "FROM duckdb_temporary_files()",
    "autocomplete": "FROM sql_auto_complete('SEL')",
}
"""Attacks that would read something that is no table of the store."""

ATTACKS = WRITES | CHANGES | READS


@dataclass
class Field:
    """A store with things beside it that nobody may touch."""

    root: Path
    files: dict[str, list[str]]

    def sql(self, attack: str) -> str:
        """Fill in the paths."""
        places = {
            "{shard}": self.files["steps"][0],
            "{store}": str(self.root / "store"),
            "{secret}": str(self.root / "canary"),
            "{dir}": str(self.root),
            "{out}": str(self.root / "out"),
        }
        for name, path in places.items():
            attack = attack.replace(name, path)
        return attack

    def state(self) -> dict[str, str]:
        """Every file and folder with the hash of its content."""
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            for path in sorted(self.root.rglob("*"))
        }


def canary_files(root: Path) -> None:
    """The canary in every form that the engine reads."""
    (root / "canary.txt").write_text(CANARY)
    (root / "canary.csv").write_text(f"text\n{CANARY}\n")
    (root / "canary.json").write_text(f'{{"text": "{CANARY}"}}\n')
    pq.write_table(canary_of_the_module, root / "canary.parquet")
    with duckdb.connect(str(root / "canary.duckdb")) as con:
        con.execute(f"CREATE TABLE t AS SELECT '{CANARY}' AS text")


def made_field(root: Path) -> Field:
    """A store, the canary files, links to them, and a folder to write to."""
    shard: dict[str, list[dict[str, Any]]] = {
        "trajectories": [{"seq": 1, "trajectory_id": "d/1"}],
        "steps": [{"seq": 1, "trajectory_id": "d/1", "step": n, "text": "x"} for n in (0, 1)],
    }
    files = write_shards(root / "store", shard, shard)
    (root / "out").mkdir()
    canary_files(root)
    steps = root / "store" / "steps"
    (steps / "link.parquet").symlink_to(root / "canary.parquet")
    (steps / "link.txt").symlink_to(root / "canary.txt")
    pq.write_table(canary_of_the_module, steps / "extra.parquet")
    return Field(root, files)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Field:
    """One for all attacks that must change nothing: to make it takes longer than an attack."""
    return made_field(tmp_path_factory.mktemp("field"))


@pytest.fixture(scope="module")
def gate(untouched: Field) -> Iterator[QueryGate]:
    """One for all attacks, so what an earlier one left in it would show."""
    with QueryGate(untouched.files) as shut:
        yield shut


@pytest.fixture
def field(untouched: Field, monkeypatch: pytest.MonkeyPatch) -> Field:
    return entered(untouched, monkeypatch)


@pytest.fixture
def changed_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Field:
    """One for a test that changes it."""
    return entered(made_field(tmp_path), monkeypatch)


def entered(field: Field, monkeypatch: pytest.MonkeyPatch) -> Field:
    monkeypatch.setenv("HOME", str(field.root))
    monkeypatch.setenv("CANARY", CANARY)
    monkeypatch.chdir(field.root)
    return field


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_an_attack_is_refused_and_leaves_no_trace(
    field: Field, gate: QueryGate, attack: str
) -> None:
    canary_of_the_test = pa.table({"text": [CANARY]})
    sql = field.sql(attack)
    settings = gate.query("FROM pg_settings").to_pylist()
    before = field.state()
    with pytest.raises(QueryError) as caught:
        gate.query(sql)
    assert field.state() == before
    assert CANARY not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert gate.query("SELECT count(*) AS n FROM steps").to_pylist() == [{"n": 4}]
    assert gate.query("FROM pg_settings").to_pylist() == settings
    assert canary_of_the_test.num_rows == 1


@pytest.mark.parametrize("attack", READS.values(), ids=READS)
def test_the_engine_alone_reads_no_other_file(
    field: Field, attack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the statement check off, the shut engine still shows nothing of the canary."""
    canary_of_the_test = pa.table({"text": [CANARY]})
    monkeypatch.setattr(gate_module, "check", lambda _, sql: Checked(sql, frozenset()))
    with QueryGate(field.files, temp_directory=str(field.root)) as gate:
        try:
            text = repr(gate.query(field.sql(attack)).to_pylist())
        except QueryError as error:
            text = str(error)
    assert CANARY not in text
    assert canary_of_the_test.num_rows == 1


@pytest.mark.parametrize("attack", [*WRITES.values(), *CHANGES.values()], ids=[*WRITES, *CHANGES])
def test_the_check_alone_runs_nothing(field: Field, attack: str) -> None:
    """The statement check refuses, or the parser does, before anything runs on an open engine."""
    before = field.state()
    with duckdb.connect() as con:
        con.execute("CREATE VIEW steps AS SELECT 1 AS step; CREATE VIEW calls AS SELECT 1 AS step")
        with pytest.raises((QueryError, duckdb.Error, RuntimeError)):
            check(con, field.sql(attack))
    assert field.state() == before


@pytest.mark.parametrize(
    "name",
    [
        "copy over a shard",
        "copy over a shard, in place",
        "copy to a new file",
        "copy to a relative file",
        "copy in a CTE",
        "copy in a CTE, in place",
        "copy in a materialised CTE",
        "copy in the second CTE",
        "explain analyze copy",
        "explain analyze copy in a CTE",
        "attach a new file",
        "export",
        "log to a file",
    ],
)
def test_control_without_the_gate_the_attack_writes(changed_field: Field, name: str) -> None:
    before = changed_field.state()
    with duckdb.connect() as con:
        con.execute(f"CREATE VIEW steps AS FROM read_parquet('{changed_field.files['steps'][0]}')")
        con.execute(changed_field.sql(WRITES[name])).fetchall()
        con.execute("SELECT 1").fetchall()
    assert changed_field.state() != before


@pytest.mark.parametrize("name", ["copy over a shard, in place", "copy in a CTE, in place"])
def test_control_the_shut_engine_alone_lets_a_shard_be_overwritten(
    changed_field: Field, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why the statement check is needed. If this fails, the engine has become stricter."""
    monkeypatch.setattr(gate_module, "check", lambda _, sql: Checked(sql, frozenset()))
    before = changed_field.state()
    with QueryGate(changed_field.files) as gate:
        gate.query(changed_field.sql(WRITES[name]))
    assert changed_field.state() != before


@pytest.mark.parametrize(
    "name",
    [
        "read_text",
        "read_csv",
        "read_json",
        "read_parquet",
        "a name",
        "a quoted name",
        "a relative name",
        "the folder above the store",
        "dots",
        "a link",
        "a link to text",
        "a file beside a shard",
        "home",
        "query()",
        "serialised SQL",
        "a CTE",
        "a local variable",
        "a global variable",
    ],
)
def test_control_without_the_gate_the_attack_reads(field: Field, name: str) -> None:
    canary_of_the_test = pa.table({"text": [CANARY]})
    with duckdb.connect() as con:
        con.execute("CREATE VIEW steps AS SELECT 1 AS step, '' AS text")
        assert CANARY in repr(con.sql(field.sql(READS[name])).to_arrow_table().to_pylist())
    assert canary_of_the_test.num_rows == 1


def test_files_in_the_folder_for_temporary_files_stay_unread(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate_module, "check", lambda _, sql: Checked(sql, frozenset()))
    with (
        QueryGate(field.files, temp_directory=str(field.root)) as gate,
        pytest.raises(QueryError, match="disabled by configuration"),
    ):
        gate.query(field.sql("FROM read_text('{secret}.txt')"))


def test_a_shard_that_is_a_link_to_something_else_is_refused(changed_field: Field) -> None:
    """A store from somebody else may hold links; such a file must not become readable text."""
    path = Path(changed_field.files["steps"][1])
    path.unlink()
    path.symlink_to(changed_field.root / "canary.txt")
    with QueryGate(changed_field.files) as gate:
        for sql in ("SELECT text FROM steps", f"SELECT content FROM read_text('{path}')"):
            with pytest.raises(QueryError) as caught:
                gate.query(sql)
            assert CANARY not in str(caught.value)


def test_attacks_through_parameters_are_refused(field: Field) -> None:
    with QueryGate(field.files) as gate:
        for sql in ("FROM read_text(?)", "FROM query(?)", "FROM query_table(?)", "FROM glob(?)"):
            with pytest.raises(QueryError):
                gate.query(sql, [str(field.root / "canary.txt")])
