"""Objects of a record: taking them apart, and putting them together in the form of the source.

`JsonObject` reads one leniently: what a column can hold is taken, the rest stays for ``extra``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw

from adp.converters.reading import BRACE, BRACKET, NULL, NUMBER, QUOTE, object_fields
from adp.converters.scalars import number_text
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.losses import Losses

_INT32, _INT64 = 2**31, 2**63
_ints = msgspec.json.Decoder(list[int])


class JsonObject:
    """One object of the source while it is read: each key that a column takes is popped.

    Args:
        raw: its JSON text.
        path: where it is in the record.
        losses: takes keys that occur twice.

    Raises:
        RecordError: it is no object.
    """

    __slots__ = ("exact", "form", "names", "path", "taken", "values")

    def __init__(self, raw: Raw | bytes, path: str, losses: Losses) -> None:
        self.values = object_fields(raw, path, losses)
        self.names = list(self.values)
        self.path = path
        self.taken: set[str] = set()
        self.form: dict[str, Any] = {}
        self.exact: dict[str, str] = {}

    def first(self, key: str) -> int:
        """The first character of a value; 0 when the key is not there."""
        raw = self.values.get(key)
        return 0 if raw is None else jsontext.first_byte(raw)

    def take(self, key: str) -> Raw:
        """The value of a key that is there, as JSON text."""
        self.taken.add(key)
        return self.values.pop(key)

    def text(self, key: str) -> str | None:
        """The text under a key, when it is one."""
        return jsontext.decode_value(self.take(key)) if self.first(key) == QUOTE else None

    def flag(self, key: str) -> bool | None:
        """True or false, when it is one of them."""
        if self.first(key) not in (0x74, 0x66):
            return None
        value: bool = jsontext.decode_value(self.take(key))
        return value

    def number(self, key: str, *, bits: int = 0) -> Any:
        """The number under a key; with ``bits`` only an integer of that size."""
        if self.first(key) not in NUMBER or not self.first(key):
            return None
        text = bytes(self.values[key]).decode("ascii")
        value = integer(text, bits) if bits else float(text)
        if value is None or not math.isfinite(value):
            return None
        if number_text(value) != text:
            self.exact[key] = text
        self.take(key)
        return value

    def integers(self, key: str) -> list[int] | None:
        """A list of 32-bit integers, when it is one."""
        raw = self.values.get(key)
        if raw is None or jsontext.first_byte(raw) != BRACKET or b"-0" in bytes(raw):
            return None
        try:
            values = _ints.decode(raw)
        except msgspec.ValidationError:
            return None
        if any(not -_INT32 <= value < _INT32 for value in values):
            return None
        self.take(key)
        return values

    def floats(self, key: str) -> list[float] | None:
        """A list of numbers, NaN and infinities among them, when it is one."""
        raw = self.values.get(key)
        if raw is None or jsontext.first_byte(raw) != BRACKET:
            return None
        text = jsontext.unmark_json(bytes(raw).decode("utf-8"))
        values = read_floats(text)
        if values is None:
            return None
        self.take(key)
        text = text if "\n" not in text and " " not in text else "".join(text.split())
        if text != floats_text(values):
            self.exact[key] = text
        return values

    def items(self, key: str, what: str) -> list[Raw] | None:
        """The items of a list; None when it is null or not there.

        Raises:
            RecordError: it is something else.
        """
        first = self.first(key)
        if first in (0, NULL):
            return None
        if first != BRACKET:
            raise RecordError(f"expected a list of {what}", f"{self.path}.{key}")
        return jsontext.decode_array(self.take(key))

    def inner(self, key: str, losses: Losses) -> JsonObject | None:
        """The object under a key, to be ended with `close`; None when it is no object."""
        if self.first(key) != BRACE:
            return None
        return JsonObject(self.take(key), f"{self.path}.{key}", losses)

    def close(self, key: str, atif_object: JsonObject, order: tuple[str, ...]) -> None:
        """End an inner object: what is left of it, and its form."""
        form = atif_object.end(order)
        if atif_object.values:
            self.values[key] = Raw(jsontext.encode(atif_object.values))
        if form or not atif_object.names:
            self.form[key] = form

    def end(self, order: tuple[str, ...], always: tuple[str, ...] = ()) -> dict[str, Any]:
        """Drop nulls, and return the value of ``$shape``.

        Args:
            order: the usual order of the keys.
            always: keys that a writer writes without being told to.
        """
        for name in self.names:
            if self.first(name) == NULL:
                del self.values[name]
        there = self.taken | self.values.keys() | set(always)
        guessed = [name for name in order if name in there]
        guessed += [name for name in self.names if name in there and name not in order]
        if self.names != guessed:
            self.form["keys"] = self.names
        if self.exact:
            self.form["exact"] = self.exact
        return self.form


def integer(text: str, bits: int = 64) -> int | None:
    """The integer that a number is, also one written as 12.0, when it fits."""
    try:
        value = int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer():
            return None
        value = int(number)
    limit = _INT32 if bits == 32 else _INT64
    return value if -limit <= value < limit else None


def read_floats(text: str) -> list[float] | None:
    """The numbers of a JSON list; None when there is anything else in it."""
    values = json.loads(text)
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        return None
    try:
        return [float(value) for value in values]
    except OverflowError:
        return None


def floats_text(values: list[float]) -> str:
    """How a list of numbers is written when nothing else is known: as Python does."""
    return json.dumps(values, separators=(",", ":"))


def write_floats(values: list[float] | None, key: str, exact: Mapping[str, str]) -> Raw | None:
    """A list of numbers as the source spelled it, unless it was edited since."""
    if values is None:
        return None
    text = floats_text(values)
    written = exact.get(key)
    if written is not None and floats_text(read_floats(written) or []) == text:
        text = written
    return jsontext.raw(text)


def arrange(
    known: Mapping[str, Any],
    kept: Mapping[str, Any],
    form: Mapping[str, Any],
    order: tuple[str, ...],
) -> dict[str, Any]:
    """Put the keys of an object in the order of the source, or in the usual one.

    Args:
        known: values that come from columns; None is no value.
        kept: keys of the source that ``extra`` holds.
        form: the form of the source; a key that it lists without a value was null.
        order: the usual order.
    """
    full = {**kept, **{key: value for key, value in known.items() if value is not None}}
    names = form.get("keys")
    if names is None:
        names = [name for name in order if name in full]
    out = {name: full.pop(name, None) for name in names}
    return {**out, **full}


def members(value: Any) -> dict[str, Any] | None:
    """The members of an object, written or built; None when it is something else."""
    if isinstance(value, Raw):
        return jsontext.decode_exact(value) if jsontext.first_byte(value) == BRACE else None
    return value if isinstance(value, dict) else None


def array_items(raw: Raw) -> list[Raw]:
    """The items of an array that may hold lone surrogates and NaN, each as written."""
    data = bytes(raw)
    if jsontext.is_valid(data):
        return jsontext.decode_array(data)
    items = jsontext.decode_array(jsontext.sanitise(data))
    return [jsontext.raw(jsontext.unmark_json(bytes(item).decode("utf-8"))) for item in items]


def read_time(text: str) -> tuple[datetime | None, bool | None]:
    """A time in UTC, and whether its zone is known; (None, None) when it is no ISO 8601."""
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is UTC:
            return time, True
        known = time.tzinfo is not None
        return (time.astimezone(UTC) if known else time.replace(tzinfo=UTC)), known
    except (ValueError, OverflowError):
        return None, None


def write_time(time: datetime | None, text: str | None, *, zoned: bool = True) -> str | None:
    """A time as the source wrote it, unless it was edited since.

    Args:
        time: the time.
        text: how the source wrote it; None when that is not known.
        zoned: whether its zone is known.
    """
    if text is not None and read_time(jsontext.replace_surrogates(text))[0] == time:
        return text
    end = "Z" if zoned else ""
    return None if time is None else time.isoformat().replace("+00:00", end)
