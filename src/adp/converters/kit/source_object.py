"""An object of the source that is taken apart key by key; what is left of it is not lost."""

from __future__ import annotations

import math
from typing import Any

import msgspec
from msgspec import Raw

from adp.converters.reading import BRACE, BRACKET, NULL, NUMBER, QUOTE, report_lost
from adp.converters.scalars import number_text
from adp_schema import jsontext
from adp_schema.losses import Losses

_EMPTY_ARRAY = 2
_LONGEST_INTEGER = 20
_SMALL = 4096
_MARK_START = 0xF4
"""First byte of a mark of `jsontext.sanitise`, which makes of a number a string."""

# Looked up once: these are called for each value of each object.
_decode_object, _decode_array = jsontext.decode_object, jsontext.decode_array
_decode_text, _decode_integer = jsontext.decode_text, msgspec.json.Decoder(int).decode
_encode, _is_spaced = jsontext.encode, jsontext.has_usual_spaces
_NUMBER_MARK = jsontext.NUMBER_MARK


class SourceObject:
    """One object of the source, one level decoded; each value that a column takes is removed.

    A value of another type than the one asked for stays where it is, and so ends in `rest`.

    Args:
        raw: its JSON text. Anything but an object gives one without keys.
        path: where it is in the record, such as ``$[3].message``.
        losses: takes keys that occur twice.
    """

    __slots__ = ("_children", "losses", "path", "values")

    def __init__(self, raw: Raw | bytes | None, path: str, losses: Losses) -> None:
        self.path = path
        self.losses = losses
        self._children: dict[str, SourceObject] | None = None
        self.values: dict[str, Raw]
        if not raw or memoryview(raw)[0] != BRACE:
            self.values = {}
            return
        values = self.values = _decode_object(raw)
        if len(raw) < _SMALL:
            written = _encode(values)
            spaces = len(raw) - len(written)
            if (not spaces or _is_spaced(raw, values, spaces)) and (
                written.isascii() or "".join(values).isascii()
            ):
                return  # a key that stands twice would not be written again
        names = "".join(values)
        # As long as its keys and values say: nothing else is in it, as in most objects.
        size = len(names) + 4 * len(values) + sum(map(len, values.values())) + 1
        spaces = len(raw) - size
        plain = not spaces or _is_spaced(raw, values, spaces)
        if not plain or not names.isascii():
            report_lost(raw, values, path, losses)

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def __bool__(self) -> bool:
        return bool(self.values)

    def first(self, key: str) -> int:
        """The first character of a value; 0 when the key is not there."""
        raw = self.values.get(key)
        if raw is None:
            return 0
        view = memoryview(raw)
        first: int = view[0]
        return first if first != QUOTE or view[1] != _MARK_START else jsontext.first_byte(raw)

    def word(self, key: str) -> str:
        """The string under a key, which stays there; empty when there is none."""
        raw = self.values.get(key)
        if raw is None:
            return ""
        try:
            text: str = _decode_text(raw)
        except msgspec.ValidationError:
            return ""
        return "" if text and text[0] == _NUMBER_MARK else text

    def words(self, key: str) -> list[str]:
        """The strings of the list under a key, which stays there."""
        items = jsontext.decode_array(self.values[key]) if self.first(key) == BRACKET else []
        return [jsontext.decode_value(it) for it in items if jsontext.first_byte(it) == QUOTE]

    def take(self, key: str) -> Raw | None:
        """Take a value as it is written; None when the key is not there."""
        return self.values.pop(key, None)

    def text(self, *keys: str) -> str | None:
        """Take the string under the first of some keys that has one."""
        for key in keys:
            raw = self.values.get(key)
            if raw is None:
                continue
            try:
                text: str = _decode_text(raw)
            except msgspec.ValidationError:
                continue
            if text and text[0] == _NUMBER_MARK:
                continue
            del self.values[key]
            return text
        return None

    def name(self, *keys: str) -> str | None:
        """Take a string or an integer, as ids are; an integer gives its digits."""
        for key in keys:
            raw = self.values.get(key)
            if raw is None:
                continue
            first = memoryview(raw)[0]
            if first == QUOTE and (text := self.text(key)) is not None:
                return text
            if first in NUMBER and self.integer_at(key) is not None:
                del self.values[key]
                return bytes(raw).decode("ascii")
        return None

    def flag(self, *keys: str) -> bool | None:
        """Take true or false."""
        for key in keys:
            if self.first(key) in (0x74, 0x66):
                value: bool = jsontext.decode_value(self.values.pop(key))
                return value
        return None

    def integer_at(self, key: str, bits: int = 64) -> int | None:
        """The integer under a key, which stays there; None when there is none of that size."""
        raw = self.values.get(key)
        if raw is None or memoryview(raw)[0] not in NUMBER or len(raw) > _LONGEST_INTEGER:
            return None
        try:
            value: int = _decode_integer(raw)
        except msgspec.ValidationError:  # a fraction, or a power of ten
            return None
        is_spelled_so = value != 0 or len(raw) == 1  # not -0
        limit = 1 << (bits - 1)
        return value if is_spelled_so and -limit <= value < limit else None

    def integer(self, *keys: str, bits: int = 64) -> int | None:
        """Take an integer."""
        for key in keys:
            value = self.integer_at(key, bits)
            if value is not None:
                del self.values[key]
                return value
        return None

    def number(self, *keys: str) -> float | None:
        """Take a number. One that a float would spell in another way stays for ``extra``, too."""
        for key in keys:
            first = self.first(key)
            if not first or first not in NUMBER:
                continue
            text = bytes(self.values[key]).decode("ascii")
            value = float(text)
            if not math.isfinite(value):
                continue
            if number_text(value) == text:
                del self.values[key]
            return value
        return None

    def json(self, *keys: str) -> str | None:
        """Take any value but null, as JSON text on one line."""
        for key in keys:
            if self.first(key) not in (0, NULL):
                return jsontext.one_line(self.values.pop(key))
        return None

    def json_list(self, key: str) -> str | None:
        """Take a list, as JSON text on one line."""
        return self.json(key) if self.first(key) == BRACKET else None

    def json_object(self, key: str) -> str | None:
        """Take an object, as JSON text on one line."""
        return self.json(key) if self.first(key) == BRACE else None

    def child(self, key: str) -> SourceObject:
        """The object under a key; what is left of it stays. Without keys when there is none."""
        children = self._children
        if children is not None and key in children:
            return children[key]
        inner = SourceObject(self.values.get(key), f"{self.path}.{key}", self.losses)
        if inner.values:
            del self.values[key]
            if children is None:
                self._children = {key: inner}
            else:
                children[key] = inner
        return inner

    def peek(self, key: str) -> SourceObject:
        """A copy of the object under a key, to look into: what is taken of it stays in this one."""
        if self._children is not None and key in self._children:
            return self._children[key].copy()
        other = SourceObject(None, f"{self.path}.{key}", self.losses)
        if self.first(key) == BRACE:
            other.values = jsontext.decode_object(self.values[key])
        return other

    def copy(self) -> SourceObject:
        """A copy of this object, to look into: what is taken of it stays in this one."""
        other = SourceObject(None, self.path, self.losses)
        other.values = dict(self.values)
        return other

    def parsed(self, key: str) -> SourceObject:
        """The object under a key, or in the JSON text under it; what is left of it stays.

        Databases keep objects as text. A text that is no object stays as it is.
        """
        if self.first(key) != QUOTE or (self._children is not None and key in self._children):
            return self.child(key)
        text = self.word(key)
        inner = embedded(text, f"{self.path}.{key}", self.losses)
        if inner and not jsontext.has_mark(text):
            self.adopt(key, inner)
            return inner
        return SourceObject(None, inner.path, self.losses)

    def take_child(self, key: str) -> SourceObject:
        """Take the object under a key, or in the JSON text under it, from this one for good.

        What is left of it is for the caller to keep.
        """
        inner = self.parsed(key)
        if self._children is not None:
            self._children.pop(key, None)
        return inner

    def adopt(self, key: str, inner: SourceObject) -> None:
        """Put an object that was made of a value in its place; what is left of it stays."""
        self.values.pop(key, None)
        if self._children is None:
            self._children = {}
        self._children[key] = inner

    def items(self, key: str) -> list[Raw]:
        """Take the items of a list that has any."""
        raw = self.values.get(key)
        if raw is None or memoryview(raw)[0] != BRACKET or len(raw) == _EMPTY_ARRAY:
            return []
        values: list[Raw] = _decode_array(raw)
        if values:
            del self.values[key]
        return values

    def objects(self, key: str) -> list[SourceObject]:
        """Take the objects of a list that holds objects only; the caller keeps what is left."""
        raw = self.values.get(key)
        items = self.items(key)
        if not items:
            return []
        if any([memoryview(item)[0] != BRACE for item in items]):
            self.values[key] = raw if raw is not None else Raw(b"null")
            return []
        path = f"{self.path}.{key}"
        return [SourceObject(it, f"{path}[{n}]", self.losses) for n, it in enumerate(items)]

    def parsed_objects(self, key: str) -> list[SourceObject]:
        """Take the objects of a list, or of the JSON text of a list, as databases keep them."""
        if self.first(key) == QUOTE:
            text = self.word(key)
            data = text.encode("utf-8", "surrogatepass")
            usable = jsontext.first_byte(data) == BRACKET and jsontext.is_valid(data)
            if not usable or jsontext.has_mark(text) or jsontext.depth(data) > jsontext.MAX_DEPTH:
                return []
            self.values[key] = jsontext.raw(text)
        return self.objects(key)

    def drop(self, *keys: str) -> None:
        """Take away values that decide what becomes of the object, and so are kept by that."""
        for key in keys:
            self.values.pop(key, None)

    def drop_text(self, key: str, text: Any) -> None:
        """Take away a string that repeats a text which is kept; a value of another type stays."""
        if text is not None and self.word(key) == text and (text or self.first(key) == QUOTE):
            del self.values[key]

    def rest(self) -> dict[str, Any]:
        """The keys that no column took: for ``extra``."""
        out: dict[str, Any] = dict(self.values)
        if not self._children:
            return out
        for key, inner in self._children.items():
            if left := inner.rest():
                out[key] = left
        return out

    def rest_lines(self) -> dict[str, Any]:
        """The same, each value on one line: for a part, or for a list in ``extra``."""
        if not self.values and not self._children:
            return {}
        return {key: one_line(value) for key, value in self.rest().items()}


def one_line(value: Any) -> Any:
    """A value for a part or a list: JSON text stands on one line."""
    return jsontext.raw_line(value) if isinstance(value, Raw) else value


def embedded(text: str, path: str, losses: Losses) -> SourceObject:
    """The object that a string holds as JSON; without keys when it is none."""
    data = text.encode("utf-8", "surrogatepass")
    try:
        flat = data.count(b"{") + data.count(b"[") <= jsontext.MAX_DEPTH
        usable = jsontext.is_valid(data) and (flat or jsontext.depth(data) <= jsontext.MAX_DEPTH)
        return SourceObject(data if usable else None, path, losses)
    except msgspec.DecodeError:
        return SourceObject(None, path, losses)
