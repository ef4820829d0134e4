"""From schemas of OpenAPI to JSON Schema (2020-12), which tools have.

What a schema refers to is put into ``$defs`` under its own name, once, so that circles of
references are no trouble; what is small and refers to nothing further is written out in place. Both
``nullable`` of 3.0 and boolean limits of 2.0 become what JSON Schema has for them. ``oneOf``
becomes ``anyOf``, for alternatives that overlap are common and the server decides. Patterns are
told in the description and not checked: they are of another dialect, and matching them may take for
ever.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from adp.rollouts.environments.openapi.document import ApiDocument, OperationError, below

TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
MOST_REFERENCES = 1_000
"""References that the schemas of an operation may hold: a tool with more is of no use."""
_SMALL = 40
"""Values of a schema that is written out in place."""

_TEXTS = frozenset({"title", "description", "format"})
_NUMBERS = frozenset({"minimum", "maximum", "multipleOf"})
_COUNTS = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
     "minContains", "maxContains"}
)  # fmt: skip
_CHILDREN = frozenset(
    {"not", "contains", "propertyNames", "if", "then", "else", "additionalProperties"}
)  # fmt: skip
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else"})
"""Keywords whose schemas are about the same value: a circle of these has no end."""

References = dict[str, bool]
"""JSON pointers that a schema refers to; true where it is about the same value."""


class Schemas:
    """Schemas of one document.

    Args:
        document: the document.
    """

    def __init__(self, document: ApiDocument) -> None:
        self.document = document
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()
        self._closures: dict[frozenset[str], dict[str, Any]] = {}
        self._pointers: dict[str, str] = {}
        self._components: dict[str, tuple[Any, References] | OperationError] = {}

    def converted(self, schema: Any, place: str, references: References) -> Any:
        """A schema as JSON Schema.

        Args:
            schema: the schema of the document.
            place: its JSON path.
            references: gets what it refers to.

        Raises:
            OperationError: it is no schema.
        """
        return self._convert(schema, place, references, True)

    def definitions(self, references: References) -> dict[str, Any]:
        """All that is referred to, directly and indirectly, by name.

        Raises:
            OperationError: a reference leads nowhere, or what is there is no schema.
        """
        key = frozenset(references)
        if key not in self._closures:
            self._closures[key] = self._closure(references)
        return self._closures[key]

    def _closure(self, references: References) -> dict[str, Any]:
        results: dict[str, Any] = {}
        edges: dict[str, list[str]] = {}
        pending, count = list(references), 0
        while pending:
            pointer = pending.pop()
            name = self._names[pointer]
            if name in results:
                continue
            results[name], further = self._component(pointer)
            count += 1 + len(further)
            if count > MOST_REFERENCES:
                raise OperationError(
                    f"its schemas refer to others more than {MOST_REFERENCES:,} times",
                    self._pointers[pointer],
                )
            edges[pointer] = [target for target, in_place in further.items() if in_place]
            pending += further
        _check_circles(edges, self._pointers)
        return dict(sorted(results.items()))

    def _component(self, pointer: str) -> tuple[Any, References]:
        known = self._components.get(pointer)
        if known is None:
            further: References = {}
            try:
                value, place = self.document.at(pointer, self._pointers[pointer])
                known = (self._convert(value, place, further, True), further)
            except OperationError as error:
                known = error
            self._components[pointer] = known
        if isinstance(known, OperationError):
            raise OperationError(known.reason, known.place)
        return known

    def _convert(self, schema: Any, place: str, references: References, in_place: bool) -> Any:
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            raise OperationError("it is no schema", place)
        if "$ref" in schema:
            return self._referred(schema, place, references, in_place)
        result: dict[str, Any] = {}
        for key, value in schema.items():
            where = below(place, key)
            if key in _LISTS:
                entries = _checked(isinstance(value, list) and value, value, where, "a list")
                key = "anyOf" if key == "oneOf" else key
                result[key] = result.get(key, []) + [
                    self._convert(
                        item, below(where, number), references, in_place and key in _IN_PLACE
                    )
                    for number, item in enumerate(entries)
                ]
            elif key in _CHILDREN:
                result[key] = self._convert(value, where, references, in_place and key in _IN_PLACE)
            elif key == "items":
                self._items(result, value, where, references)
            elif key == "properties":
                result[key] = self._properties(value, where, references)
            else:
                _take_plain(result, key, value, where)
        return _finished(result, schema)

    def _items(
        self, result: dict[str, Any], value: Any, place: str, references: References
    ) -> None:
        if isinstance(value, list):  # a list of places, as before 2020-12
            result["prefixItems"] = [
                self._convert(item, below(place, number), references, False)
                for number, item in enumerate(value)
            ]
        else:
            result["items"] = self._convert(value, place, references, False)

    def _properties(self, value: Any, place: str, references: References) -> dict[str, Any]:
        _checked(isinstance(value, Mapping), value, place, "an object")
        return {
            name: self._convert(child, below(place, name), references, False)
            for name, child in value.items()
            if not is_read_only(child)
        }

    def _referred(
        self, schema: Mapping[str, Any], place: str, references: References, in_place: bool
    ) -> dict[str, Any]:
        pointer = schema["$ref"]
        self.document.follow(schema, place)  # it must lead somewhere
        further: dict[str, Any] = {}
        for key in ("description", "title", "default"):
            if key in schema:
                _take_plain(further, key, schema[key], below(place, key))
        value, where = self.document.at(pointer, place)
        if _is_small(value):
            return {**self._convert(value, where, {}, False), **further}
        if pointer not in self._names:
            self._name(pointer, place)
        references[pointer] = references.get(pointer, False) or in_place
        return {"$ref": f"#/$defs/{self._names[pointer]}", **further}

    def _name(self, pointer: str, place: str) -> None:
        base = "".join(c if c.isascii() and c.isalnum() else "_" for c in pointer.split("/")[-1])
        name, number = base[:60] or "_", 1
        while name in self._taken:
            number += 1
            name = f"{base[:60]}_{number}"
        self._taken.add(name)
        self._names[pointer], self._pointers[pointer] = name, place


def is_read_only(schema: Any) -> bool:
    """Whether a property is one of answers alone."""
    return isinstance(schema, Mapping) and schema.get("readOnly") is True


def _is_small(schema: Any) -> bool:
    """Whether a schema is small and refers to nothing."""
    pending, count = [schema], 0
    while pending:
        value = pending.pop()
        count += 1
        if count > _SMALL or (isinstance(value, Mapping) and "$ref" in value):
            return False
        if isinstance(value, Mapping):
            pending += value.values()
        elif isinstance(value, list):
            pending += value
    return isinstance(schema, Mapping)


def _take_plain(result: dict[str, Any], key: str, value: Any, place: str) -> None:
    """Take a keyword that holds no schema; what JSON Schema does not know is left out."""
    if key in _TEXTS and isinstance(value, str):
        result[key] = value
    elif key in _NUMBERS:
        right = _is_number(value) and (key != "multipleOf" or value > 0)
        result[key] = _checked(right, value, place, "a number")
    elif key in _COUNTS:
        right = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        result[key] = _checked(right, value, place, "a whole number")
    elif key in ("exclusiveMinimum", "exclusiveMaximum") and not isinstance(value, bool):
        result[key] = _checked(_is_number(value), value, place, "a number")
    elif key == "uniqueItems":
        result[key] = _checked(isinstance(value, bool), value, place, "true or false")
    elif key in ("default", "const"):
        result[key] = _finite(value, place)
    elif key == "enum":
        listed = _checked(isinstance(value, list) and value, value, place, "a list of values")
        result[key] = _finite(listed, place)
    elif key == "required" and isinstance(value, list):
        right = all(isinstance(name, str) for name in value)
        result[key] = list(dict.fromkeys(_checked(right, value, place, "a list of names")))
    elif key == "type":
        kinds = value if isinstance(value, list) else [value]
        right = bool(kinds) and all(isinstance(kind, str) and kind in TYPES for kind in kinds)
        _checked(right, value, place, "a type of JSON Schema")
        result[key] = list(dict.fromkeys(kinds)) if isinstance(value, list) else value


def _finished(result: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with what several keywords say together."""
    for exclusive, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if schema.get(exclusive) is True and limit in result:
            result[exclusive] = result.pop(limit)
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and "required" in result:
        hidden = {name for name, child in properties.items() if is_read_only(child)}
        result["required"] = [name for name in result["required"] if name not in hidden]
    if "patternProperties" in schema:  # these are not checked, as no pattern is
        result.pop("additionalProperties", None)
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        before = f"{result['description']} " if "description" in result else ""
        result["description"] = f"{before}Pattern: {pattern}"
    if schema.get("nullable") is True or schema.get("x-nullable") is True:
        return _nullable(result)
    return result


