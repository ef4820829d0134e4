"""The page of training configurations, and their JSON Schema."""

from __future__ import annotations

import json
from typing import Any

from adp.trainers.config import TrainConfig, json_schema
from adp.trainers.readers import llamafactory, playground, sage
from adp.trainers.readers.mapping import Target
from tools.markdown import NOTE, cell
from tools.ops_page import plain, type_words

_READERS: tuple[tuple[str, str, dict[str, Target]], ...] = (
    (
        "M3 and LLaMA-Factory",
        "`train_lora.json`: settings of LLaMA-Factory in one flat file. Of a DPO run the losses "
        "are mapped by the table in [dpo-losses.md](dpo-losses.md).",
        llamafactory.RULES,
    ),
    ("Tiny Tool Use", "Sections `model`, `training`, `data`, ...", playground.RULES),
    ("SAGE", "`AgentSFTConfig`, with the names of its code and of its documentation.", sage.RULES),
)


def train_page() -> str:
    """All settings by section, and what becomes of the settings of other systems."""
    lines = [
        "# Configuration of a training",
        "",
        NOTE,
        "",
        "`adp train METHOD --config train.yaml` reads these settings; a word that is not",
        "here is an error. Names are those of TRL, PEFT and transformers. `--set lora.r=64`",
        "changes one. [train-config.schema.json](train-config.schema.json) is for editors:",
        "",
        "```yaml",
        "# yaml-language-server: $schema=docs/train-config.schema.json",
        "```",
        "",
        "The table says what `--set` takes and what each setting is without it. "
        "[training.md](training.md)",
        "explains the methods.",
    ]
    schema = TrainConfig.model_json_schema()
    lines += ["", "## Top level", "", *_table(schema, schema["$defs"], skip_sections=True)]
    for name, field in schema["properties"].items():
        section = _section(field, schema["$defs"])
        if section is not None:
            lines += ["", f"## {name}", "", field.get("description", ""), ""]
            lines += _table(section, schema["$defs"])
    lines += [
        "",
        "## Files of other systems",
        "",
        "They are read as they are. What becomes of each setting is printed, also what has no",
        "counterpart; `--dry-run` stops after that.",
    ]
    for title, text, rules in _READERS:
        lines += ["", f"### {title}", "", text, "", "| setting | becomes | |", "|---|---|---|"]
        lines += [_rule(name, rule) for name, rule in rules.items()]
    return "\n".join(lines) + "\n"


def _section(field: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any] | None:
    """The section that a field is; None when it is a plain value."""
    for item in [field, *field.get("anyOf", [])]:
        if "$ref" in item:
            result: dict[str, Any] = defs[item["$ref"].rsplit("/", 1)[-1]]
            return result if "properties" in result else None
    return None


def _table(
    schema: dict[str, Any], defs: dict[str, Any], *, skip_sections: bool = False, above: str = ""
) -> list[str]:
    lines = [] if above else ["| setting | type | default | meaning |", "|---|---|---|---|"]
    for name, field in schema["properties"].items():
        section = _section(field, defs)
        if section is not None:
            if not skip_sections:
                lines += _table(section, defs, above=f"{above}{name}.")
            continue
        shown = cell(type_words(field, defs))
        default = f"`{plain(field['default'])}`" if "default" in field else ""
        meaning = cell(field.get("description", ""))
        lines.append(f"| `{above}{name}` | {shown} | {cell(default)} | {meaning} |")
    return lines


def _rule(name: str, rule: Target) -> str:
    if rule.to:
        return f"| `{name}` | `{rule.to}` | {cell(rule.note)} |"
    if rule.convert is None:
        return f"| `{name}` | nothing | {cell(rule.note)} |"
    return f"| `{name}` | {_tried(name, rule)} | {cell(rule.note)} |"


_TRIES: tuple[Any, ...] = (True, 4, 0.5, "full", "fa2", "ds_z3_config.json", "a", "sft", False, 500)


def _tried(name: str, rule: Target) -> str:
    """Where a converted value goes, found by converting some."""
    results: dict[str, None] = {}
    given = {"stage": "kto", "use_lora_plus": True, "model.name": "m", "data.strategy": "a"}
    for value in _TRIES:
        try:
            assert rule.convert is not None
            paths = rule.convert(value, given)
        except Exception:
            continue
        results.update(dict.fromkeys(paths))
    return ", ".join(f"`{path}`" for path in results) or "nothing"


def train_schema() -> str:
    """The JSON Schema of configurations, for editors."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
