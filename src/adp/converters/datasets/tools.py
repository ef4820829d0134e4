"""Tools on offer: out of a column or a text, and with parameters as JSON Schema has them."""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Raw

from adp.converters.datasets.literals import literal
from adp.converters.datasets.paths import opened, text_at
from adp.converters.datasets.recipe import ToolsSpec
from adp.converters.datasets.tool_signatures import signatures
from adp.converters.datasets.tool_texts import described, documented, numbered
from adp.converters.datasets.turns import DatasetRow
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext

_PARAMETERS = ("parameters", "arguments", "input_schema", "inputSchema", "input_parameters",
               "params", "kwargs", "required_parameters")  # fmt: skip
_NAMES = ("name", "api_name", "tool_name", "function_name", "name_for_model")
_TYPES = {
    "str": "string", "string": "string", "text": "string", "int": "integer", "integer": "integer",
    "long": "integer", "float": "number", "double": "number", "number": "number",
    "bool": "boolean", "boolean": "boolean", "list": "array", "array": "array", "tuple": "array",
    "set": "array", "dict": "object", "object": "object", "hashmap": "object", "null": "null",
    "none": "null",
}  # fmt: skip
_WORD = re.compile(r"[A-Za-z]+")
_MOST = 4000
"""Tools of one row; a text of more is no list of tools."""

_decoder = json.JSONDecoder(strict=False)


def find_tools(spec: ToolsSpec, row: DatasetRow) -> tuple[str, str] | None:
    """The tools of a row: a JSON list, and ``recorded`` or ``parsed``; None when it has none.

    Args:
        spec: where they stand.
        row: the row, which keeps what it says of them.
    """
    for path in spec.path:
        raw = row.look(path)
        tools = None if raw is None else _tools_at(raw, spec)
        if tools is not None:
            made, origin = tools
            return jsontext.text_of([normal_tool(tool) for tool in made]), origin
    if spec.given:
        return jsontext.text_of([normal_tool(tool) for tool in spec.given]), "builtin"
    return None


def _tools_at(raw: Raw, spec: ToolsSpec) -> tuple[list[Any], str] | None:
    value = opened(raw)
    if spec.form == "described":
        texts = jsontext.decode_value(value)
        parts = described(texts) if isinstance(texts, dict) else []
        return (parts, "parsed") if parts else None
    if spec.after is None and jsontext.first_byte(value) in (BRACKET, BRACE):
        plain = jsontext.decode_value(value)
        tools = list(plain) if isinstance(plain, list) else [plain]
        if all(isinstance(it, str) for it in tools):  # each is the JSON of a tool
            tools = [_object(it) for it in tools]
        return (tools, "recorded") if tools and all(map(_is_tool, tools)) else None
    text = text_at(raw)
    parsed = [] if text is None else tools_in(text, spec)
    return (parsed, "parsed") if parsed else None


