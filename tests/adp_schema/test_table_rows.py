"""Rows before they are Arrow: dicts and columns in one order."""

from hypothesis import given
from hypothesis import strategies as st

from adp_schema.table_rows import TableRows

ROWS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 9), max_size=3)
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), ROWS),
        st.tuples(st.just("extend"), st.lists(ROWS, min_size=1, max_size=3)),
        st.tuples(st.just("truncate"), st.integers(0, 12)),
        st.tuples(st.just("clear"), st.none()),
        st.tuples(st.just("settle"), st.none()),
    ),
    max_size=12,
)


def columns_of(rows):
    names = set().union(*rows)
    return {name: [row.get(name) for row in rows] for name in names}


@given(ACTS)
def test_rows_are_those_of_a_list(acts):
    rows, plain = TableRows(), []
    for act, value in acts:
        if act == "append":
            rows.append(value)
            plain.append(value)
        elif act == "extend":
            rows.extend_columns(columns_of(value), len(value))
            plain += value
        elif act == "truncate":
            rows.truncate(value)
            del plain[value:]
        elif act == "settle":
            rows.settle()
        else:
            rows.clear()
            plain.clear()
        assert rows.size == len(rows) == len(plain)
        assert list(rows) == rows[:] == plain
        assert list(reversed(rows)) == plain[::-1]
        assert rows.names() >= set().union(*plain)
        for name in "abc":
            assert rows.columns([name]) == {name: [row.get(name) for row in plain]}


def test_a_row_that_was_added_last_can_be_changed():
    rows = TableRows()
    rows.extend_columns({"a": [1, 2]}, 2)
    rows.append({"a": 3})
    rows[-1]["b"] = 4
    rows[0] = {"a": 0}
    assert rows.columns("b") == {"b": [None, None, 4]}
    rows.extend_columns({"b": [5]}, 1)
    assert list(rows) == [{"a": 0}, {"a": 2}, {"a": 3, "b": 4}, {"b": 5}]
    rows[-2:][0].clear()
    rows[3] = {"c": 6}
    assert list(rows)[2:] == [{"a": 3, "b": 4}, {"c": 6}]
    assert rows != list(rows)
