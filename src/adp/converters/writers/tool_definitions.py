"""Definitions of tools, whose styles differ between APIs in the names of three keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from msgspec import Raw

from adp.converters.reading import BRACE, BRACKET
from adp.converters.unwritten_columns import REASON
from adp_schema import jsontext
from adp_schema.extra_column import original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Trajectory

_SCHEMAS = ("parameters", "input_schema", "inputSchema", "schema")


@dataclass
class ToolDefinition:
    """A tool.

    Attributes:
        whole: its definition as the source wrote it.
        name: its name.
        description: what it does.
        schema: JSON schema of its arguments; None for a tool that a provider defines.
        rest: further keys.
    """

    whole: dict[str, Raw]
    name: Raw
    description: Raw | None
    schema: Raw | None
    rest: dict[str, Raw]

    @property
    def is_of_provider(self) -> bool:
        """Whether it is a tool that a provider defines, of which a type says all."""
        return self.schema is None and "type" in self.rest

    def in_style(self, schema_key: str, **more: Any) -> dict[str, Any]:
        """The definition with name, description and schema beside each other.

        Args:
            schema_key: key of the schema.
            more: what stands before them, such as ``type``.
        """
        out = {**more, "name": self.name}
        if self.description is not None:
            out["description"] = self.description
        out[schema_key] = self.schema or Raw(b'{"type":"object","properties":{}}')
        return {**out, **self.rest}


def tool_definitions(run: Trajectory, losses: Losses) -> list[ToolDefinition]:
    """The tools on offer, whatever API their definitions are of.

    Args:
        run: the run.
        losses: takes a tool that has no name.
    """
    if run.tools is None:
        return []
    if original(run, "tools", unpack(run.extra)) != run.tools:
        losses.add("$.tools", "what is no JSON in them is written as the store has it")
    raw = jsontext.raw(run.tools)
    items = jsontext.decode_array(raw) if jsontext.first_byte(raw) == BRACKET else [raw]
    out = [_definition(item) for item in items]
    for number, tool in enumerate(out):
        if tool is None:
            losses.add(f"$.tools[{number}]", REASON)
    return [tool for tool in out if tool is not None]


def _definition(raw: Raw) -> ToolDefinition | None:
    whole = _object(raw)
    values = dict(whole)
    function = _object(values.get("function"))
    if function:
        del values["function"]
        values = {**function, **values}
    name = values.pop("name", None)
    if name is None or jsontext.first_byte(name) != 0x22:
        return None
    key = next((key for key in _SCHEMAS if _object(values.get(key))), None)
    schema = values.pop(key) if key is not None else None
    if bytes(values.get("type", b"")) in (b'"function"', b'"custom"'):
        del values["type"]
    values = {key: value for key, value in values.items() if bytes(value) != b"null"}
    description = values.pop("description", None)
    return ToolDefinition(whole, name, description, schema, values)


def _object(raw: Raw | None) -> dict[str, Raw]:
    if raw is None or jsontext.first_byte(raw) != BRACE:
        return {}
    return jsontext.decode_exact(raw)
