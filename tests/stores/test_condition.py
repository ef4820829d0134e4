"""A condition is one closed expression: it cannot leave the parentheses that it is put in."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.converters.run import convert
from adp.stores import condition
from adp.stores.condition import check_condition, select_where
from adp.stores.drop import select
from adp_schema.errors import QueryError
from tests.converters.test_run import chat, write_lines
from tests.effort import examples

GOOD = [
    "license = 'x)'",
    "a IN (SELECT seq FROM steps WHERE contains(text, ';--'))",
    "$$;)$$ = a",
    "E'\\');' = a AND \"b;)\" = 1",
    "((a)) OR (b AND (c))",
    "a = '/* no comment */'",
]
BAD = [
    ("", "is empty"),
    (" \n", "is empty"),
    ("true) OR (true", "closes a parenthesis"),
    ("1)(", "closes a parenthesis"),
    ("(a", "opens a parenthesis"),
    ("a = 1; DROP TABLE x", "no ';'"),
    ("a;", "no ';'"),
    ("a = 1 -- b", "no comments"),
    ("a = 1 /* b", "no comments"),
    ("/**/ a", "no comments"),
    ("true --\n) OR (true", "no comments"),
    ("'\ud800' = a", "half a character"),
]


@pytest.mark.parametrize("sql", GOOD)
def test_good_ones_pass(sql):
    check_condition(sql)


@pytest.mark.parametrize(("sql", "message"), BAD)
def test_bad_ones_are_refused(sql, message):
    with pytest.raises(QueryError, match=message):
        select_where("seq", sql)


@pytest.mark.parametrize(
    "sql",
    [
        "true) LIMIT (1",
        "true) ORDER BY (seq",
        "true) GROUP BY (seq",
        "true) UNION SELECT 1 FROM x WHERE (true",
        "true) QUALIFY (true",
    ],
)
def test_the_tree_shows_an_escape_too(sql, monkeypatch):
    monkeypatch.setattr(condition, "check_condition", lambda sql: None)
    with pytest.raises(QueryError, match="more than a condition"):
        select_where("seq", sql)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    root = tmp_path_factory.mktemp("condition")
    convert([write_lines(root / "x.jsonl", [chat(1), chat(2)])], str(root / "store"))
    return str(root / "store")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("license_ = 'x'", "did you mean license"),
        ("a b c", r"syntax error at or near \"b\" \(line 1, column 3\)"),
        ("'open", "unterminated"),
        ("count(*) > 1", "WHERE clause cannot contain aggregates"),
        ("seq IN (SELECT x FROM read_csv('/etc/passwd'))", "may not read from"),
        ("seq = ?", "parameter"),
        ("text = 1", "unknown column"),
    ],
)
def test_faults_are_one_sentence_of_the_gate(store, sql, message):
    with pytest.raises(QueryError, match=f"(?i){message}"):
        select(store, sql)


WORDS = [
    "a",
    "b",
    " ",
    "(",
    ")",
    "'",
    '"',
    ";",
    "--",
    "/*",
    "*/",
    "\n",
    "$$",
    "=",
    " OR ",
    "1",
    "E'",
]


@settings(max_examples=examples(400))
@given(st.lists(st.sampled_from(WORDS), max_size=9).map("".join))
def test_what_passes_stays_inside(engine, sql):
    """Whatever passes cannot let a row through that a condition beside it keeps out."""
    try:
        check_condition(sql)
        rows = engine.sql(f"FROM (VALUES (true, true)) t(a, b) WHERE (\n{sql}\n) AND false")
    except (QueryError, duckdb.Error):
        return
    assert rows.fetchall() == []


@pytest.fixture(scope="module")
def engine():
    with duckdb.connect(":memory:") as con:
        yield con
