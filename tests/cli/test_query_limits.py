"""No query goes on for ever, and none takes the memory of the machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from adp.cli import output
from adp_schema.gate_engine import machine_memory, user_seconds
from adp_schema.store import Store
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from tests.cli.conftest import Run

ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r"
UNHEEDING = (
    "SELECT levenshtein(repeat('a', 900000 + i::INT), repeat('b', 900000)) FROM range(2) t(i)"
)
"""One call of a function, which the engine cannot interrupt."""


def started(store: Store, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "adp.cli.main", "query", store.root, *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def ended(process: subprocess.Popen[str], text: str | None = None) -> tuple[int, str, str]:
    """Wait for a process: its exit code, output and errors."""
    try:
        out, err = process.communicate(text, timeout=PATIENCE)
    finally:
        process.kill()
    assert "Traceback" not in err
    return process.returncode, out, err


def one_sentence(err: str) -> bool:
    return err.startswith("error: ") and err.count("\n") == 1


@pytest.mark.parametrize(
    "sql",
    [
        ENDLESS,
        "SELECT count(*) FROM range(10000000000) a, range(10000000000) b WHERE a.range = -b.range",
        UNHEEDING,
    ],
    ids=["recursive", "cross join", "unheeding"],
)
def test_a_query_ends_when_its_time_is_up(store: Store, tmp_path: Path, sql: str) -> None:
    file = str(tmp_path / "o.parquet")
    code, out, err = ended(started(store, "-c", sql, "--seconds", "0.4", "-o", file))
    assert (code, out) == (6, "")
    assert one_sentence(err)
    assert "took longer than 0.4 s and was stopped" in err or "more memory" in err
    assert "--seconds" in err or "memory limit" in err
    assert list(tmp_path.iterdir()) == []


def test_an_endless_result_ends_too(store: Store, tmp_path: Path) -> None:
    sql = "SELECT a.range, repeat('x', 50) FROM range(10000000000) a, range(1000) b"
    file = tmp_path / "rows.jsonl"
    code, _, err = ended(started(store, "-c", sql, "--seconds", "0.4", "-o", str(file)))
    assert code == 6
    assert "took longer than 0.4 s" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("way", ["file", "input"])
def test_statements_of_files_and_of_the_input_end(store: Store, tmp_path: Path, way: str) -> None:
    text = f"SELECT 1 AS x; {ENDLESS}; SELECT 2 AS y;"
    if way == "file":
        (tmp_path / "q.sql").write_text(ENDLESS, encoding="utf-8")
        process = started(store, "-f", str(tmp_path / "q.sql"), "--seconds", "0.4")
        code, out, err = ended(process)
    else:
        code, out, err = ended(started(store, "--seconds", "0.4"), text)
        assert "x" in out
    assert code == 6
    assert one_sentence(err)
    assert "y" not in out


MEMORY = {
    "one huge list": "SELECT len(range(3000000000))",
    "list of rows": "SELECT list(range) FROM range(3000000000)",
    "long text": "SELECT repeat('x', 2000000000 + i) FROM range(20) t(i)",
    "many texts": "SELECT string_agg(repeat('x', 1000000), '') FROM range(100000)",
    "sort": "SELECT hash(a.range + b.range) AS h FROM range(100000) a, range(1000) b ORDER BY h",
    "all rows of a table": "FROM range(10000000000)",
    "blobs": "SELECT repeat('x', 200000000)::BLOB FROM range(9)",
}


_SLOW = ("list of rows", "many texts", "sort", "blobs")


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(sql, id=name, marks=[pytest.mark.slow] if name in _SLOW else [])
        for name, sql in MEMORY.items()
    ],
)
def test_a_memory_bomb_ends_in_a_sentence(store: Store, sql: str) -> None:
    code, out, err = ended(
        started(store, "-c", sql, "--seconds", "60", "--memory", "200MB", "--limit", "0")
    )
    assert (code, out) == (6, "")
    assert one_sentence(err)
    assert "more memory than 200MB" in err or "took longer than 60 s" in err


def test_a_table_takes_the_beginnings_of_huge_values_alone(run: Run, store: Store) -> None:
    sql = "SELECT repeat('y', 9000000)::BLOB AS b, repeat('x', 90000000) AS t FROM range(4)"
    done = run("query", store.root, "-c", sql)
    assert done.code == 0
    assert "9,000," in done.out
    assert len(done.out) < 1000


@pytest.mark.parametrize(
    ("form", "limit"), [("table", 1 << 20), ("csv", output.LARGEST), ("json", 1 << 20)]
)
def test_huge_values_do_not_become_huge_python_objects(
    run: Run, store: Store, monkeypatch: pytest.MonkeyPatch, form: str, limit: int
) -> None:
    monkeypatch.setattr(output, "LARGEST", limit)
    sql = f"SELECT [repeat('x', {limit * 9 // 8})] AS t"
    done = run("query", store.root, "-c", sql, "--format", form)
    assert done.code == 6
    assert "-o FILE.parquet" in done.err


def test_zero_seconds_set_no_limit_and_the_variable_counts(
    run: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("query", store.root, "-c", "SELECT 1", "--seconds", 0).code == 0
    monkeypatch.setenv("ADP_QUERY_SECONDS", "0.2")
    assert "took longer than 0.2 s" in run("query", store.root, "-c", ENDLESS).err
    monkeypatch.setenv("ADP_QUERY_SECONDS", "soon")
    done = run("query", store.root, "-c", ENDLESS)
    assert done.code == 2
    monkeypatch.setenv("ADP_QUERY_SECONDS", "0")
    assert user_seconds() is None


def test_conditions_of_other_commands_end(
    run: Run, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADP_QUERY_SECONDS", "0.2")
    slow = "(SELECT count(*) FROM range(10000000000) a, range(10000000000) b WHERE a = b) > seq"
    done = run("drop", store.root, "--where", slow, "-o", tmp_path / "out")
    assert done.code == 6
    assert "took longer than 0.2 s" in done.err
    assert "ADP_QUERY_SECONDS" in done.err
    recipe = tmp_path / "r.yaml"
    for op in (
        f"filter: {{sql: '{slow}'}}",
        f"annotate: {{expressions: {{x: '{slow}'}}}}",
        f"mask: {{policy: [sql], sql: '{slow}'}}",
    ):
        recipe.write_text(
            f"recipe: 1\ninputs: {{s: {store.root}}}\nops:\n  - {op}\n", encoding="utf-8"
        )
        done = run("curate", recipe, "-o", tmp_path / "cut")
        assert (op, done.code) == (op, 6), done.err
        assert "took longer than 0.2 s" in done.err


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(ENDLESS, id="heeding", marks=pytest.mark.slow),
        pytest.param(UNHEEDING, id="unheeding"),
    ],
)
def test_ctrl_c_ends_a_query(store: Store, sql: str) -> None:
    process = started(store, "-c", sql)
    status = Path(f"/proc/{process.pid}/stat")
    if not status.exists():
        process.kill()
        pytest.skip("needs /proc to see that the query works")
    until = time.monotonic() + PATIENCE
    while cpu_seconds(status) < 3 and time.monotonic() < until:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    code, out, err = ended(process)
    assert (code, out, err) == (130, "", "stopped\n")


def cpu_seconds(status: Path) -> float:
    fields = status.read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_the_memory_of_a_machine_is_known() -> None:
    assert machine_memory() > 100 << 20
