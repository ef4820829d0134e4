"""The classes of ADP v1 JSON: their keys in upstream's order, and how a record spelled them.

The usual form of an object is: the keys of its class in upstream's order, without the optional
keys that are null. Only when a source object differs does ``$shape.keys`` remember its keys,
and ``$shape.exact`` the numbers that Python would write in another way.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Raw

from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.extra_column import Extra, pack
from adp_schema.losses import Losses

ORDER: dict[str, tuple[str, ...]] = {
    "trajectory": (
        *("schema_version", "id", "content", "details"),
        *("available_apis", "available_custom_tools", "available_code_languages"),
    ),
    "text_observation": ("tool_call_id", "class_", "content", "name", "source", "reward"),
    "image_observation": ("tool_call_id", "class_", "content", "annotations", "source", "reward"),
    "web_observation": (
        *("tool_call_id", "class_", "html", "axtree", "url"),
        *("image_observation", "viewport_size", "reward"),
    ),
    "api_action": (
        *("tool_call_id", "class_", "function", "kwargs", "description"),
        *("reasoning_content", "reward"),
    ),
    "code_action": (
        *("tool_call_id", "class_", "language", "content", "description"),
        *("reasoning_content", "reward"),
    ),
    "message_action": ("class_", "content", "description", "reasoning_content", "reward"),
}
"""Class -> its keys, as upstream declares them; ``trajectory`` is the record itself."""

OPTIONAL = frozenset(
    {
        *("schema_version", "available_apis", "available_custom_tools"),
        *("available_code_languages", "tool_call_id", "reasoning_content", "reward"),
    }
)
"""Keys of later versions, which upstream leaves out when they say nothing."""

_text = msgspec.json.Decoder(str | None)
_number = msgspec.json.Decoder(float)


@dataclass(frozen=True, slots=True)
class Layout:
    """How the keys of an object compare with those of its class.

    Attributes:
        usual: whether they stand in upstream's order with only optional ones missing.
        optional: the optional keys that are there.
        unknown: the keys that the class does not have.
    """

    usual: bool
    optional: tuple[str, ...]
    unknown: tuple[str, ...]


@functools.lru_cache(maxsize=4096)
def layout_of(class_name: str, keys: tuple[str, ...]) -> Layout:
    """Compare the keys of an object with those of its class."""
    order = ORDER[class_name]
    there = set(keys)
    return Layout(
        usual=keys == tuple(key for key in order if key not in OPTIONAL or key in there),
        optional=tuple(key for key in keys if key in OPTIONAL and key in order),
        unknown=tuple(key for key in keys if key not in order),
    )


def is_null(raw: Raw) -> bool:
    """Whether a JSON value is null."""
    return jsontext.first_byte(raw) == ord("n")


class AdpV1Object:
    """One object of a record while it is read: typed access to its keys, and its ``extra``."""

    __slots__ = ("exact", "fields", "name", "path", "shape", "values")

    def __init__(self, raw: Raw | bytes, path: str, losses: Losses) -> None:
        try:
            self.values = jsontext.decode_object(raw)
        except msgspec.ValidationError:
            raise RecordError("expected an object", path) from None
        for key in jsontext.lost_keys(raw, self.values):
            losses.add(f"{path}.{key}", "the key occurs more than once; the last value is kept")
        self.path = path
        self.name = ""
        self.fields: dict[str, Any] = {}
        self.shape: dict[str, Any] = {}
        self.exact: dict[str, str] = {}

    def text(self, key: str) -> str | None:
        """The string under a key; None when it is null or absent."""
        raw = self.values.get(key)
        if raw is None:
            return None
        if jsontext.first_byte(raw) == ord("N"):
            raise RecordError("expected a string", f"{self.path}.{key}")
        try:
            text: str | None = _text.decode(raw)
        except msgspec.ValidationError:
            raise RecordError("expected a string", f"{self.path}.{key}") from None
        return text

    def required(self, key: str) -> str:
        """The string under a key that must be there."""
        text = self.text(key)
        if text is None:
            reason = "expected a string" if key in self.values else "the key is missing"
            raise RecordError(reason, f"{self.path}.{key}")
        return text

    def value(self, key: str, first: str, what: str) -> Raw | None:
        """The JSON value under a key, of one type or null; None when it is null or absent.

        Args:
            key: the key.
            first: the character that values of this type begin with.
            what: name of the type, for the message.
        """
        raw = self.values.get(key)
        if raw is None or is_null(raw):
            return None
        if jsontext.first_byte(raw) != ord(first):
            raise RecordError(f"expected {what}", f"{self.path}.{key}")
        return raw

    def number(self, key: str) -> float | None:
        """The number under a key; None when it is null, absent or not a finite float."""
        raw = self.values.get(key)
        if raw is None or is_null(raw):
            return None
        value = number_of(raw, f"{self.path}.{key}")
        if value is None:
            self.fields[key] = raw
        elif jsontext.encode(value) != bytes(raw):
            self.exact[key] = bytes(raw).decode("ascii")
        return value

    def homeless(self, key: str) -> None:
        """Keep the value of a key that no column of this row holds."""
        raw = self.values.get(key)
        if raw is not None and not is_null(raw):
            self.fields[key] = raw

    def finish(self) -> dict[str, Any]:
        """Complete ``fields`` and return the value of ``$shape``."""
        keys = tuple(self.values)
        layout = layout_of(self.name, keys)
        for key in layout.unknown:
            self.fields[key] = self.values[key]
        if not layout.usual or any(is_null(self.values[key]) for key in layout.optional):
            self.shape["keys"] = keys
        if self.exact:
            self.shape["exact"] = self.exact
        return self.shape

    def extra(self) -> str | None:
        """The column ``extra``."""
        self.finish()
        return pack(self.fields, shape=self.shape)


def number_of(raw: Raw, path: str) -> float | None:
    """A JSON number as a float; None when no finite float is near it."""
    try:
        return _number.decode(raw)
    except msgspec.ValidationError:
        text = bytes(raw).decode("utf-8", "replace")
        if text[0] not in "-0123456789" and not jsontext.has_mark(text):
            raise RecordError("expected a number", path) from None
        return None


def write_number(value: float | None, exact: str | None) -> float | Raw | None:
    """A number as the source spelled it, unless it was edited since."""
    if exact is not None and value is not None and float(exact) == value:
        return jsontext.raw(exact)
    return value


def arrange(class_name: str, values: Mapping[str, Any], extra: Extra) -> dict[str, Any]:
    """Put the keys of an object in the order of the source, or in the usual one.

    Args:
        class_name: class of the object.
        values: key -> value as the columns have it now; None is written as null where the
            key belongs to the object.
        extra: its ``extra``: the form, and the keys that no column holds.
    """
    fields = extra.fields
    keys = extra.shape.get("keys")
    if keys is None:
        keys = [
            key
            for key in ORDER[class_name]
            if key not in OPTIONAL or values.get(key) is not None or key in fields
        ]
    out: dict[str, Any] = {}
    for key in keys:
        value = values.get(key)
        if value is None and key in fields:
            value = fields[key]
        elif key not in values and key not in ORDER[class_name]:
            continue
        out[key] = value
    for key, value in values.items():
        if value is not None and key not in out:
            out[key] = value
    for key, value in fields.items():
        out.setdefault(key, value)
    return out
