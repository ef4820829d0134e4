"""The tools of reference data: their form, and the one of OpenAI that M3 shows to a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from adp_schema import jsontext

_BRACE, _BRACKET, _QUOTE = 0x7B, 0x5B, 0x22
_KEYS = ("name", "description", "parameters")
_WHOLE = ["type", "required", "properties"]
"""Keys of parameters that are a whole schema already. The order tells them apart from a schema that
is put around properties."""


def offered(raw: Raw) -> str | None:
    """Tools in the form of OpenAI; None when they cannot be written back from it.

    A tool has the properties of its parameters alone; without a word on which are required, all
    are. Newer files have one tool whose parameters are a whole schema, which stays as it is.
    """
    if jsontext.first_byte(raw) != _BRACKET or jsontext.has_mark(bytes(raw).decode("utf-8")):
        return None
    results: list[Any] = []
    for item in jsontext.decode_array(raw):
        if jsontext.first_byte(item) != _BRACE:
            return None
        tool: dict[str, Any] = dict(jsontext.decode_object(item))
        if list(tool) != [key for key in _KEYS if key in tool] or "name" not in tool:
            return None
        if "parameters" in tool:
            if jsontext.first_byte(tool["parameters"]) != _BRACE:
                return None
            properties = jsontext.decode_object(tool["parameters"])
            if not _is_whole(properties):
                schema = {"type": "object", "properties": tool["parameters"]}
                tool["parameters"] = {**schema, "required": list(properties)}
        results.append({"type": "function", "function": tool})
    text = jsontext.one_line(jsontext.encode(results))
    given = jsontext.relayout(bytes(raw), -1)
    back = bare(text)
    same = back is not None and jsontext.relayout(bytes(back), -1) == given
    return text if same else None


def bare(text: str) -> Raw | None:
    """The inverse of `offered`; None when the tools have another form."""
    results: list[Any] = []
    for item in jsontext.decode_array(text.encode("utf-8")):
        tool = jsontext.decode_object(item)
        if list(tool) != ["type", "function"]:
            return None
        child: dict[str, Any] = dict(jsontext.decode_object(tool["function"]))
        if "parameters" in child:
            schema = jsontext.decode_object(child["parameters"])
            if not _is_whole(schema):
                if list(schema) != ["type", "properties", "required"]:
                    return None
                required = jsontext.decode_value(schema["required"])
                if required != list(jsontext.decode_object(schema["properties"])):
                    return None
                child["parameters"] = schema["properties"]
        results.append(child)
    return jsontext.raw(jsontext.encode(results).decode("utf-8"))


def _is_whole(schema: Mapping[str, Raw]) -> bool:
    """Whether it is the schema of an object, and no properties of these names."""
    return (
        list(schema) == _WHOLE
        and jsontext.decode_value(schema["type"]) == "object"
        and jsontext.first_byte(schema["required"]) == _BRACKET
        and jsontext.first_byte(schema["properties"]) == _BRACE
    )
