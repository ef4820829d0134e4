"""Whether a record that is only read keeps every value: its raw leaves against its rows."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Container, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any

import pyarrow as pa

from adp.converters.leaves import Reading, read_records
from adp.converters.record_errors import as_record_error
from adp.converters.registry import formats
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.jsontext import unescape
from adp_schema.media import blob_of_base64
from adp_schema.parts import JOINT
from adp_schema.protocols import SkipRecordError

DECIDING = frozenset(
    {"type", "subtype", "event", "sessionUpdate", "role", "kind", "object", "status", "class", "lc"}
)
"""Keys whose words may decide what a row is, instead of standing in it."""

ID_COLUMNS = ("source_id", "session_id", "target_id", "target_path")
"""Columns of ids, which may be made of several values, numbers among them."""

JOINED_COLUMNS = (*ID_COLUMNS, "text", "reasoning")
"""Columns whose values may be made of several values of the source."""

_ATTACHMENT = re.compile("(?:attachment|tc)://[0-9a-f]{32}")
"""In logs of Inspect: the contents stand in its place."""

_NUMBER = re.compile(r"-?[0-9]{1,20}(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?|NaN|-?Infinity")
_MARKS = f"{jsontext.NUMBER_MARK}\ufffd"
"""What stands before a number that no JSON text can hold."""

_ZSTD = "KLUv/"
"""How base64 of what zstd has compressed begins."""

_REFERENCE = re.compile(r"adp-media:(?P<mime>[\w.+-]+/[\w.+-]+);(?P<id>[0-9a-f]{32})")
_DATA_URI = re.compile(r"data:([\w.+-]+/[\w.+-]+)?;base64,(?P<data>[A-Za-z0-9+/]*={0,2})")


def read_lines(name: str, data: bytes, side_files: dict[str, bytes] | None = None) -> Reading:
    """Read one record as the runner does: a second time, sanitised, when it is needed.

    Raises:
        RecordError: it is no record of the format.
    """
    converter = formats.get(name)
    try:
        try:
            return read_records(converter, [data], side_files=side_files)
        except (ValueError, RecursionError) as error:
            if isinstance(error, RecordError) or jsontext.is_valid(data):
                raise
            clean = jsontext.sanitise(data)
            if jsontext.depth(clean) > jsontext.MAX_DEPTH:
                raise RecordError("nested too deep") from None
            return read_records(converter, [clean], marked=True, side_files=side_files)
    except SkipRecordError:
        raise
    except Exception as error:
        if type(error).__module__ not in ("adp_schema.errors", "msgspec", "builtins"):
            raise
        if isinstance(error, ArithmeticError | LookupError | AttributeError | TypeError):
            raise
        raise as_record_error(error) from error


class KeptValues:
    """What of a record is in its rows, or in its report of losses.

    Args:
        reading: what was read from it.
    """

    def __init__(self, reading: Reading) -> None:
        self.words: set[str] = set()
        self._ids: set[str] = set()
        joined: set[str] = set()
        for rows in reading.rows.values():
            for row in rows:
                for name in ID_COLUMNS:
                    self._ids.update(re.findall("[0-9]+", row.get(name) or ""))
                joined.update(str(row[name]) for name in JOINED_COLUMNS if row.get(name))
                for value in row.values():
                    add_words(value, self.words)
        long = (word for word in self.words if JOINT in word or len(word) > 10)
        media = reading.rows.get("media", ())
        self._blobs = {row["media_id"]: row["data"] for row in media if row.get("data")}
        self._texts = _REFERENCE.sub(self._data_uri, "\n".join([*joined, *long]))
        self._reported = {item["path"] for item in reading.losses}

    def reports(self, path: str) -> bool:
        """Whether the report of losses names a place, or what it is in."""
        return any(
            path.startswith(place) and path[len(place) :][:1] in "[." for place in self._reported
        )

    def holds(self, key: str, word: str) -> bool:
        """Whether a word that is no cell is a part of one."""
        if word in self._ids or (key == "parent" and word.isdigit()):
            return True  # an index of a parent decides on the branch
        pieces = _ATTACHMENT.split(word)
        if len(pieces) > 1 and all(piece in self._texts for piece in pieces):
            return True
        if (len(word) > 2 or not word.isalnum()) and word in self._texts:
            return True
        if f"\n{word}\n" in f"\n{self._texts}\n":  # a short one is a line by itself
            return True
        uri = _DATA_URI.fullmatch(word)
        return blob_of_base64(uri.group("data") if uri else word) in self._blobs.values()

    def _data_uri(self, reference: re.Match[str]) -> str:
        """The data URI that stood where a text names a blob."""
        data = self._blobs.get(reference.group("id"))
        return f"data:{reference.group('mime')};base64,{b64encode(data).decode()}" if data else ""


def lost(data: bytes, reading: Reading) -> list[str]:
    """The texts and numbers of a record that stand neither in its rows nor in the report of losses.

    Args:
        data: the record: strict JSON.
        reading: what was read from it.
    """
    kept = KeptValues(reading)
    missing = []
    todo = list(leaves(json.loads(data), kept=kept.words))
    while todo:
        path, key, value = todo.pop(0)
        if value in ("", None) or isinstance(value, bool) or _last(key) in DECIDING:
            continue
        word = _word(value)
        if kept.holds(key, word) or kept.reports(path):
            continue
        inside = _json_inside(value)
        if inside is not None:
            todo.extend(leaves(inside, path, key, kept.words))
            continue
        missing.append(f"{path} = {word[:60]}")
    return missing


def _last(key: str) -> str:
    """The last name of a key: attributes of spans spell whole paths."""
    return key.rpartition(".")[2]


def _json_inside(value: Any) -> Any:
    """The list or object that a string holds as JSON; its values count, not its spelling."""
    if not isinstance(value, str):
        return None
    text = value.removeprefix("\x00json:")
    if text[:1] not in ("{", "[", '"'):
        text = _unpacked(value)
    try:
        return json.loads(text) if text[:1] in ("{", "[", '"') else None
    except (ValueError, RecursionError):
        return None


def _unpacked(text: str) -> str:
    """The JSON text that stands as hexadecimal digits, or as base64 of compressed bytes."""
    with suppress(ValueError, OSError):
        if text.startswith("7b"):
            return bytes.fromhex(text).decode()
        if text.startswith(_ZSTD):
            packed = pa.py_buffer(b64decode(text))
            data: bytes = pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read()
            return data.decode()
    return ""


def _is_pair(value: dict[str, Any]) -> bool:
    """Whether it is an attribute of OTLP, or a tag of Jaeger, whose name is no value."""
    names = ({"key", "value"}, {"key", "type", "value"})
    return set(value) in names and isinstance(value["key"], str)


def leaves(
    value: Any, path: str = "$", key: str = "", kept: Container[str] = ()
) -> Iterator[tuple[str, str, Any]]:
    """Each scalar that is not among the kept words, with its path and its last key."""
    todo = [(value, path, "", key, "")]
    while todo:
        value, path, step, key, attribute = todo.pop()
        if isinstance(value, dict):
            path += step
            if _is_pair(value):
                todo.append((value["value"], path, ".value", "", value["key"]))
            else:
                children = [(it, path, f".{name}", name, attribute) for name, it in value.items()]
                todo.extend(reversed(children))
        elif isinstance(value, list):
            path += step
            children = [(it, path, f"[{n}]", key, attribute) for n, it in enumerate(value)]
            todo.extend(reversed(children))
        elif _word(value) not in kept:
            yield path + step, attribute if attribute and key.endswith("Value") else key, value


def add_words(value: Any, kept: set[str]) -> None:
    """The scalars of a cell as texts; JSON texts are taken apart, the texts in them too."""
    todo = [value]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            if value not in kept:
                kept.add(value)
                todo.extend(_in_text(value))
        elif isinstance(value, dict):
            todo.extend(value.values())
        elif isinstance(value, list):
            todo.extend(value)
        elif isinstance(value, datetime):
            for spec in ("auto", "milliseconds", "seconds"):
                text = value.isoformat(timespec=spec)
                plain = text.removesuffix("+00:00")
                kept.update((text, plain, f"{plain}Z"))
        else:
            kept.add(_word(value))


def _in_text(value: str) -> list[Any]:
    """What a text holds: parts that were joined, a number, escaped surrogates, JSON."""
    results: list[Any] = []
    if JOINT in value:
        results += value.split(JOINT)
    if _NUMBER.fullmatch(number := value.lstrip(_MARKS)):  # as it was written
        results.append(float(number))
    if "\\ud" in value:  # what ``$escaped`` says of lone surrogates
        with suppress(ValueError):
            results.append(unescape(value))
    if value[:1] in ("{", "[", '"'):
        with suppress(ValueError, RecursionError):
            results.append(json.loads(value))
    return results


def _word(value: Any) -> str:
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() else repr(value)
    return str(value)
