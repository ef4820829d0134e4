"""What all options are: fields with checked values, described by their docstrings."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


def _describe_on_one_line(schema: dict[str, Any]) -> None:
    for field in schema.get("properties", {}).values():
        if "description" in field:
            field["description"] = " ".join(field["description"].split())


class OptionsModel(BaseModel):
    """Options of a part. Unknown names are refused; the docstring below a field describes it."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
        json_schema_extra=_describe_on_one_line,
    )
