"""Objects of a log that say again what the one of their kind before them said."""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from adp.converters.kit.source_object import SourceObject


class Repeats:
    """Leaves out values that the object of the same name before had, too, and names their keys."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], Raw] = {}

    def drop(self, name: str, source: SourceObject, extra: dict[str, Any]) -> None:
        """Drop the values that are as they were; their keys go to ``unchanged`` of ``extra``."""
        same = []
        for key, raw in list(source.values.items()):
            if self._last.get((name, key)) == raw:
                del source.values[key]
                same.append(key)
            else:
                self._last[name, key] = raw
        if same:
            extra["unchanged"] = same
