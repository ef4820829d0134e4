"""What the steps of a conversation hold already, so that repeated messages are not kept again."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw


class KnownValues:
    """What steps say already, by the last key and the value of each scalar; long texts alone."""

    def __init__(self) -> None:
        self._pairs: set[tuple[str, str]] = set()

    def add(self, raw: Raw | bytes) -> None:
        """Note all that a value says."""
        try:
            self._add(msgspec.json.decode(raw), "")
        except (msgspec.DecodeError, RecursionError):
            return

    def _add(self, value: Any, key: str) -> None:
        if isinstance(value, dict) and value:
            for name, item in value.items():
                self._add(item, name)
        elif isinstance(value, list) and value:
            for item in value:
                self._add(item, key)
        else:
            self._pairs.add(_pair(key, value))

    def rest(self, raw: Raw | bytes) -> bytes | None:
        """The part of a value that no step holds; None when there is none.

        Args:
            raw: JSON text.

        Returns:
            The text itself when all is new.
        """
        try:
            value = msgspec.json.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            return bytes(raw)
        rest = self._rest(value, "")
        if rest is _NOTHING:
            return None
        return bytes(raw) if rest == value else msgspec.json.encode(rest)

    def _rest(self, value: Any, key: str) -> Any:
        if isinstance(value, dict) and value:
            items = {name: self._rest(item, name) for name, item in value.items()}
            left = {name: item for name, item in items.items() if item is not _NOTHING}
            return left or _NOTHING
        if isinstance(value, list) and value:
            rests = [self._rest(item, key) for item in value]
            return [item for item in rests if item is not _NOTHING] or _NOTHING
        return _NOTHING if _pair(key, value) in self._pairs else value


_NOTHING = object()
_LONG = 20


def _pair(key: str, value: Any) -> tuple[str, str]:
    if isinstance(value, str) and len(value) > _LONG:
        return "", value
    return key, f"{type(value).__name__} {value}"
