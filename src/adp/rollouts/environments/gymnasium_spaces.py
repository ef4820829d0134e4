"""Spaces of gymnasium as JSON: the schema of actions, actions out of JSON, observations as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adp.rollouts.tools import ToolError, arguments_schema
from adp.rollouts.turns import ErrorType
from adp_schema.errors import UsageError

MOST_VALUES = 4000
"""Numbers of an array that are shown; of a larger one, such as an image, only the shape is."""


def schema_of(space: Any) -> dict[str, Any]:
    """The JSON Schema of a space's members.

    Args:
        space: a space of gymnasium.

    Raises:
        UsageError: it is a graph, or a space that gymnasium does not know.
    """
    kind = type(space).__name__
    if kind == "Discrete":
        return _whole(int(space.start), int(space.start) + int(space.n) - 1)
    if kind == "MultiBinary":
        return _nested(tuple(space.shape), {"type": "integer", "enum": [0, 1]})
    if kind == "MultiDiscrete":
        return _multi_discrete(space)
    if kind == "Box":
        return _box(space)
    if kind == "Text":
        return {
            "type": "string",
            "minLength": int(space.min_length),
            "maxLength": int(space.max_length),
        }
    if kind == "Dict":
        return arguments_schema({str(key): schema_of(child) for key, child in space.spaces.items()})
    if kind == "Tuple":
        return _tuple([schema_of(child) for child in space.spaces])
    if kind == "Sequence" and not space.stack:
        return {"type": "array", "items": schema_of(space.feature_space)}
    if kind == "OneOf":
        return {
            "anyOf": [
                arguments_schema({"choice": {"const": number}, "value": schema_of(child)})
                for number, child in enumerate(space.spaces)
            ]
        }
    raise UsageError(f"actions of the space {kind} cannot be written as JSON")


def action_of(space: Any, value: Any) -> Any:
    """An action out of JSON that fits `schema_of`.

    Args:
        space: the space of actions.
        value: the JSON value.

    Raises:
        ToolError: it is no member of the space.
    """
    try:
        action = _member(space, value)
        fits = bool(space.contains(action))
    except (ValueError, TypeError, ArithmeticError, KeyError, IndexError):
        fits = False
    if not fits:
        raise ToolError(f"the action is not in {space}", ErrorType.INVALID_ARGS)
    return action


def observed(value: Any) -> Any:
    """An observation, or an info, as JSON."""
    if isinstance(value, np.ndarray):
        if value.size > MOST_VALUES:
            return f"array of shape {value.shape}"
        return [observed(item) for item in value] if value.ndim else observed(value[()])
    if isinstance(value, np.floating):
        # The shortest digits that give this number again: 0.1 of 32 bits is shown as 0.1.
        return observed(float(str(value)))
    if isinstance(value, np.generic):
        return observed(value.item())
    if isinstance(value, Mapping):
        return {str(key): observed(child) for key, child in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [observed(child) for child in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def _member(space: Any, value: Any) -> Any:
    kind = type(space).__name__
    if kind == "Discrete":
        return int(value)
    if kind in ("Box", "MultiBinary", "MultiDiscrete"):
        with np.errstate(over="raise"):  # or a number that is too large would become infinite
            return np.array(value, dtype=space.dtype)
    if kind == "Dict":
        return {key: _member(child, value[str(key)]) for key, child in space.spaces.items()}
    if kind == "Tuple":
        pairs = zip(space.spaces, value, strict=True)
        return tuple(_member(child, result) for child, result in pairs)
    if kind == "Sequence":
        return tuple(_member(space.feature_space, item) for item in value)
    if kind == "OneOf":
        number = int(value["choice"])
        return number, _member(space.spaces[number], value["value"])
    return value


def _whole(least: int, most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


def _tuple(schemas: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    count = len(schemas)
    return {"type": "array", "prefixItems": list(schemas), "minItems": count, "maxItems": count}


def _nested(shape: Sequence[int], schema: Mapping[str, Any]) -> dict[str, Any]:
    """An array of this shape, of values of this schema."""
    results = dict(schema)
    for size in reversed(shape):
        results = {"type": "array", "items": results, "minItems": int(size), "maxItems": int(size)}
    return results


def _multi_discrete(space: Any) -> dict[str, Any]:
    if space.nvec.ndim != 1:
        return _nested(space.nvec.shape, {"type": "integer"})
    pairs = zip(space.start.tolist(), space.nvec.tolist(), strict=True)
    return _tuple([_whole(start, start + count - 1) for start, count in pairs])


def _box(space: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "number"}
    if np.issubdtype(space.dtype, np.integer):
        schema = {"type": "integer"}
    bounds = (("minimum", space.low, min), ("maximum", space.high, max))
    for name, bound, widest in bounds:
        value = widest(bound.ravel().tolist(), default=math.inf)
        if math.isfinite(value):
            schema[name] = value
    return _nested(space.shape, schema)
