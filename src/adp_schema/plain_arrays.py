"""Arrow arrays of Python lists, for the types that nearly all columns have.

`pa.array` looks whether it is given an array of pandas, and loads pandas for that, where it is
installed: a third of the CPU that a small conversion takes.
"""

from __future__ import annotations

from array import array
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

_MOST = 2**31 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ARROW_EPOCH = datetime(1970, 1, 1, tzinfo=ZoneInfo("UTC"))
_TIME = pa.timestamp("us", tz="UTC")
_NUMBERS = {pa.int32(): ("i", int), pa.int64(): ("q", int), pa.float64(): ("d", float)}


def empty_table(schema: pa.Schema) -> pa.Table:
    """A table without rows; ``schema.empty_table()`` would load pandas where it is installed."""
    return pa.Table.from_batches([], schema=schema)


def plain_array(values: list[Any], data_type: pa.DataType) -> pa.Array:
    """The array that ``pa.array(values, data_type)`` makes.

    Raises:
        pa.ArrowInvalid: a value has another type; so for the others.
        pa.ArrowTypeError: the same.
        UnicodeError: a text is none that Arrow can hold.
        OverflowError: a number is too large.
    """
    try:
        made = _made(values, data_type) if values else pa.nulls(0, data_type)
    except (TypeError, ValueError, OverflowError):
        made = None
    # What is left, and what is wrong with a value, is said by `pa.array`.
    return pa.array(values, data_type) if made is None else made


def plain_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The list that ``column.to_pylist()`` makes, which loads pandas to make times of numbers.

    Raises:
        OverflowError: a time is beyond what Python's times hold.
    """
    if column.type != _TIME:
        values: list[Any] = column.to_pylist()
        return values
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    numbers = chain.from_iterable(chunk.view(pa.int64()).to_pylist() for chunk in chunks)
    return [None if it is None else _ARROW_EPOCH + timedelta(microseconds=it) for it in numbers]


def repeated(texts: list[str], counts: Any) -> pa.Array:
    """Each of some texts as often as its count says, as an array."""
    encoded = [text.encode() for text in texts]
    data = b"".join([text * count for text, count in zip(encoded, counts, strict=True)])
    sizes = np.repeat(np.array(list(map(len, encoded)), dtype=np.int64), counts)
    return _array(pa.string(), len(sizes), [_offsets(sizes), data])


def _made(values: list[Any], data_type: pa.DataType) -> pa.Array | None:
    """The array; None when it is of another kind.

    Raises:
        TypeError: a value has another type.
        ValueError: a text cannot be encoded.
        OverflowError: a value is too large, or there are too many.
    """
    if data_type == pa.string():
        first = values[0]
        if type(first) is str and first is values[-1] and values.count(first) == len(values):
            return repeated([first], [len(values)])
        return _text_array(values)
    kinds = set(map(type, values))
    there = None
    if type(None) in kinds:
        there = np.array([value is not None for value in values])
    kinds.discard(type(None))
    if len(kinds) != 1:
        return None
    kind = kinds.pop()
    if kind is _NUMBERS.get(data_type, ("", None))[1]:
        filled = values if there is None else [0 if value is None else value for value in values]
        return _array(data_type, len(values), [array(_NUMBERS[data_type][0], filled)], there)
    if data_type == _TIME and kind is datetime:
        return _array(data_type, len(values), [array("q", map(_microseconds, values))], there)
    if data_type == pa.binary() and kind is bytes:
        blobs = values if there is None else [value or b"" for value in values]
        return _array(data_type, len(blobs), [_offsets(_sizes(blobs)), b"".join(blobs)], there)
    if data_type == pa.bool_() and kind is bool:
        bits = np.packbits(np.array([value is True for value in values]), bitorder="little")
        return _array(data_type, len(values), [bits], there)
    if pa.types.is_list(data_type) and kind is list:
        lists = [value or [] for value in values]
        items = plain_array(list(chain.from_iterable(lists)), data_type.value_type)
        offsets = _offsets(_sizes(lists))
        return _array(data_type, len(values), [offsets], there, [items])
    return None


def _microseconds(time: datetime | None) -> int:
    """The microseconds from 1970 to a time that says its zone; 0 for none.

    Raises:
        TypeError: it does not say its zone.
    """
    if time is None:
        return 0
    past = time - _EPOCH
    return (past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds


def _text_array(values: list[Any]) -> pa.Array:
    """Texts, some of them null."""
    texts, there = values, None
    if None in values:
        there = np.array([value is not None for value in values])
        texts = ["" if value is None else value for value in values]
    if all(map(str.isascii, texts)):
        return _array(
            pa.string(), len(texts), [_offsets(_sizes(texts)), "".join(texts).encode()], there
        )
    encoded = list(map(str.encode, texts))
    return _array(pa.string(), len(texts), [_offsets(_sizes(encoded)), b"".join(encoded)], there)


def _sizes(values: list[Any]) -> Any:
    return np.fromiter(map(len, values), np.int64, len(values))


def _offsets(sizes: Any) -> Any:
    """Where each of some values begins, and the end of the last one.

    Raises:
        OverflowError: they are too many for one array.
    """
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] > _MOST:
        raise OverflowError
    return offsets.astype(np.int32)


def _array(
    data_type: pa.DataType,
    length: int,
    buffers: list[Any],
    there: Any = None,
    children: list[pa.Array] | None = None,
) -> pa.Array:
    """An array of its buffers, without the first one, which says which values are not null."""
    valid, nulls = None, 0
    if there is not None:
        valid = pa.py_buffer(np.packbits(there, bitorder="little"))
        nulls = length - int(there.sum())
    whole = [valid, *map(pa.py_buffer, buffers)]
    return pa.Array.from_buffers(data_type, length, whole, nulls, children=children)
