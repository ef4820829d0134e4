"""The JSON Schema of the files of loops, for editors."""

from __future__ import annotations

from typing import Any

from adp.workflows.loop.loop_file import LoopFile, RoundEntry
from adp.workflows.loop.stage_kind import KINDS, kind_of

_REFERENCE = {"type": "string", "pattern": r"\$\{[^{}]*\}"}
"""What may stand in place of any value."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the files of loops: a reference may stand wherever a value does."""
    schema = LoopFile.model_json_schema(ref_template="#/$defs/{model}")
    definitions = schema.setdefault("$defs", {})
    definitions.pop("StageEntry", None)
    stages = []
    for name in KINDS:
        kind = kind_of(name)
        options = kind.options.model_json_schema(ref_template="#/$defs/{model}")
        definitions.update(options.pop("$defs", {}))
        for field, described in options.get("properties", {}).items():
            text = described.pop("description", "")
            options["properties"][field] = {"description": text, "anyOf": [described, _REFERENCE]}
        options.pop("title", None)
        options["description"] = kind.about
        label = {"type": "string", "description": "Name of the stage, and of its folder."}
        stages.append(
            {
                "type": "object",
                "properties": {name: options, "as": label},
                "required": [name],
                "additionalProperties": False,
            }
        )
    entry = definitions["RoundEntry"]["properties"]
    entry["stages"] = {
        "type": "array",
        "minItems": 1,
        "items": {"anyOf": stages},
        "description": RoundEntry.model_fields["stages"].description,
    }
    several = schema["properties"]["rounds"]
    text = several.pop("description", "")
    single = {"$ref": "#/$defs/RoundEntry"}
    schema["properties"]["rounds"] = {"description": text, "anyOf": [several, single]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
