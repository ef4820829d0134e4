from __future__ import annotations

import csv
import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pyarrow.parquet as pq
import pytest

from adp.cli.query import statements
from adp_schema.store import Store
from adp_schema.views import VIEWS
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from tests.cli.conftest import Run

"""Seconds after which a process counts as hanging."""
ODD = (
    "SELECT 1 AS a, 2 AS a, NULL AS n, [1, 2] AS l, 'x\"y,\n' AS t, 1.5::DECIMAL(3, 1) AS d,"
    " 'nan'::DOUBLE AS f, '\\xAA'::BLOB AS b, '2024-01-02 03:04:05+00'::TIMESTAMPTZ AS s,"
    " {'k': chr(155)} AS o, sum(1) AS h"
)


def piped(store: Store, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Call the command in its own process, with the text on standard input."""
    return subprocess.run(
        [sys.executable, "-m", "adp.cli.main", "query", store.root, *words],
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_table(run: Run, store: Store) -> None:
    done = run("query", store.root, "-c", "SELECT seq, name, is_error FROM calls_with_results")
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0] == ["seq", "name", "is_error"]
    assert ["100", "bash", "true"] in lines
    assert lines[-1] == ["2", "rows"]


def test_a_table_says_what_it_cut(run: Run, store: Store) -> None:
    sql = "SELECT i FROM range(12345) t(i)"
    out = run("query", store.root, "-c", sql, "--limit", 3).out
    assert len(out.splitlines()) == 1 + 1 + 3
    assert out.endswith("3 of 12,345 rows, 12,342 cut; --limit 0 shows all\n")
    out = run("query", store.root, "-c", "SELECT i FROM range(99) t(i)", "--limit", 0).out
    assert out.endswith("99 rows\n")
    assert len(out.splitlines()) == 99 + 2


def test_counting_the_cut_rows_takes_no_forever(
    run: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adp.cli.output.COUNT_SECONDS", 0.0)
    out = run("query", store.root, "-c", "SELECT i FROM range(10000000000) t(i)").out
    assert "40 of more than 4,096 rows, more than 4,056 cut" in out


def test_wide_rows_become_lists(run: Run, store: Store) -> None:
    out = run("query", store.root, "-c", "FROM trajectories WHERE seq = 100").out
    assert "row 1\n" in out
    assert "agent_model" in out
    assert "agent_version" not in out  # null
    assert out.endswith("1 row; what is null is left out\n")


def test_data_cannot_reach_the_terminal(run: Run, store: Store) -> None:
    sql = "SELECT text AS \"\x1b[31mred\" FROM steps WHERE text LIKE '%bold%'"
    out = run("query", store.root, "-c", sql).out
    assert "\x1b" not in out
    assert "␛[2Jgone [bold]not bold[/]" in out
    assert "␛[31mred" in out
    sql = "SELECT chr(155) || chr(8238) AS x"
    for form in ("table", "json", "jsonl"):
        out = run("query", store.root, "-c", sql, "--format", form).out
        assert not {"\x9b", "\u202e"} & set(out)
    assert json.loads(out) == {"x": "\x9b\u202e"}


def test_long_cells_are_cut(run: Run, store: Store) -> None:
    out = run("query", store.root, "-c", "SELECT repeat('wide ', 100000) AS t").out
    assert len(out) < 400
    assert "…" in out


def test_jsonl_and_json(run: Run, store: Store) -> None:
    expected = {
        "a": 1, "a_2": 2, "n": None, "l": [1, 2], "t": 'x"y,\n', "d": 1.5, "f": None,
        "b": "qg==", "s": "2024-01-02T03:04:05+00:00", "o": {"k": "\x9b"}, "h": 1,
    }  # fmt: skip
    line = run("query", store.root, "-c", ODD, "--format", "jsonl").out
    assert json.loads(line) == expected
    assert line.count("\n") == 1
    assert json.loads(run("query", store.root, "-c", ODD, "--format", "json").out) == [expected]
    none = "SELECT 1 AS a WHERE false"
    assert json.loads(run("query", store.root, "-c", none, "--format", "json").out) == []
    assert run("query", store.root, "-c", none, "--format", "jsonl").out == ""


def test_csv(run: Run, store: Store) -> None:
    out = run("query", store.root, "-c", ODD, "--format", "csv").out
    (row,) = csv.DictReader(io.StringIO(out, newline=""))
    assert (row["a"], row["a_2"], row["n"], row["l"]) == ("1", "2", "", "[1, 2]")
    assert (row["t"], row["d"], row["b"], row["h"]) == ('x"y,\n', "1.5", "qg==", "1")
    assert json.loads(row["o"]) == {"k": "\x9b"}
    assert row["s"].startswith("2024-01-02 03:04:05")
    out = run("query", store.root, "-c", "SELECT 1 AS a WHERE false", "--format", "csv").out
    assert out.strip().strip('"') == "a"


@pytest.mark.parametrize("suffix", ["csv", "json", "jsonl", "ndjson", "parquet"])
def test_a_file_gets_the_format_of_its_name(
    run: Run, store: Store, tmp_path: Path, suffix: str
) -> None:
    out = tmp_path / f"rows.{suffix}"
    done = run("query", store.root, "-c", "SELECT seq, labels, text FROM steps", "-o", out)
    count = Store.open(store.root).manifest.rows("steps")
    assert f"{count} rows in {out}" in done.out
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    if suffix == "parquet":
        assert pq.read_table(out).num_rows == count
    elif suffix == "csv":
        assert len(list(csv.reader(io.StringIO(out.read_text())))) == count + 1


def test_a_file_that_is_there_stays(run: Run, store: Store, tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    out.write_text("mine")
    done = run("query", store.root, "-c", "SELECT 1", "-o", out)
    assert done.code == 5
    assert "is there already" in done.err
    assert out.read_text() == "mine"


def test_a_query_that_fails_leaves_no_file(run: Run, store: Store, tmp_path: Path) -> None:
    sql = "SELECT if(i = 90000, error('boom'), i) AS i FROM range(100000) t(i)"
    done = run("query", store.root, "-c", sql, "-o", tmp_path / "rows.csv")
    assert (done.code, done.err) == (6, "error: boom\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("-c", "SELECT 1", "--format", "xls"), 2, "unknown format 'xls'; known: csv, json"),
        (("-c", "SELECT 1", "--format", "parquet"), 2, "give a file with -o"),
        (("-c", "SELECT 1", "-o", "rows.txt"), 2, "names no format"),
        (("-c", "SELECT 1", "-o", "rows.csv", "--format", "table"), 2, "is for the screen"),
        (("-c", "SELECT 1", "-f", "x.sql"), 2, "exclude each other"),
        (("-f", "nowhere.sql"), 3, "cannot read nowhere.sql"),
        (("-f", sys.executable), 3, "it is no UTF-8 text"),
        (("-o", "rows.csv"), 2, "give the query with -c or -f"),
        (("-c", "COPY steps TO 'x'"), 6, "not COPY"),
        (("-c", "SELECT txt FROM steps"), 6, "did you mean text?"),
        (("-c", "SELECT 1; SELECT 2"), 6, "not 2 statements"),
        (("-c", "SELECT 1", "--memory", "lots"), 6, "does not start"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    run: Run,
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("query", store.root, *words)
    assert done.code == code
    assert message in done.err
    assert done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_query_from_a_file(run: Run, store: Store, tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text("-- how many\nSELECT count(*) AS n\nFROM trajectories;\n")
    out = run("query", store.root, "-f", file, "--format", "jsonl").out
    assert json.loads(out) == {"n": 3}


def test_several_stores(run: Run, store: Store, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.symlink_to(store.root)
    sql = "SELECT store, count(*) AS n FROM trajectories GROUP BY store ORDER BY store"
    out = run("query", store.root, other, "-c", sql, "--format", "jsonl").out
    assert [json.loads(line) for line in out.splitlines()] == [
        {"store": "other", "n": 3},
        {"store": "small", "n": 3},
    ]
    out = run("query", store.root, store.root, "-c", sql, "--format", "jsonl").out
    assert json.loads(out.splitlines()[0])["store"] == store.root


def test_what_curate_made_has_the_views_that_the_help_names(
    run: Run, store: Store, tmp_path: Path
) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(f"recipe: 1\ninputs: {{a: {store.root}}}\nops: [dedup_exact]\n", "utf-8")
    assert run("curate", recipe, "-o", tmp_path / "out").code == 0
    for view in ("ledger", "annotations", "step_columns"):
        done = run("query", tmp_path / "out", "--json", "-c", f"SELECT count(seq) AS n FROM {view}")
        assert (done.code, done.err) == (0, "")
        assert (json.loads(done.out)["rows"][0]["n"] == 0) is (view == "step_columns")


def test_explain_is_drawn(run: Run, store: Store) -> None:
    out = run("query", store.root, "-c", "EXPLAIN SELECT text FROM steps").out
    assert "Read Parquet" in out.replace("_", " ").title()
    assert "explain_key" not in out


def test_statements_from_a_pipe(store: Store) -> None:
    done = piped(store, "SELECT 1 AS a; SELECT ';' AS b\n;\n\nSELECT 3 AS c", "--format", "jsonl")
    assert done.stderr == ""
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"a": 1}, {"b": ";"}, {"c": 3},
    ]  # fmt: skip
    assert piped(store, "").stdout == ""
    done = piped(store, "SELECT 1 AS a; SELECT x; SELECT 2 AS b;", "--format", "jsonl")
    assert (done.returncode, done.stdout) == (6, '{"a": 1}\n')


def test_dot_commands(store: Store) -> None:
    out = piped(store, ".tables\n.schema attempts;\n.help\n.quit\nSELECT 1;").stdout
    for name in VIEWS:
        assert f"\n{name} " in out
    assert "success_rate" in out
    assert "DOUBLE" in out
    assert "Ctrl-D" in out
    assert "1 row" not in out
    done = piped(store, ".schema stepz")
    assert (done.returncode, done.stderr) == (
        2,
        "error: unknown table 'stepz'; did you mean steps?\n",
    )
    assert "did you mean .tables" in piped(store, ".table").stderr


def wait_for_work(pid: int, seconds: float) -> None:
    """Wait until a process has worked for so many seconds of CPU time in all."""
    deadline = time.monotonic() + PATIENCE
    while psutil.Process(pid).cpu_times().user < seconds:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_prompt_on_a_terminal(store: Store) -> None:
    """Errors go on, a query that runs too long can be stopped, and Ctrl-D leaves."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "dumb"
        os.execv(sys.executable, [sys.executable, "-m", "adp.cli.main", "query", store.root])
    seen = ""

    def until(text: str) -> None:
        nonlocal seen
        deadline = time.monotonic() + PATIENCE
        while text not in seen:
            assert time.monotonic() < deadline, seen
            if select.select([terminal], [], [], 0.2)[0]:
                seen += os.read(terminal, 4096).decode(errors="replace")
        seen = seen.split(text, 1)[1]

    until("adp> ")
    os.write(terminal, b"SELECT 40 +\n")
    until("...> ")
    os.write(terminal, b"2 AS answer;\n")
    until("42")
    until("adp> ")
    os.write(terminal, b"SELECT nothing FROM steps;\n")
    until("unknown column 'nothing'")
    until("adp> ")
    before = psutil.Process(pid).cpu_times().user
    os.write(terminal, b"SELECT count(*) FROM range(1000000000000) t(i);\n")
    wait_for_work(pid, before + 0.5)
    os.write(terminal, b"\x03")
    until("stopped")
    until("adp> ")
    os.write(terminal, b"\x04")
    assert os.waitpid(pid, 0)[1] == 0
    os.close(terminal)


def test_a_query_that_runs_can_be_stopped(store: Store) -> None:
    words = ["query", store.root, "-c", "SELECT count(*) FROM range(1000000000000) t(i)"]
    with subprocess.Popen([sys.executable, "-m", "adp.cli.main", *words], stderr=-1) as process:
        while "duckdb" not in Path(f"/proc/{process.pid}/maps").read_text():
            assert process.poll() is None
            time.sleep(0.02)
        # What is left of the start takes less than this.
        wait_for_work(process.pid, psutil.Process(process.pid).cpu_times().user + 1.5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (130, b"stopped\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1;", ["SELECT 1;"]),
        ("SELECT 1", ["SELECT 1"]),
        ("a; b;\nc", ["a;", "b;", "c"]),
        ("SELECT ';' || \";\" -- ;\n/* ; */;", ["SELECT ';' || \";\" -- ;\n/* ; */;"]),
        (".tables\na\n.b;", [".tables", "a\n.b;"]),
        (";;\n ;\n", []),
        ("", []),
    ],
)
def test_splitting_into_statements(text: str, expected: list[str]) -> None:
    assert list(statements(io.StringIO(text).readline)) == expected


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_no_column_vanishes(
    run: Run, store: Store, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    values = (
        "repeat('a', 300) AS first, 0.5 AS reward, repeat('b', 300) AS second, 12345 AS attempt"
    )
    out = run("query", store.root, "-c", f"SELECT {values}").out
    for name in ("first", "reward", "second", "attempt", "0.5", "12345"):
        assert name in out
    assert all(len(line) <= width for line in out.splitlines())
