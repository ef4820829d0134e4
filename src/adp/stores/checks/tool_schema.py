"""What a list of tools says about their arguments: a small part of JSON Schema.

Lists come in the styles of OpenAI (``function.parameters``), Anthropic (``input_schema``), MCP
(``inputSchema``), and with a bare map of parameters. What is not understood allows everything.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema", "schema")

_IS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: _is_integer(value),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}
_ALIASES = {
    "str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array",
    "dict": "object", "text": "string", "tuple": "array", "double": "number", "long": "integer",
}  # fmt: skip


def _is_integer(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


@dataclass(frozen=True)
class ArgumentSchema:
    """One tool.

    Attributes:
        name: its name.
        description: what it says about itself.
        properties: argument -> its schema; None when it is not known.
        required: arguments that a call must have.
        is_open: whether it takes arguments that are not listed.
    """

    name: str
    description: str | None = None
    properties: Mapping[str, Any] | None = None
    required: tuple[str, ...] = ()
    is_open: bool = False


@dataclass(frozen=True)
class ArgumentSchemas:
    """The tools of a trajectory.

    Attributes:
        by_name: the tools by name.
        nameless: number of entries that name no tool.
        repeated: names that are there more than once.
    """

    by_name: Mapping[str, ArgumentSchema] = field(default_factory=dict)
    nameless: int = 0
    repeated: tuple[str, ...] = ()


@functools.lru_cache(maxsize=256)
def read_tools(text: str) -> ArgumentSchemas | None:
    """Read the column ``tools``; None when it is no JSON."""
    try:
        entries = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    if isinstance(entries, dict):
        entries = [entries]
    if not isinstance(entries, list):
        return ArgumentSchemas(nameless=1)
    results: dict[str, ArgumentSchema] = {}
    nameless = 0
    repeated = []
    for entry in entries:
        # Gemini lists several functions in one entry.
        child = entry.get("functionDeclarations") if isinstance(entry, dict) else None
        for item in child if isinstance(child, list) else [entry]:
            tool = _tool(item)
            if tool is None:
                nameless += 1
            elif tool.name in results:
                repeated.append(tool.name)
            else:
                results[tool.name] = tool
    return ArgumentSchemas(results, nameless, tuple(repeated))


def _tool(entry: Any) -> ArgumentSchema | None:
    if isinstance(entry, str):
        return ArgumentSchema(entry) if entry else None
    if not isinstance(entry, dict):
        return None
    child = entry.get("function")
    body = child if isinstance(child, dict) else entry
    name = body.get("name")
    if not isinstance(name, str) or not name:
        # A built-in tool of a server is named by its type alone.
        name = entry.get("type")
        return ArgumentSchema(name) if isinstance(name, str) and name != "function" else None
    text = body.get("description")
    description = text if isinstance(text, str) else None
    schema = next((body[key] for key in _SCHEMA_KEYS if isinstance(body.get(key), dict)), None)
    if schema is None:
        return ArgumentSchema(name, description)
    return ArgumentSchema(name, description, *_arguments(schema))


def _arguments(schema: dict[str, Any]) -> tuple[dict[str, Any] | None, tuple[str, ...], bool]:
    """Arguments, required ones, and whether others are taken."""
    properties = schema.get("properties")
    if isinstance(properties, dict):
        names = schema.get("required")
        required = tuple(n for n in names if isinstance(n, str)) if isinstance(names, list) else ()
        mixed = any(key in schema for key in ("anyOf", "oneOf", "allOf", "patternProperties"))
        more = schema.get("additionalProperties")
        return properties, required, mixed or more is True or isinstance(more, dict)
    if schema and all(isinstance(value, dict) and "type" in value for value in schema.values()):
        return schema, (), False  # a bare map of parameters
    return None, (), True


def missing(tool: ArgumentSchema, arguments: Mapping[str, Any]) -> list[str]:
    """Required arguments that are not there."""
    return [name for name in tool.required if name not in arguments]


def unknown(tool: ArgumentSchema, arguments: Mapping[str, Any]) -> list[str]:
    """Arguments that the tool does not list."""
    known = tool.properties
    if known is None or tool.is_open:
        return []
    return [name for name in arguments if name not in known]


def misfits(tool: ArgumentSchema, arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Arguments of a wrong type, or not among the listed values, with what was expected."""
    results = []
    for name, value in arguments.items():
        schema = (tool.properties or {}).get(name)
        wanted = _expected(schema, value, optional=name not in tool.required)
        if wanted is not None:
            results.append((name, wanted))
    return results


def _expected(schema: Any, value: Any, *, optional: bool) -> str | None:
    """What a value should be; None when it fits, or nobody knows."""
    if not isinstance(schema, dict) or (value is None and optional):
        return None
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    names = [_name(item) for item in kinds]
    values = schema.get("enum")
    if isinstance(values, list) and values and value not in values:
        return f"one of {msgspec.json.encode(values).decode()}"
    if any(name not in _IS for name in names) or any(_IS[name](value) for name in names):
        return None
    return " or ".join(names)


def _name(kind: Any) -> str:
    """The type's name in JSON Schema; as it is when it is none."""
    text = kind.lower() if isinstance(kind, str) else ""
    return _ALIASES.get(text, text)
