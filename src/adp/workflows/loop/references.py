"""What ``${NAME}`` stands for in the options of a stage. Nothing is evaluated: it is looked up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from adp_schema.errors import UsageError, unknown_name

_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)\}")
_DEEPEST = 8
"""Variables inside variables."""

LAST, BASE = "last", "base"
"""The model of the last train stage, and that which the loop begins with; what ``model:`` takes."""


@dataclass
class LoopNames:
    """What the names in a stage stand for.

    Attributes:
        values: name -> value, which may have references itself.
        stages: name -> folder of a stage that comes before.
        last: folder of the model of the last train stage.
        last_stage: that stage, ``round-1.train``; None: the model that the loop begins with.
        used: stages that references named.
    """

    values: Mapping[str, Any]
    stages: Mapping[str, str]
    last: str
    last_stage: str | None
    used: dict[str, None] = field(default_factory=dict)

    def put_in(self, value: Any, depth: int = 0) -> Any:
        """A value with what its references stand for.

        A text that is nothing but a reference becomes the value itself, of whatever type.
        ``$${`` is a ``${`` that is none.

        Raises:
            UsageError: a name is not known.
        """
        if depth > _DEEPEST:
            raise UsageError("a variable stands for itself; write its value out")
        if isinstance(value, Mapping):
            return {key: self._member(key, item, depth) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.put_in(item, depth) for item in value]
        if not isinstance(value, str):
            return value
        full = _REFERENCE.fullmatch(value)
        if full is not None and full[1] is not None:
            return self._value(full[1].strip(), depth)
        return _REFERENCE.sub(lambda match: self._text(match[1], depth), value)

    def _member(self, key: Any, value: Any, depth: int) -> Any:
        if key == "model" and value in (LAST, BASE):
            return self._value(value, depth)
        return self.put_in(value, depth)

    def _text(self, name: str | None, depth: int) -> str:
        if name is None:
            return "${"
        value = self._value(name.strip(), depth)
        if isinstance(value, dict | list):
            raise UsageError(f"${{{name}}} is no single value; it cannot stand inside a text")
        return "" if value is None else str(value)

    def _value(self, name: str, depth: int) -> Any:
        if name == LAST:
            if self.last_stage is not None:
                self.used[self.last_stage] = None
            return self.last
        if name in self.values:
            return self.put_in(self.values[name], depth + 1)
        if name in self.stages:
            folder = self.stages[name]
            self.used[folder.replace("/", ".")] = None
            return folder
        known = [LAST, *self.values, *self.stages]
        raise UsageError(f"${{{name}}}: {unknown_name('name', name, known)}")
