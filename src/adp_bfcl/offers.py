"""Functions of BFCL as tools in the OpenAI shape, the way BFCL offers them to models."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from adp.rollouts.turns import Tool
from adp_bfcl.categories import Language

JSON_TYPES = {
    "integer": "integer",
    "number": "number",
    "float": "number",
    "string": "string",
    "boolean": "boolean",
    "bool": "boolean",
    "array": "array",
    "list": "array",
    "dict": "object",
    "object": "object",
    "tuple": "array",
    "any": "string",
}
"""Types of JSON Schema by those of BFCL; what is not here is a string."""

_ABOUT = {
    Language.PYTHON: " Note that the provided function is in Python 3 syntax.",
    Language.JAVA: " Note that the provided function is in Java 8 SDK syntax.",
    Language.JAVASCRIPT: " Note that the provided function is in JavaScript syntax.",
}
_LANGUAGE = {Language.JAVA: "Java", Language.JAVASCRIPT: "JavaScript"}
_NOT_SENT = ("response", "optional")


def offered_name(name: str) -> str:
    """The name under which a function is offered; the protocol has no dots in names."""
    return name.replace(".", "_")


def hinted(function: Mapping[str, Any], language: Language) -> dict[str, Any]:
    """The documentation with BFCL's hints about the language.

    Parameters of Java and JavaScript become texts that hold source, as the checker expects them.
    """
    result = copy.deepcopy(dict(function))
    result["description"] = str(result.get("description") or "") + _ABOUT[language]
    if language is Language.PYTHON:
        return result
    for parameter in result["parameters"]["properties"].values():
        _as_source(parameter, language)
    return result


def _as_source(parameter: dict[str, Any], language: Language) -> None:
    declared, name = str(parameter.get("type")), _LANGUAGE[language]
    text = str(parameter.get("description") or "")
    if declared == "any":
        text += f" This parameter can be of any type of {name} object in string representation."
    else:
        text += f" This is {name} {declared} type parameter in string representation."
    if declared in ("ArrayList", "Array", "array"):
        items = (parameter.pop("items", None) or {}).get("type", "any")
        text += f" The list elements are of type {items}; they are not in string representation."
    if declared == "dict" and "properties" in parameter:
        child = json.dumps(parameter.pop("properties"))
        text += (
            " The dictionary entries have the following schema; they are not in string "
            f"representation. {child}"
        )
    parameter["description"], parameter["type"] = text, "string"


def tool_of(function: Mapping[str, Any], language: Language = Language.PYTHON) -> Tool:
    """A function as a tool: types of JSON Schema, no dots in the name.

    Args:
        function: its documentation, with BFCL's types.
        language: the language of its category.
    """
    hints = hinted(function, language)
    values = {key: value for key, value in hints.items() if key not in _NOT_SENT}
    values["name"] = offered_name(str(hints["name"]))
    parameters = {key: value for key, value in hints["parameters"].items() if key != "optional"}
    properties = parameters.get("properties") or {}
    parameters["type"] = "object"
    parameters["properties"] = {name: _schema(value) for name, value in properties.items()}
    values["parameters"] = parameters
    return {"type": "function", "function": values}


def _schema(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {"type": "string"}
    schema = {key: child for key, child in value.items() if key != "optional"}
    declared = str(schema.get("type") or "string")
    schema["type"] = JSON_TYPES.get(declared, "string")
    if declared == "float":
        schema["format"] = "float"
        schema["description"] = f"{schema.get('description') or ''} This is a float type value."
    if isinstance(schema.get("properties"), Mapping):
        schema["properties"] = {
            key: _schema(result) for key, result in schema["properties"].items()
        }
    if isinstance(schema.get("items"), Mapping):
        schema["items"] = _schema(schema["items"])
    return schema
