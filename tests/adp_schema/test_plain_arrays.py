"""Arrays made of lists without `pa.array` are those that it makes."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp_schema.plain_arrays import plain_array, plain_values, repeated

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
TIME = pa.timestamp("us", tz="UTC")
VALUES = {
    pa.string(): TEXT,
    pa.binary(): st.binary(max_size=5),
    pa.int32(): INT32,
    pa.int64(): INT64,
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    TIME: st.datetimes(timezones=st.just(UTC)),
    pa.list_(pa.int64()): st.lists(INT64, max_size=3),
    pa.list_(pa.int32()): st.lists(INT32, max_size=3),
    pa.list_(pa.float64()): st.lists(st.floats(allow_nan=False), max_size=3),
    pa.list_(pa.string()): st.lists(TEXT, max_size=3),
}


@given(st.data(), st.sampled_from(list(VALUES)), st.booleans())
def test_arrays_are_those_of_pyarrow(data, data_type, nulls):
    value = VALUES[data_type]
    values = data.draw(st.lists(st.one_of(value, st.none()) if nulls else value, max_size=20))
    made = plain_array(values, data_type)
    made.validate(full=True)
    assert made.type == data_type
    assert made.equals(pa.array(values, data_type))
    assert repr(made.to_pylist()) == repr(values)


@given(st.data(), st.sampled_from([TIME, pa.string()]))
def test_values_are_those_of_pyarrow(data, data_type):
    chunks = data.draw(st.lists(st.lists(st.one_of(VALUES[data_type], st.none())), max_size=3))
    column = pa.chunked_array([pa.array(values, data_type) for values in chunks], data_type)
    assert repr(plain_values(column)) == repr(column.to_pylist())
    assert repr(plain_values(column.slice(1))) == repr(column.slice(1).to_pylist())
    for chunk in column.chunks:
        assert repr(plain_values(chunk)) == repr(chunk.to_pylist())


@pytest.mark.parametrize(
    ("values", "data_type"),
    [
        (["a", 1], pa.string()),
        ([1, 1], pa.string()),
        (["\ud800"], pa.string()),
        (["\ud800", "\ud800"], pa.string()),
        ([1, True], pa.int64()),
        ([True], pa.int32()),
        ([2**31], pa.int32()),
        ([2**63], pa.int64()),
        (["1"], pa.int64()),
        ([[1], ["a"]], pa.list_(pa.int64())),
        ([1], pa.list_(pa.int64())),
        (["a"], pa.bool_()),
        (["a"], pa.float64()),
    ],
)
def test_what_is_wrong_is_what_pyarrow_says(values, data_type):
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError, UnicodeError, OverflowError)) as old:
        pa.array(values, data_type)
    with pytest.raises(old.type) as new:
        plain_array(values, data_type)
    assert str(new.value) == str(old.value)


@pytest.mark.parametrize(
    ("values", "data_type"),
    [
        ([1.5], pa.int64()),
        ([1], pa.float64()),
        ([b"a"], pa.string()),
        ([datetime(2026, 3, 1, 10)], TIME),
        ([datetime(2026, 3, 1, 10, tzinfo=timezone(timedelta(hours=2))), None], TIME),
        ([1_772_600_000_000_000], TIME),
    ],
)
def test_what_pyarrow_converts_is_converted(values, data_type):
    assert plain_array(values, data_type).equals(pa.array(values, data_type))


def test_texts_are_repeated():
    assert repeated(["a", "é", "", "b"], [2, 1, 3, 0]).to_pylist() == ["a", "a", "é", "", "", ""]
    assert repeated([], []).to_pylist() == []


def test_pandas_is_not_loaded(tmp_path):
    pytest.importorskip("pandas")
    source = tmp_path / "a.jsonl"
    times = '"created_at": "2026-03-01T10:00:00Z"'
    source.write_text(
        f'{{"id": "a", {times}, "messages": [{{"role": "user", "content": "hi"}}]}}\n'
    )
    code = (
        "import sys; from adp.converters.run import convert; "
        f"convert([{str(source)!r}], {str(tmp_path / 'store')!r}); print('pandas' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False"]
