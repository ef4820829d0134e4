"""The scanner against one that looks at a byte after another, and against `json`."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.converters.files import json_brackets, json_values
from adp.converters.files.json_brackets import brackets
from adp.converters.files.json_values import JsonScanner

SPACE = b" \t\r\n"
PIECES = [
    b'"', b"\\", b"\\\\", b'\\"', b"{", b"}", b"[", b"]", b",", b":", b" ", b"\n", b"a", b"\x02",
    b"1", b'{"a": 1}', b'["x\\"]", {}]', b'"s"', b"{" * 9, b"\\" * 70,
    b'{"b": "' + b"]" * 40 + b'"}',
]  # fmt: skip


def one_value(text, at, stops):
    """The end of the value that begins at a byte, and whether it ends at all."""
    if text[at] not in b'{["':
        at += 1
        while at < len(text) and text[at] not in stops:
            at += 1
        return at, True
    level, inside = 0, False
    while at < len(text):
        byte = text[at]
        at += 1
        if inside:
            if byte == 0x5C:
                at += 1
            elif byte == 0x22:
                inside = False
        elif byte == 0x22:
            inside = True
        else:
            level += (byte in b"[{") - (byte in b"]}")
        if not inside and level <= 0 and byte in b'"[]{}':
            return min(at, len(text)), at <= len(text)
    return len(text), False


def plainly(text, array):
    """Offset, text and whether it is whole of each value; what `Value` says of the end."""
    at, values = 0, []
    gap, stops = (SPACE + b",", SPACE + b",]") if array else (SPACE, b"\n{[")
    if array:
        while at < len(text) and text[at] in SPACE:
            at += 1
        at += 1
    while True:
        while at < len(text) and text[at] in gap:
            at += 1
        if at >= len(text):
            return [*values, (at, b"", False)] if array else values
        if array and text[at] == 0x5D:
            rest = text[at + 1 :].lstrip(SPACE)
            return [*values, (len(text) - len(rest), rest, True)] if rest else values
        end, whole = one_value(text, at, stops)
        data = text[at:end]
        values.append((at, data if data[0] in b'{["' else data.rstrip(), whole))
        if array and not whole:
            return values
        at = end


def scanned(text, array, limit=1 << 20):
    scanner = JsonScanner(io.BytesIO(text), limit)
    return list(scanner.elements() if array else scanner.documents())


SIZES = [
    (1 << 20, 1 << 12, 99),
    (1 << 20, 1, 99),
    (1 << 20, 1, 5),
    (64, 1, 8),
    (7, 3, 2),
    (1, 1, 1),
]


@pytest.fixture(params=SIZES)
def _sizes(request, monkeypatch):
    chunk, few, block = request.param
    monkeypatch.setattr(json_values, "_CHUNK", chunk)
    monkeypatch.setattr(json_values, "_FEW", few)
    monkeypatch.setattr(json_brackets, "_BLOCK", block)


@pytest.mark.usefixtures("_sizes")
@given(st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join), st.booleans())
def test_any_bytes_are_cut_like_byte_by_byte(text, array):
    text = b"[" + text if array else text
    values = scanned(text, array)
    assert [(value.offset, value.data, value.whole) for value in values] == plainly(text, array)
    for value in values:
        assert value.stray or value.multiline == (
            b"\n" in text[value.offset : value.offset + value.size]
        )


TREES = st.recursive(
    st.none() | st.integers() | st.text(st.sampled_from('a"\\[]{}é\n'), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.sampled_from('a"\\'), max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


@pytest.mark.usefixtures("_sizes")
@given(st.lists(TREES, max_size=8), st.sampled_from([None, 1]), st.booleans())
def test_elements_are_those_that_json_parses(records, indent, ascii_only):
    text = json.dumps(records, indent=indent, ensure_ascii=ascii_only).encode()
    values = scanned(text, True)
    assert [json.loads(value.data) for value in values] == records
    assert all(text[it.offset :][: it.size] == it.data for it in values if it.data[:1] in b"[{")


@pytest.mark.usefixtures("_sizes")
@given(st.lists(st.lists(TREES, max_size=3), min_size=1, max_size=6), st.data())
def test_an_array_that_is_cut_ends_in_what_is_not_whole(records, data):
    text = json.dumps(records).encode()
    text = text[: data.draw(st.integers(1, len(text) - 1))]
    *whole, last = scanned(text, True)
    assert not last.whole
    ends = [len(json.dumps(records[:count])) - 1 for count in range(1, len(records) + 1)]
    assert len(whole) == sum(end <= len(text) for end in ends)
    assert [json.loads(value.data) for value in whole] == records[: len(whole)]


@pytest.mark.usefixtures("_sizes")
@given(st.lists(TREES, min_size=1, max_size=6), st.data())
def test_a_part_of_an_array_has_the_values_of_the_whole_one(records, data):
    text = json.dumps(records).encode()
    values = scanned(text, True)
    number = data.draw(st.integers(0, len(values) - 1))
    border = values[number].offset
    head = JsonScanner(io.BytesIO(text[:border]), 1 << 20).elements(more=True)
    tail = JsonScanner(io.BytesIO(text[border:]), 1 << 20, border).elements(opened=True)
    assert [*head, *tail] == values


def test_values_over_the_limit_are_walked_over():
    records = [{"a": "x" * size} for size in (5, 5_000, 7, 2_000_000, 9)]
    text = json.dumps(records).encode()
    values = scanned(text, True, limit=100)
    assert [value.size for value in values] == [len(json.dumps(it)) for it in records]
    assert [bool(value.hash) for value in values] == [False, True, False, True, False]


def test_what_is_no_json_is_told_apart():
    assert brackets(b'{ \\" }', 0, 6) is None
    made = brackets(b'\\"]"{[', 0, 6, in_string=True, escaped=True)
    assert made is not None
    assert (made.positions.tolist(), made.levels.tolist()) == ([2], [-1])
    assert made.in_string
