r"""JSON as text: decoding one level at a time, so that what lies deeper keeps its characters.

A parsed number has lost its spelling, and a parsed object its duplicate keys. So converters
decode an object to ``dict[str, Raw]`` (msgspec), take what they know, and keep the rest as the
characters of the source.

Two things that real files hold are not JSON, or not storable: lone surrogates (``"\ud83d"``)
and ``NaN`` or ``Infinity``. `sanitise` replaces them in the record's bytes by marks that
survive decoding (characters of the last private-use plane); `mend_text` and `mend_json` turn
marks into what a column can hold, and say what the original was.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
from msgspec import Raw

MAX_DEPTH = 500
"""Nesting beyond this is a reject, and keeps every other reader from overflowing."""

encode = msgspec.json.encode

decode_object = msgspec.json.Decoder(dict[str, Raw]).decode
"""Decode one level of a JSON object; ``bytes`` or `Raw`. Of duplicate keys the last wins (see
`lost_keys`). Raises `msgspec.DecodeError` when the text is not JSON, or not an object."""

decode_array = msgspec.json.Decoder(list[Raw]).decode
"""Decode one level of a JSON array. Raises `msgspec.DecodeError` when the text is none."""

decode_value = msgspec.json.Decoder().decode
"""Decode a JSON value whole. Big integers stay integers; floats become Python floats."""

decode_text = msgspec.json.Decoder(str).decode
"""Decode a JSON string. Raises `msgspec.ValidationError` when the value is something else."""

_any_raw = msgspec.json.Decoder(Raw)

_WHITESPACE = b" \t\r\n"
# Possessive repeats: the others keep a note for each step back, a hundred bytes for one.
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|-?Infinity|NaN', re.DOTALL)
_BRACKET = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_DEEPEST_INDENT = 100
_SPACE, _LINE_END, _QUOTE = b' \n"'
_MARK_BASE = 0x10F800 - 0xD800
_MARK = re.compile("[\U0010f7ff-\U0010ffff]")
NUMBER_MARK = "\U0010f7ff"
_NUMBER_START = f'"{NUMBER_MARK}'.encode()
_MARKED_NUMBER = re.compile(f'"{NUMBER_MARK}(NaN|-?Infinity)"')
_SURROGATE = re.compile("[\ud800-\udfff]")
_NON_ASCII = re.compile(r"[^\x00-\x7e]")


def is_valid(text: str | bytes) -> bool:
    """Whether a text is strict JSON that every reader of the store can parse."""
    try:
        _any_raw.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return False
    return True


def is_nearly_valid(text: str) -> bool:
    """Whether a text is JSON but for lone surrogates, NaN and infinities."""
    try:
        return is_valid(text) or is_valid(sanitise(text.encode("utf-8")))
    except ValueError:
        return False


def first_byte(raw: Raw | bytes) -> int:
    """The first character of a JSON value, which tells its type. 0 when empty.

    A NaN or infinity that `sanitise` marked is no string: it gives ``N``.
    """
    view = memoryview(raw)
    first = view[0] if view else 0
    if first == 0x22 and len(view) > 1 and view[1] == 0xF4 and view[:5] == _NUMBER_START:
        return 0x4E
    return first


def one_line(raw: Raw | bytes) -> str:
    """The characters of a value; a value spread over lines is laid out on one.

    Whitespace between tokens is all that can change: numbers, strings, key order and
    duplicate keys stay as written.
    """
    data = bytes(raw)
    if b"\n" in data or b"\r" in data:
        data = relayout(data, 0)
    return data.decode("utf-8")


def raw_line(raw: Raw) -> Raw:
    """What `one_line` gives, to be written as it stands."""
    data = bytes(raw)
    return Raw(relayout(data, 0)) if b"\n" in data or b"\r" in data else raw


def raw(text: str) -> Raw:
    """Wrap JSON text so that `encode` writes it as it stands."""
    return Raw(text.encode("utf-8"))


def text_of(value: Any) -> str:
    """Encode a value as compact JSON text; `Raw` parts are kept as written."""
    return encode(value).decode("utf-8")


def lost_keys(text: Raw | bytes, decoded: dict[str, Raw]) -> list[str]:
    """Names of the keys that occur more than once in an object, one entry per lost value.

    The quick tests compare lengths: an object written compactly, with ", " and ": ", or with a key
    a line, is as long as its keys and values say; so is any other without its white space. Only
    when it is not are its keys counted.
    """
    if not decoded:
        return []
    spaces = len(text) - 1
    for key, value in decoded.items():
        spaces -= len(key) + len(value) + 4
    if not spaces or has_usual_spaces(text, decoded, spaces):
        return []
    names: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> None:
        names[:] = [key for key, _ in pairs]

    json.loads(bytes(text), object_pairs_hook=collect, parse_int=str, parse_float=str)
    seen: set[str] = set()
    return [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]


def has_usual_spaces(text: Raw | bytes, decoded: dict[str, Raw], spaces: int) -> bool:
    """Whether so much white space is what json.dumps puts into an object.

    Args:
        text: the object.
        decoded: its keys and their values.
        spaces: how much longer it is than they say.
    """
    count = len(decoded)
    view = memoryview(text)
    if spaces == 2 * count - 1:  # a space behind each comma and colon, and so behind the first one
        return view[len(next(iter(decoded))) + 4] == _SPACE
    if not count or spaces <= 2 * count or view[1] != _LINE_END:
        return False
    # A key a line, two spaces deeper than the end: the usual form of an object of many lines.
    before_key, rest = divmod(spaces + 1 - 2 * count, count + 1)
    if not rest and view[before_key + 2] == _QUOTE and view[-before_key] == _LINE_END:
        return True
    head, tail = bytes(view[2:_DEEPEST_INDENT]), bytes(view[-_DEEPEST_INDENT:-1])
    before_key = len(head) - len(head.lstrip(b" "))
    before_end = len(tail) - len(tail.rstrip(b" "))
    lines = count * (before_key + 2) + before_end + 1
    return spaces == lines and before_key > before_end and tail[-before_end - 1 :][:1] == b"\n"


def escape_non_ascii(text: str) -> str:
    """Write every character beyond ASCII of a JSON text as an escape, as `json.dumps` does."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _NON_ASCII.sub(_escape_char, text)