def _nullable(result: dict[str, Any]) -> dict[str, Any]:
    kind = result.get("type")
    if kind is None or {"allOf", "anyOf", "const", "not"} & set(result):
        outside: dict[str, Any] = {
            key: result.pop(key) for key in ("title", "description") if key in result
        }
        return {**outside, "anyOf": [result, {"type": "null"}]} if result else outside
    if "enum" in result and None not in result["enum"]:
        result["enum"] = [*result["enum"], None]
    kinds = kind if isinstance(kind, list) else [kind]
    return {**result, "type": list(dict.fromkeys([*kinds, "null"]))}


def _check_circles(edges: Mapping[str, list[str]], places: Mapping[str, str]) -> None:
    """Refuse schemas that are about the same value in a circle.

    Raises:
        OperationError: there are such.
    """
    done: set[str] = set()
    for start in edges:
        path: dict[str, None] = {}
        steps: list[tuple[str, bool]] = [(start, True)]
        while steps:
            pointer, enters = steps.pop()
            if not enters:
                path.pop(pointer)
                done.add(pointer)
            elif pointer in path:
                raise OperationError(
                    f"'{pointer[:200]}' is made of itself, in a circle", places[pointer]
                )
            elif pointer not in done:
                path[pointer] = None
                steps.append((pointer, False))
                steps += [(target, True) for target in edges.get(pointer, ())]


def _checked(right: Any, value: Any, place: str, what: str) -> Any:
    if not right:
        raise OperationError(f"{str(value)[:60]!r} is not {what}", place)
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _finite(value: Any, place: str) -> Any:
    """A value, checked for numbers that JSON does not have."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, float) and not math.isfinite(item):
            raise OperationError(f"{item} is no number of JSON", place)
        if isinstance(item, dict):
            pending += item.values()
        elif isinstance(item, list):
            pending += item
    return value
