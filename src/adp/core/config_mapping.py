"""What the readers of other systems' configurations share.

Such a file is read as it is. Each of its settings is either mapped to ours, or listed with the
reason why it has no counterpart; none is dropped without a word.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Convert = Callable[[Any, Mapping[str, Any]], Mapping[str, Any]]
"""From the value and the whole file to values by path of ours."""


@dataclass(frozen=True)
class Target:
    """What becomes of one setting.

    Attributes:
        to: where it goes, such as ``lora.r``; empty when it has no counterpart.
        note: why not, or what is different.
        convert: values by path, when it is not the same value at ``to``.
        off: why there is nothing to set when `convert` gives nothing.
    """

    to: str
    note: str = ""
    convert: Convert | None = None
    off: str = "it is as it is here without it"


@dataclass(frozen=True)
class Mapped:
    """One setting that was mapped.

    Attributes:
        name: its name in the file.
        value: its value there.
        to: paths of ours with their values.
        note: what is different.
    """

    name: str
    value: Any
    to: dict[str, Any]
    note: str = ""


@dataclass(frozen=True)
class Left:
    """One setting without a counterpart.

    Attributes:
        name: its name in the file.
        value: its value there.
        why: why it has none.
    """

    name: str
    value: Any
    why: str

    @property
    def matters(self) -> bool:
        """Whether it is switched on in the file."""
        return self.value not in (None, False, "", [], {})


@dataclass
class MappedConfig:
    """Another system's configuration in our terms.

    Attributes:
        system: whose it is.
        plain: keys and values of ours.
        mapped: what was mapped.
        left: what has no counterpart.
    """

    system: str
    plain: dict[str, Any] = field(default_factory=dict)
    mapped: list[Mapped] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)

    def lines(self) -> list[str]:
        """What was done, for people: a line each."""
        lines = []
        for item in self.mapped:
            to = ", ".join(f"{path} = {_short(value)}" for path, value in item.to.items())
            note = f" ({item.note})" if item.note else ""
            lines.append(f"{item.name} = {_short(item.value)} -> {to}{note}")
        lines += [
            f"{entry.name} = {_short(entry.value)} -> nothing: {entry.why}"
            for entry in self.left
            if entry.matters
        ]
        off = [entry.name for entry in self.left if not entry.matters]
        if off:
            lines.append(f"without counterpart, and off in the file: {', '.join(off)}")
        return lines


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


_SHOWN = 60
"""Characters of a value that are shown."""


def translate(system: str, given: Mapping[str, Any], rules: Mapping[str, Target]) -> MappedConfig:
    """Map each setting by its rule.

    Args:
        system: whose they are.
        given: settings by name; names inside sections with dots.
        rules: by name.
    """
    mapped_config = MappedConfig(system)
    for name, value in given.items():
        rule = rules.get(name)
        if rule is None:
            mapped_config.left.append(Left(name, value, "it is not known"))
            continue
        if not rule.to and rule.convert is None:
            mapped_config.left.append(Left(name, value, rule.note))
            continue
        to = dict(rule.convert(value, given)) if rule.convert else {rule.to: value}
        if not to:
            mapped_config.left.append(Left(name, value, rule.off))
            continue
        for path, new in to.items():
            put(mapped_config.plain, path, new)
        mapped_config.mapped.append(Mapped(name, value, to, rule.note))
    return mapped_config


def put(plain: dict[str, Any], path: str, value: Any) -> None:
    """Set a value at a path with dots."""
    *way, last = path.split(".")
    place = plain
    for name in way:
        if not isinstance(place.get(name), dict):
            place[name] = {}
        place = place[name]
    place[last] = value


def flat(given: Mapping[str, Any], deep: tuple[str, ...] = ()) -> dict[str, Any]:
    """Settings of sections under names with dots.

    Args:
        given: sections with their settings.
        deep: sections that are settings as a whole.
    """
    results: dict[str, Any] = {}
    for name, value in given.items():
        if isinstance(value, dict) and value and name not in deep:
            results.update({f"{name}.{child}": result for child, result in value.items()})
        else:
            results[name] = value
    return results


def when(path: str, wanted: Any = True) -> Convert:
    """A switch that is set only when the value is a certain one."""
    return lambda value, given: {path: True} if value == wanted else {}


def given_only(path: str) -> Convert:
    """A value that is set unless it is null."""
    return lambda value, given: {} if value is None else {path: value}