def _escape_char(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 | code >> 10:04x}\\u{0xDC00 | code & 0x3FF:04x}"


def depth(data: bytes) -> int:
    """Greatest nesting of brackets in a JSON text."""
    deepest = level = 0
    for match in _BRACKET.finditer(data):
        char = match.group()[0]
        if char in b"[{":
            level += 1
            deepest = max(deepest, level)
        elif char in b"]}":
            level -= 1
    return deepest


def sanitise(data: bytes) -> bytes:
    """Make a record decodable: mark lone surrogates, NaN and infinities.

    Raises:
        ValueError: the record already uses the characters that serve as marks.
        UnicodeDecodeError: the record is not UTF-8.
    """
    text = data.decode("utf-8")
    if _MARK.search(text):
        raise ValueError("the record uses characters from U+10F7FF to U+10FFFF")
    return _TOKEN.sub(_sanitise_token, text).encode("utf-8")


def _sanitise_token(match: re.Match[str]) -> str:
    token = match.group()
    if token[0] != '"':
        return f'"{NUMBER_MARK}{token}"'
    return mark_lone_surrogates(token) if "\\u" in token else token


def mark_lone_surrogates(token: str) -> str:
    """Replace escapes of lone surrogates in a JSON string token by marks."""
    out: list[str] = []
    position = 0
    high: re.Match[str] | None = None
    for match in _ESCAPE.finditer(token):
        code = int(match.group(1), 16) if match.group(1) else 0
        paired = high is not None and high.end() == match.start() and 0xDC00 <= code < 0xE000
        if high is not None and not paired:
            out += [token[position : high.start()], _mark(high)]
            position = high.end()
        high = None
        if 0xD800 <= code < 0xDC00:
            high = match
        elif 0xDC00 <= code < 0xE000 and not paired:
            out += [token[position : match.start()], _mark(match)]
            position = match.end()
    if high is not None:
        out += [token[position : high.start()], _mark(high)]
        position = high.end()
    return "".join(out) + token[position:]


def _mark(match: re.Match[str]) -> str:
    return chr(int(match.group(1), 16) + _MARK_BASE)


def has_mark(text: str) -> bool:
    """Whether `sanitise` left a mark in a text."""
    return _MARK.search(text) is not None


def mend_text(text: str) -> tuple[str, str]:
    """Split a marked text into what a column holds and the original.

    Returns:
        The text with U+FFFD for each lone surrogate, and the original as the inside of an
        ASCII JSON string, for ``extra.$escaped``.
    """
    text = _MARKED_NUMBER.sub(r"\1", text)  # of JSON that is kept as a text
    original = _MARK.sub(lambda m: chr(ord(m.group()) - _MARK_BASE), text)
    return _MARK.sub("\ufffd", text), json.dumps(original)[1:-1]


def replace_surrogates(text: str) -> str:
    """Put U+FFFD in the place of each lone surrogate."""
    return _SURROGATE.sub("\ufffd", text)


def unescape(inside: str) -> str:
    """Turn the original that `mend_text` returned back into a Python string."""
    value: str = json.loads(f'"{inside}"')
    return value


def mend_json(text: str) -> tuple[str, str]:
    """Split a marked JSON text into valid JSON and the characters of the source.

    Returns:
        The text with U+FFFD for lone surrogates and null for NaN and infinities, and the
        JSON text as the source wrote it.
    """
    numbers_gone = _MARKED_NUMBER.sub("null", text)
    original = _MARKED_NUMBER.sub(r"\1", text)
    original = _MARK.sub(lambda m: f"\\u{ord(m.group()) - _MARK_BASE:04x}", original)
    return _MARK.sub("\ufffd", numbers_gone), original


def unmark_json(text: str) -> str:
    """The JSON text that the source wrote, from its marked form."""
    return mend_json(text)[1]


def decode_exact(raw: Raw | bytes) -> dict[str, Raw]:
    """Decode one level of an object that may hold lone surrogates and NaN; values as written."""
    data = bytes(raw)
    if is_valid(data):
        return decode_object(data)
    return {
        mend_text(key)[0]: Raw(unmark_json(bytes(value).decode("utf-8")).encode("utf-8"))
        for key, value in decode_object(sanitise(data)).items()
    }


def string(text: str) -> str | Raw:
    """A string in the form that `encode` takes: lone surrogates are written as escapes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return Raw(json.dumps(text).encode("ascii"))
    return text


def relayout(data: bytes, indent: int) -> bytes:
    """Lay JSON text out anew; no token changes.

    Args:
        data: JSON text, which may hold lone surrogates, NaN and infinities.
        indent: spaces per level; 0 for one line with ", " and ": "; -1 for no white space.
    """
    try:
        return msgspec.json.format(data, indent=indent)
    except msgspec.DecodeError:
        marked = msgspec.json.format(sanitise(data), indent=indent)
        return unmark_json(marked.decode("utf-8")).encode("utf-8")
