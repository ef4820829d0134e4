"""The page of the ops of curation, and the JSON Schema of recipes."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from typing import Any

from adp.curation.op import Op
from adp.curation.recipe import json_schema
from adp.curation.registry import OPS
from tools.markdown import NOTE, cell


def ops_page() -> str:
    """One section an op: what it does, its options, the columns that it adds, cost and source."""
    lines = ["# Ops of curation", "", NOTE, ""]
    lines += [
        "[curation.md](curation.md) says how a recipe is written and run. Where two stages give a"
    ]
    lines += ["column of one name, `as` beside the op puts the name of the stage before it:", ""]
    lines += ["```yaml", "- measure: {}", "  as: before  # its columns are before_tokens and so on"]
    lines += ["```", ""]
    lines += ["| op | what it does |", "|---|---|"]
    lines += [f"| [{op.name}](#{op.name}) | {cell(op.title)} |" for op in OPS.all()]
    for op in OPS.all():
        lines += ["", f"## {op.name}", "", *_about(op), "", *_options(op), *_columns(op)]
        lines += ["", f"Cost: {op.cost}", "", f"Source: {op.source}"]
    return "\n".join(lines) + "\n"


def _about(op: Op) -> list[str]:
    """The docstring of the op's module, with code names as Markdown."""
    target = OPS.target(op.name).partition(":")[0]
    text = inspect.cleandoc(importlib.import_module(target).__doc__ or op.title)
    return [re.sub(r"``([^`]+)``", r"`\1`", line) for line in text.splitlines()]


def _options(op: Op) -> list[str]:
    fields = op.options.model_fields
    if not fields:
        return ["It has no options."]
    schema = op.options.model_json_schema()
    lines = ["| option | type | default | meaning |", "|---|---|---|---|"]
    for name, info in fields.items():
        native = schema["properties"][info.alias or name]
        default = "required" if info.is_required() else f"`{plain(native.get('default'))}`"
        shown = cell(type_words(native, schema.get("$defs", {})))
        meaning = cell(info.description or "")
        lines.append(f"| `{info.alias or name}` | {shown} | {cell(default)} | {meaning} |")
    return lines


def plain(value: Any) -> str:
    """A default as JSON."""
    return json.dumps(value, ensure_ascii=False)


def type_words(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    """A JSON Schema in a few words."""
    if "$ref" in schema:
        return type_words(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions)
    if "anyOf" in schema:
        kinds = [type_words(item, definitions) for item in schema["anyOf"]]
        return " or ".join(dict.fromkeys(kind for kind in kinds if kind != "null"))
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {type_words(schema.get('items', {}), definitions)}"
    if kind == "object" and "properties" in schema:
        return "{" + ", ".join(schema["properties"]) + "}"
    return str(kind)


def _columns(op: Op) -> list[str]:
    """The columns that an op adds with its default options, as far as they show without data."""
    try:
        options = op.options()
    except ValueError:
        return []
    lines: list[str] = []
    for title, columns in (
        ("column of the trajectory", op.columns(options)),
        ("column of the step", op.step_columns(options)),
    ):
        if columns:
            lines += ["", f"| {title} | meaning |", "|---|---|"]
            lines += [f"| `{name}` | {cell(text)} |" for name, text in columns.items()]
    return lines


def recipe_schema() -> str:
    """The JSON Schema of recipes, for editors."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
