"""Arguments drawn from the JSON Schemas of tools.

Types, enums, constants, defaults, examples, ranges, multiples, lengths, formats, patterns, arrays,
nested objects, alternatives and local references are followed. What is drawn is checked against the
whole schema, so that a word that is not followed costs draws and never makes a wrong value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from adp.rollouts.generators.drafts import NoValueError
from adp.rollouts.generators.word_lists import FORMATS, maker_for
from adp.rollouts.tools import FunctionTool
from adp.rollouts.turns import Tool
from adp_schema.errors import UsageError

_DRAWS = 30
"""How often arguments are drawn until they fit."""
_DEEPEST = 6
"""Levels below which nothing optional is drawn."""
_LONGEST = 1000
"""Items of an array and characters of a text, at most."""
_OPTIONAL = 0.5
"""Share of optional arguments that are given."""
_RANGE = 100
"""Numbers are drawn up to this far from the bound that is known, or from 1."""

GivenValues = Mapping[str, Mapping[str, Sequence[Any]]]
"""Tool -> parameter -> values; the tool ``*`` stands for all."""


class ArgumentValues:
    """Draws arguments of tools.

    Args:
        given: values that the user names; they are drawn where they are there.
    """

    def __init__(self, given: GivenValues | None = None) -> None:
        self._given = given or {}
        self._checks: dict[str, FunctionTool] = {}

    def given_for(self, tool: str, parameter: str) -> Sequence[Any]:
        """The values that the user names for a parameter."""
        for name in (tool, "*"):
            values = self._given.get(name, {}).get(parameter)
            if values:
                return values
        return ()

    def draw(
        self, tool: Tool, rng: Random, fixed: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Arguments that fit the schema of a tool.

        Args:
            tool: the tool, in the OpenAI shape.
            rng: where they are drawn from.
            fixed: arguments that are known; the others are drawn.

        Raises:
            NoValueError: none were found.
            UsageError: the parameters are no JSON Schema.
        """
        self.wrong(tool, {})  # a schema that is none is said now
        schema = parameters_of(tool)
        name = str(tool["function"]["name"])
        reason: str | None = None
        for _ in range(_DRAWS):
            drawing = _Drawing(self, name, schema, rng)
            arguments = drawing.object(schema, 0, dict(fixed or {}))
            reason = self.wrong(tool, arguments)
            if reason is None:
                return arguments
        raise NoValueError(f"no arguments of '{name}' were found that fit its schema: {reason}")

    def wrong(self, tool: Tool, arguments: Mapping[str, Any]) -> str | None:
        """What is wrong with arguments; None when they fit the schema."""
        name = str(tool["function"]["name"])
        if name not in self._checks:
            self._checks[name] = FunctionTool(name, "", parameters_of(tool), lambda: None)
        return self._checks[name].wrong(arguments)


def parameters_of(tool: Tool) -> Mapping[str, Any]:
    """The JSON Schema of a tool's arguments; of one without any, that of an empty object."""
    return tool["function"].get("parameters") or {"type": "object", "properties": {}}


def properties_of(tool: Tool) -> Mapping[str, Any]:
    """The schemas of a tool's parameters, by name."""
    properties = parameters_of(tool).get("properties")
    return properties if isinstance(properties, Mapping) else {}