def _object(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return literal(text)


def tools_in(text: str, spec: ToolsSpec) -> list[Any]:
    """The tools that a text holds; none when it holds something else."""
    start = 0
    if spec.after is not None:
        place = text.find(spec.after)
        if place < 0:
            return []
        start = place + len(spec.after)
    end = len(text)
    if spec.before is not None and (place := text.find(spec.before, start)) >= 0:
        end = place
    part = text[start:end]
    tools: Any
    if spec.form == "python":
        tools = literal(_bracketed(part))
    elif spec.form == "lines":
        tools = [_object(line) for line in part.splitlines() if line.strip()]
    elif spec.form == "numbered":
        tools = numbered(part)
    elif spec.form == "documented":
        tools = documented(part)
    elif spec.form == "signatures":
        tools = signatures(part)
    elif spec.form == "objects":
        tools = _objects(part)
    else:
        tools = _listed(part)
    items = tools if isinstance(tools, list) else []
    return [item for item in items if _is_tool(item)]


def _listed(text: str) -> list[Any]:
    """A JSON list, which need not be the end of the text; or objects one after another."""
    begin = re.search(r"[\[{]", text)
    if begin is None:
        return []
    if begin[0] == "{":
        return _objects(text)
    try:
        value, _ = _decoder.raw_decode(text, begin.start())
    except (ValueError, RecursionError):
        value = literal(_bracketed(text))
    return value if isinstance(value, list) else []


def _bracketed(text: str) -> str:
    start, end = text.find("["), text.rfind("]")
    return text[start : end + 1] if 0 <= start < end else ""


def _objects(text: str) -> list[Any]:
    """JSON objects that follow each other."""
    results: list[Any] = []
    position = text.find("{")
    while position >= 0 and len(results) < _MOST:
        try:
            value, position = _decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        results.append(value)
        position = text.find("{", position)
    return results


def _is_tool(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    function = value.get("function")
    if isinstance(function, dict):
        return isinstance(function.get("name"), str)
    return any(isinstance(value.get(name), str) for name in _NAMES)


def normal_tool(tool: dict[str, Any]) -> dict[str, Any]:
    """A tool in the form of OpenAI's API: what it has already stays as it is."""
    given = tool.get("function")
    if isinstance(given, dict):
        function = _function(given)
        return tool if function == given else {**tool, "function": function}
    return {"type": "function", "function": _function(tool)}


def _function(given: dict[str, Any]) -> dict[str, Any]:
    out = dict(given)
    if out.get("type") == "function":
        del out["type"]
    name = next((key for key in _NAMES if isinstance(given.get(key), str)), "name")
    if name != "name":
        out = {"name": given[name], **{key: it for key, it in out.items() if key != name}}
    key = next((key for key in _PARAMETERS if key in given), None)
    schema = normal_schema(given[key]) if key else {"type": "object", "properties": {}}
    if key not in (None, "parameters"):
        out = {it: value for it, value in out.items() if it != key}
    required = out.get("required", ())
    if required is None or (isinstance(required, list) and "required" not in schema and required):
        out.pop("required")
        if required:
            schema = {**schema, "required": required}
    out["parameters"] = schema
    return out


def normal_schema(given: Any) -> dict[str, Any]:
    """Parameters as a JSON Schema, from one, from a flat list of them, or from nothing."""
    if not isinstance(given, dict):
        listed = given if isinstance(given, list) else []
        properties: dict[str, Any] = {it: {} for it in listed if isinstance(it, str)}
        for it in listed:
            if isinstance(it, dict) and isinstance(it.get("name"), str):
                rest = {key: value for key, value in it.items() if key not in ("name", "required")}
                properties[it["name"]] = _property(rest)[0]
        return {"type": "object", "properties": properties}
    kind = given.get("type")
    is_schema = (isinstance(kind, str) and _plain_type(kind) == "object") or "properties" in given
    if not given or (is_schema and not isinstance(kind, dict)):
        return {"type": "object", "properties": {}, **_schema(given)}
    properties, required = {}, []
    for name, value in given.items():
        properties[name], is_required = _property(value)
        if is_required:
            required.append(name)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def _schema(given: dict[str, Any]) -> dict[str, Any]:
    """A schema with the words of Python for types replaced; what stands for nothing is left out."""
    out: dict[str, Any] = {}
    for key, value in given.items():
        if key == "type" and isinstance(value, str):
            out |= _typed(value)[0]
        elif key == "properties":
            filled = value if isinstance(value, dict) else {}
            out[key] = {name: _property(it)[0] for name, it in filled.items() if it is not None}
        elif key == "items" and isinstance(value, dict):
            out[key] = _schema(value)
        elif not (value is None and key in ("required", "enum", "items", "default")):
            out[key] = value
    return out


def _property(value: Any) -> tuple[dict[str, Any], bool]:
    """The schema of a parameter, and whether it must be given."""
    if isinstance(value, str):
        schema, optional = _typed(value)
        return schema, not optional
    if not isinstance(value, dict):
        return {}, False
    kind = value.get("type")
    optional = isinstance(kind, str) and _typed(kind)[1]
    is_flagged = value.get("required")
    if isinstance(is_flagged, bool):
        return _schema({key: it for key, it in value.items() if key != "required"}), is_flagged
    return _schema(value), not optional and "default" not in value


def _typed(words: str) -> tuple[dict[str, Any], bool]:
    """The schema of a type in the words of Python, and whether it is optional."""
    text = words.strip()
    optional = "optional" in text.lower()
    text = re.sub(r"(?i),?\s*(optional|default[^,]*)\s*$", "", text).strip()
    wrapped = re.fullmatch(r"(?i)optional\[(.*)\]", text)
    text = wrapped[1] if wrapped else text
    plain = _plain_type(text)
    if plain is None:
        # Words that say no type, such as names of classes: they stay readable.
        return ({"description": words.strip()} if text else {}), optional
    schema: dict[str, Any] = {"type": plain}
    items = re.fullmatch(r"(?i)(?:list|array|set|tuple)\[(\w+)\]", text)
    if items and plain == "array" and (of := _TYPES.get(items[1].lower())):
        schema["items"] = {"type": of}
    return schema, optional


def _plain_type(text: str) -> str | None:
    word = _WORD.match(text)
    return _TYPES.get(word[0].lower()) if word else None


def inferred_tools(calls: list[dict[str, Any]]) -> str | None:
    """Tools made of calls: names, and the arguments that occur with the types of their values.

    Args:
        calls: rows of the table of calls.
    """
    tools: dict[str, dict[str, Any]] = {}
    for call in calls:
        if call.get("name") is None or call.get("kind") == "code":
            continue
        properties = tools.setdefault(call["name"], {})
        text = call.get("arguments")
        for key, value in _members(text or "{}").items():
            properties.setdefault(key, _schema_of(value))
    if not tools:
        return None
    return jsontext.text_of(
        [
            {"type": "function", "function": {
                "name": name, "parameters": {"type": "object", "properties": properties}}}
            for name, properties in tools.items()
        ]
    )  # fmt: skip


def _members(text: str) -> dict[str, Any]:
    """The arguments of a call, with values of the right types; the size of numbers is lost."""
    try:
        values = json.loads(text, parse_int=lambda _: 0, parse_float=lambda _: 0.0)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def _schema_of(value: Any) -> dict[str, Any]:
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"),
             (list, "array"), (dict, "object"))  # fmt: skip
    return next(({"type": word} for kind, word in kinds if isinstance(value, kind)), {})
