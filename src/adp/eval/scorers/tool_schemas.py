"""The tools on offer, as JSON Schemas that arguments can be checked with.

Lists come in the styles of OpenAI, Anthropic and MCP, with a bare map of parameters (M3), and with
the names of types of Gorilla and BFCL (``dict``, ``float``, ``tuple``, ``any``). What no JSON
Schema says is left out: an unknown type allows everything. ``pattern`` is left out, too: a pattern
out of a data set can take forever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from referencing import Registry
from referencing.exceptions import Unresolvable

from adp.rendering.arguments import tools_of
from adp.rollouts.trajectory_reading import cut, number_or_none

_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema", "schema")
_TYPES = {
    "dict": "object", "object": "object", "map": "object", "hashmap": "object",
    "float": "number", "number": "number", "double": "number",
    "int": "integer", "integer": "integer", "long": "integer",
    "str": "string", "string": "string", "text": "string", "char": "string",
    "bool": "boolean", "boolean": "boolean",
    "list": "array", "array": "array", "tuple": "array",
    "null": "null", "none": "null",
}  # fmt: skip
_NESTED = ("items", "additionalProperties", "not", "if", "then", "else", "contains")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions")
_NUMBERS = (
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
    "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
)  # fmt: skip
_KINDS = {"required": "missing", "type": "type", "enum": "enum", "const": "enum"}
_EXTRA = "extra"
_ERRORS = 20


@dataclass(frozen=True)
class ToolSchema:
    """A tool whose arguments can be checked.

    Attributes:
        name: its name.
        given: what the tool says of its arguments; None when it says nothing.
        listed: arguments that it lists; None when it takes others as well.
    """

    name: str
    given: Mapping[str, Any] | None = None
    listed: frozenset[str] | None = None

    @cached_property
    def validator(self) -> Any:
        """Checks arguments; None where the tool says nothing that is a schema."""
        if self.given is None:
            return None
        try:
            plain = _plain(self.given)
            Draft202012Validator.check_schema(plain)
        except (SchemaError, RecursionError, TypeError, ValueError, OverflowError):
            return None
        registry: Registry[Any] = Registry()  # an empty one: nothing is fetched
        return Draft202012Validator(plain, registry=registry)

    def wrong(self, arguments: Mapping[str, Any], *, extras: bool) -> list[tuple[str, str]]:
        """What is wrong with arguments: pairs of a kind and a sentence.

        Args:
            arguments: the arguments.
            extras: whether an argument that is not listed is wrong.

        Returns:
            Kinds are missing, type, enum, extra and other; empty when the arguments fit.
        """
        wrong: list[tuple[str, str]] = []
        if self.validator is not None:
            try:
                for error in self.validator.iter_errors(arguments):
                    wrong.append((_kind(error), cut(error.message)))
                    if len(wrong) >= _ERRORS:
                        break
            except (Unresolvable, RecursionError, TypeError, ValueError, OverflowError):
                # The schema itself is broken, which is not the agent's fault.
                wrong = []
        if extras and self.listed is not None:
            unknown = [name for name in arguments if name not in self.listed]
            kinds = {kind for kind, _ in wrong}
            if unknown and _EXTRA not in kinds:
                wrong.append((_EXTRA, cut(f"{unknown[0]!r} is not listed")))
        return wrong


def _kind(error: ValidationError) -> str:
    return _KINDS.get(str(error.validator)) or (
        _EXTRA if error.validator == "additionalProperties" else "other"
    )


@lru_cache(maxsize=256)
def schemas_of(text: str | None) -> Mapping[str, ToolSchema] | None:
    """The tools of the column ``tools`` by name; None when it lists none."""
    tools = tools_of(text, Counter())
    results: dict[str, ToolSchema] = {}
    for tool in tools:
        function = tool["function"]
        results.setdefault(function["name"], _schema(function))
    return results or None


def _schema(function: Mapping[str, Any]) -> ToolSchema:
    name = str(function["name"])
    given = next(
        (function[key] for key in _SCHEMA_KEYS if isinstance(function.get(key), dict)), None
    )
    if given is None:
        return ToolSchema(name)
    if not isinstance(given.get("properties"), dict) and _is_bare(given):
        given = {"type": "object", "properties": given}
    properties = given.get("properties")
    more = given.get("additionalProperties")
    mixed = any(key in given for key in ("anyOf", "oneOf", "allOf", "patternProperties", "$ref"))
    is_open = mixed or more is True or isinstance(more, dict) or not isinstance(properties, dict)
    listed = None if is_open or properties is None else frozenset(properties)
    return ToolSchema(name, given, listed)


def _is_bare(schema: Mapping[str, Any]) -> bool:
    """Whether it is a map of parameters without the object around it."""
    return bool(schema) and all(
        isinstance(value, dict) and "type" in value for value in schema.values()
    )


def _plain(schema: Any) -> Any:
    """A schema with the names of JSON Schema, and only what is understood."""
    if not isinstance(schema, dict):
        return schema if isinstance(schema, bool) else {}
    constraints = _constraints(schema)
    constraints |= {key: _plain(schema[key]) for key in _NESTED if key in schema}
    for key in _LISTED:
        if isinstance(schema.get(key), list) and schema[key]:
            constraints[key] = [_plain(child) for child in schema[key]]
    for key in _NAMED:
        if isinstance(schema.get(key), dict):
            constraints[key] = {name: _plain(child) for name, child in schema[key].items()}
    return constraints


def _constraints(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What a schema says without the schemas in it."""
    values = {key: schema[key] for key in _NUMBERS if number_or_none(schema.get(key)) is not None}
    values = {key: value for key, value in values.items() if not isinstance(value, bool)}
    if "const" in schema:
        values["const"] = schema["const"]
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        values["enum"] = schema["enum"]
    if isinstance(schema.get("required"), list):
        values["required"] = [name for name in schema["required"] if isinstance(name, str)]
    if isinstance(schema.get("uniqueItems"), bool):
        values["uniqueItems"] = schema["uniqueItems"]
    kinds = _types(schema.get("type"))
    if kinds:
        values["type"] = [*kinds, "null"] if schema.get("nullable") is True else kinds
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        values["$ref"] = reference
    return values


def _types(kind: Any) -> list[str]:
    """Names of types in JSON Schema; empty where one of them allows everything."""
    kinds = kind if isinstance(kind, list) else [kind]
    names = [_TYPES.get(item.lower()) if isinstance(item, str) else None for item in kinds]
    return [] if None in names else list(dict.fromkeys(name for name in names if name))
