"""Methods whose types and docstring say what the schema of a tool says, for TRL to read."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from types import GenericAlias
from typing import Any, Literal

from adp.rollouts.turns import Tool
from adp_schema.errors import UsageError


def method_of(tool: Tool) -> Callable[..., str]:
    """A method that calls ``self._called(name of the tool, arguments)``.

    Args:
        tool: the tool in the OpenAI shape.

    Raises:
        UsageError: the name of an argument is none that Python knows.
    """
    function = tool["function"]
    called = str(function["name"])
    schema = function.get("parameters") or {}
    properties = schema.get("properties") or {}
    required = set(schema.get("required") or ())

    def method(self: Any, **arguments: Any) -> str:
        text: str = self._called(called, arguments)
        return text

    kinds = {name: type_of(result, schema) for name, result in properties.items()}
    try:
        parameters = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if name in required else _default(properties[name]),
                annotation=kind,
            )
            for name, kind in kinds.items()
        ]
    except ValueError as error:
        raise UsageError(
            f"TRL cannot use the tool '{called}': {error}; names of arguments must be Python's"
        ) from error
    me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    described = method  # a function takes attributes that its type does not know
    described.__name__ = described.__qualname__ = called
    described.__annotations__ = {**kinds, "return": str}
    described.__signature__ = inspect.Signature([me, *parameters])  # type: ignore[attr-defined]
    described.__doc__ = _docstring(called, function.get("description"), properties)
    return described


def type_of(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Any:
    """The Python type of a JSON Schema, as far as TRL's own reading of types goes.

    Args:
        schema: the schema.
        root: the whole schema, for references.
        depth: how deep it lies; from 10 on it may be anything.
    """
    if not isinstance(schema, Mapping) or depth > 10:
        return Any
    if isinstance(schema.get("$ref"), str):
        value = (root.get("$defs") or {}).get(schema["$ref"].rpartition("/")[2])
        return type_of(value, root, depth + 1)
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if values and all(isinstance(item, str | int | bool | None) for item in values):
        return Literal[tuple(values)]
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return _union([type_of(item, root, depth + 1) for item in schema[key]])
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union([type_of({**schema, "type": item}, root, depth + 1) for item in kind])
    if kind == "array":
        child = type_of(schema.get("items"), root, depth + 1)
        return list if child is Any else GenericAlias(list, (child,))
    return _TYPES.get(str(kind), Any)


_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict,
    "null": type(None),
}


def _union(kinds: Sequence[Any]) -> Any:
    return Any if Any in kinds else functools.reduce(operator.or_, kinds)


def _default(schema: Any) -> Any:
    return schema.get("default") if isinstance(schema, Mapping) else None


def _docstring(name: str, about: Any, properties: Mapping[str, Any]) -> str:
    lines = [_quiet(about) or name]
    if properties:
        lines += ["", "Args:"]
    for key, schema in properties.items():
        description = _quiet(schema.get("description") if isinstance(schema, Mapping) else None)
        lines.append(f"    {key}: {description or key}")
    return "\n".join(lines)


def _quiet(text: Any) -> str:
    """A description on one line, without what a docstring's sections begin with."""
    result = " ".join(str(text or "").split())
    for word in ("Args", "Returns", "Raises"):
        result = result.replace(f"{word}:", word)
    # "(choices: ...)" at the end has a meaning of its own
    return result + "." if result.endswith(")") else result
