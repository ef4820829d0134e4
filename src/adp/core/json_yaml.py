"""YAML whose values are those of JSON (the JSON schema of YAML 1.2), such as an OpenAPI file.

``no`` and ``2024-01-31`` are texts, as YAML 1.2 has them, and keys are always texts. Nothing is
merged: merge keys grow without bound where they name one another. Values are made of the events of
the parser, one by one: its own loaders call themselves for each level, which a file can bring down.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from adp.core.yaml_text import measure, no_yaml, too_deep, too_large
from adp_schema.errors import UsageError

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAGS = "tag:yaml.org,2002:"
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def parse_json_yaml(text: str, name: str, what: str, *, largest: int, deepest: int) -> Any:
    """Read YAML that holds what JSON can hold.

    Args:
        text: the YAML.
        name: what errors call it.
        what: what it is, such as ``recipe``.
        largest: values that it may hold, those behind aliases counted each time.
        deepest: how deep they may stand in one another.

    Raises:
        UsageError: it cannot be read, or is too large.
    """
    try:
        value = _Values(what, largest, deepest).read(text)
        measure(value, what, largest, deepest)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    except yaml.YAMLError as error:
        raise no_yaml(error, name) from None
    except ValueError as error:  # a number of too many digits
        raise UsageError(f"{name} holds a value that cannot be read: {error}") from None
    return value


class _Values:
    """Values out of the events of a parser."""

    def __init__(self, what: str, largest: int, deepest: int) -> None:
        self._what, self._largest, self._deepest = what, largest, deepest
        self._count = 0  # values, those behind aliases counted each time
        self._counts: dict[str, int] = {}  # of each anchor that is ended
        self._begun: list[tuple[str | None, int]] = []  # anchor and count of what is not ended
        self._open: list[Any] = []  # lists and dicts that are not ended
        self._keys: list[str | None] = []  # of each the key that waits for its value
        self._anchors: dict[str, Any] = {}
        self._documents: list[Any] = []

    def read(self, text: str) -> Any:
        """The one value of a text."""
        for event in yaml.parse(text, _LOADER):
            self._take(event)
            if len(self._documents) > 1:
                raise UsageError("it holds more than one document; keep one")
        return self._documents[0] if self._documents else None

    def _take(self, event: Any) -> None:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            _check_tag(event.tag, ("map", "seq"), line)
            value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
            self._put(value, event.anchor, line)
            self._open.append(value)
            self._keys.append(None)
            self._begun.append((event.anchor, self._count))
            if len(self._open) > self._deepest:
                raise UsageError(too_deep(self._deepest))
        elif isinstance(event, yaml.CollectionEndEvent):
            self._open.pop()
            self._keys.pop()
            anchor, count = self._begun.pop()
            if anchor:
                self._counts[anchor] = self._count - count
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise UsageError(f"line {line}: no value has the name &{event.anchor}")
            if event.anchor in [name for name, _ in self._begun]:
                raise UsageError(f"line {line}: the value &{event.anchor} holds itself")
            self._count += self._counts.get(event.anchor, 0)
            self._put(self._anchors[event.anchor], None, line)
        elif isinstance(event, yaml.ScalarEvent):
            if self._open and isinstance(self._open[-1], dict) and self._keys[-1] is None:
                self._keys[-1] = _key(event, self._open[-1], line)
                if event.anchor:
                    self._anchors[event.anchor] = event.value
            else:
                self._put(_scalar(event, line), event.anchor, line)

    def _put(self, value: Any, anchor: str | None, line: int) -> None:
        self._count += 1
        if self._count > self._largest:
            raise UsageError(too_large(self._what, self._largest))
        if anchor:
            self._anchors[anchor] = value
            self._counts.pop(anchor, None)
        if not self._open:
            self._documents.append(value)
        elif isinstance(self._open[-1], list):
            self._open[-1].append(value)
        else:
            key = self._keys[-1]
            if key is None:
                raise UsageError(f"line {line}: a key is no text")
            self._open[-1][key] = value
            self._keys[-1] = None


def _key(event: yaml.ScalarEvent, mapping: dict[str, Any], line: int) -> str:
    key = str(event.value)
    if key == "<<" and not event.style:
        raise UsageError(f"line {line}: merge keys (<<) are not read; write the keys out")
    if key in mapping:
        raise UsageError(f"line {line}: the key {key!r} is given twice")
    return key


def _scalar(event: yaml.ScalarEvent, line: int) -> Any:
    text = str(event.value)
    _check_tag(event.tag, ("str", "int", "float", "bool", "null"), line)
    if event.style or event.tag in ("!", f"{_TAGS}str"):
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def _check_tag(tag: str | None, known: tuple[str, ...], line: int) -> None:
    if tag not in (None, "!") and tag not in [_TAGS + name for name in known]:
        raise UsageError(f"line {line}: the tag {tag} is none of JSON; remove it")