class _Drawing:
    """One draw for one tool."""

    def __init__(self, owner: ArgumentValues, tool: str, root: Any, rng: Random) -> None:
        self._owner, self._tool, self._root, self._rng = owner, tool, root, rng

    def object(self, schema: Any, depth: int, fixed: dict[str, Any]) -> dict[str, Any]:
        """An object; the order is that of the schema."""
        properties = schema.get("properties") or {}
        required = schema.get("required") or ()
        drawn: dict[str, Any] = {}
        for name, child in {**{key: {} for key in required}, **properties}.items():
            if name in fixed:
                drawn[name] = fixed[name]
            elif name in required or (depth < _DEEPEST and self._rng.random() < _OPTIONAL):
                drawn[name] = self.value(child, name, depth + 1)
        return {**drawn, **fixed}

    def value(self, schema: Any, name: str, depth: int) -> Any:
        """A value of a schema."""
        rng = self._rng
        if depth > 4 * _DEEPEST:
            raise NoValueError("the schema is nested too deeply")
        given = self._owner.given_for(self._tool, name)
        if given:
            return rng.choice(given)
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        for word in ("enum", "examples"):
            if schema.get(word):
                return rng.choice(schema[word])
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = rng.choice([item for item in kind if item != "null"] or ["null"])
        if kind is None:
            kind = next((made for word, made in _IMPLIED if word in schema), "string")
        return self._of_type(kind, schema, name, depth)

    def _of_type(self, kind: str, schema: Any, name: str, depth: int) -> Any:
        if kind == "object":
            return self.object(schema, depth, {})
        if kind == "array":
            return self._array(schema, name, depth)
        if kind == "boolean":
            return self._rng.random() < 0.5
        if kind in ("integer", "number"):
            return _number(kind, schema, self._rng)
        return None if kind == "null" else _text(schema, name, self._rng)

    def _array(self, schema: Any, name: str, depth: int) -> list[Any]:
        first = [self.value(item, name, depth + 1) for item in schema.get("prefixItems") or ()]
        least = min(schema.get("minItems", 1 if depth <= _DEEPEST else 0), _LONGEST)
        count = self._rng.randint(least, max(least, min(schema.get("maxItems", 3), least + 2)))
        items = schema.get("items")
        while items is not False and len(first) < count:
            item = self.value(items or {}, _single(name), depth + 1)
            if not schema.get("uniqueItems") or item not in first or self._rng.random() < 0.1:
                first.append(item)
        return first

    def _resolved(self, schema: Any) -> Mapping[str, Any]:
        """A schema with its reference, its parts and one of its alternatives put in."""
        for _ in range(_DEEPEST):
            if not isinstance(schema, Mapping):
                return {}
            if isinstance(schema.get("$ref"), str):
                rest = {key: value for key, value in schema.items() if key != "$ref"}
                schema = {**self._referred(schema["$ref"]), **rest}
            elif schema.get("allOf"):
                parts = [self._resolved(part) for part in schema["allOf"]]
                rest = {key: value for key, value in schema.items() if key != "allOf"}
                schema = _joined([*parts, rest])
            elif chosen := schema.get("anyOf") or schema.get("oneOf"):
                real = [part for part in chosen if part != {"type": "null"}] or chosen
                rest = {key: value for key, value in schema.items() if key not in _EITHER}
                schema = _joined([rest, self._resolved(self._rng.choice(real))])
            else:
                return schema
        return schema if isinstance(schema, Mapping) else {}

    def _referred(self, reference: str) -> Mapping[str, Any]:
        referred: Any = self._root
        for part in reference.removeprefix("#").strip("/").split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            referred = referred.get(name) if isinstance(referred, Mapping) else None
        if not isinstance(referred, Mapping):
            raise UsageError(
                f"the parameters of the tool '{self._tool}' refer to {reference}, which is not in "
                "them; give it values with --values"
            )
        return referred


_EITHER = ("anyOf", "oneOf")
_IMPLIED = (
    *(("properties", "object"), ("items", "array"), ("prefixItems", "array")),
    *(("minimum", "number"), ("maximum", "number"), ("multipleOf", "number")),
)


def _joined(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Schemas that hold together."""
    result: dict[str, Any] = {}
    for part in parts:
        properties = {**result.get("properties", {}), **part.get("properties", {})}
        required = [*result.get("required", ()), *part.get("required", ())]
        result |= part
        result |= {"properties": properties} if properties else {}
        result |= {"required": required} if required else {}
    return result


def _single(name: str) -> str:
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


def _number(kind: str, schema: Any, rng: Random) -> int | float:
    low, high = schema.get("minimum"), schema.get("maximum")
    step = schema.get("multipleOf") or (1 if kind == "integer" else None)
    for word, sign in (("exclusiveMinimum", 1), ("exclusiveMaximum", -1)):
        bound = schema.get(word)
        if isinstance(bound, int | float) and not isinstance(bound, bool):
            inside = bound + sign * (step or 0.1)
            low, high = (inside, high) if sign > 0 else (low, inside)
    if low is None:
        low = 1 if high is None or high > 1 else high - _RANGE
    high = min(high, low + _RANGE) if high is not None else low + _RANGE
    if low > high:
        raise NoValueError("the range of a number is empty")
    if step is None:
        drawn = round(rng.uniform(low, high), 1)
        return float(min(max(drawn, low), high))
    first, last = math.ceil(low / step), math.floor(high / step)
    if first > last:
        raise NoValueError("no multiple is in the range of a number")
    value = rng.randint(first, last) * step
    return int(value) if kind == "integer" else float(value)


def _text(schema: Any, name: str, rng: Random) -> str:
    maker = FORMATS.get(schema.get("format", ""))
    description = str(schema.get("description") or "")
    if maker is None:
        maker = maker_for(name, description)
    least, most = min(schema.get("minLength", 0), _LONGEST), schema.get("maxLength")
    pattern = schema.get("pattern")
    for _ in range(_DRAWS):
        text = maker(rng)
        while len(text) < least:
            text = f"{text} {maker(rng)}"
        text = text if most is None else text[:most].rstrip() or text[:most]
        if pattern is None or _matches(pattern, text):
            return text
    raise NoValueError(f"no text was found for '{name}' that fits its pattern; give it values")


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True  # of another dialect; the check of the schema decides
