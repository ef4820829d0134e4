"""Times of logs: ISO 8601 texts, and numbers of seconds, milliseconds and so on since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec import Raw

from adp.converters.json_objects import read_time, write_time
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import NUMBER, QUOTE
from adp_schema import jsontext
from adp_schema.model import Columns

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SCALES = ((1e11, 1.0), (1e14, 1e3), (1e17, 1e6))
"""A number below the first is in units of which the second make a second; else in nanoseconds."""
_WRITTEN = (19, 20, 26, 27)
"""How long the texts are that `write_time` makes."""


def take_time(source: SourceObject, columns: Columns, *keys: str) -> None:
    """Fill ``timestamp``, ``timestamp_text`` and ``timestamp_zone_known`` from the first time.

    Args:
        source: the object; a value that is no time stays in it.
        columns: the row of a step or an observation.
        keys: where a time may be.
    """
    time, text, zoned = _take(source, keys)
    if time is not None:
        columns["timestamp"], columns["timestamp_zone_known"] = time, zoned
        if text is not None:
            columns["timestamp_text"] = text


def take_start(source: SourceObject, columns: Columns, *keys: str) -> None:
    """Fill ``started_at`` and its like of a trajectory from the first time."""
    time, text, zoned = _take(source, keys)
    if time is not None:
        columns["started_at"], columns["time_zone_known"] = time, zoned
        if text is not None:
            columns["started_text"] = text


def take_end(source: SourceObject, columns: Columns, *keys: str) -> None:
    """Fill ``ended_at`` and ``ended_text`` of a trajectory from the first time."""
    time, text, zoned = _take(source, keys)
    if time is not None:
        columns["ended_at"] = time
        columns.setdefault("time_zone_known", zoned)
        if text is not None:
            columns["ended_text"] = text


def _take(source: SourceObject, keys: tuple[str, ...]) -> tuple[datetime | None, str | None, bool]:
    """A time, how it was written when that does not follow from it, and whether it has a zone."""
    for key in keys:
        raw = source.values.get(key)
        time, text, zoned = time_of(raw)
        if time is not None:
            del source.values[key]
            return time, text, zoned
    return None, None, False


def time_of(raw: Raw | None) -> tuple[datetime | None, str | None, bool]:
    """The time that a JSON value is, as `take_time` has it; (None, None, False) for no time."""
    if raw is None:
        return None, None, False
    first = jsontext.first_byte(raw)
    if first == QUOTE:
        text = jsontext.decode_value(raw)
        time, zoned = read_time(text)
        if time is None or not (text.isascii() or not jsontext.has_mark(text)):
            return None, None, False
        same = len(text) in _WRITTEN and write_time(time, None, zoned=zoned is not False) == text
        return time, None if same else text, bool(zoned)
    if first not in NUMBER:
        return None, None, False
    digits = bytes(raw).decode("ascii")
    return number_time(digits), digits, True


def number_time(digits: str) -> datetime | None:
    """The time that a number since 1970 stands for, by its size; None when it is too far."""
    number = float(digits)
    size = abs(number)
    if 1e11 <= number < 1e14 and digits.isdigit():  # milliseconds, as most programs write
        seconds, rest = divmod(int(digits), 1000)
        return _EPOCH + timedelta(0, seconds, rest * 1000)
    scale = 1e9
    for limit, units in _SCALES:
        if size < limit:
            scale = units
            break
    try:
        if digits.lstrip("-").isdigit():
            return _EPOCH + timedelta(microseconds=int(digits) * 1_000_000 // int(scale))
        return _EPOCH + timedelta(seconds=number / scale)
    except (OverflowError, ValueError):
        return None
