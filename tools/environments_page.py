"""The pages of the built-in environments and policies, and their settings."""

from __future__ import annotations

from adp.rollouts.environment import ENVIRONMENTS, EnvironmentKind
from adp.rollouts.policy import POLICIES, PolicyKind
from tools.markdown import NOTE, table
from tools.ops_page import plain, type_words


def environments_page() -> str:
    """One section an environment: what it is, and its settings."""
    kinds = ENVIRONMENTS.all()
    lines = ["# Built-in environments", "", NOTE, ""]
    lines += [
        "[environments.md](environments.md) says how they are used and how one is written. A",
        "setting is given as `name:setting=value,setting=value`, or in a YAML file with a line",
        "`name:`. What makes its own tasks needs no `--tasks`.",
        "",
    ]
    rows = [
        (f"[{kind.name}](#{kind.name})", kind.about, "yes" if kind.tasks else "") for kind in kinds
    ]
    lines += table(("environment", "what it is", "own tasks"), rows)
    for kind in kinds:
        lines += ["", f"## {kind.name}", "", kind.about, "", *_settings(kind)]
    return "\n".join(lines) + "\n"


def policies_page() -> str:
    """One section a policy: what it is, and its settings."""
    kinds = POLICIES.all()
    lines = ["# Built-in policies", "", NOTE, ""]
    lines += [
        "[policies.md](policies.md) says how they are used and whose fault a failure is. A setting",
        "is given as `name:setting=value,setting=value`, or in a YAML file with a line `name:`.",
        "",
    ]
    rows = [(f"[{kind.name}](#{kind.name})", kind.about) for kind in kinds]
    lines += table(("policy", "what it is"), rows)
    for kind in kinds:
        lines += ["", f"## {kind.name}", "", kind.about, "", *_settings(kind)]
    return "\n".join(lines) + "\n"


def _settings(kind: EnvironmentKind | PolicyKind) -> list[str]:
    schema = kind.settings.model_json_schema()
    if not schema.get("properties"):
        return ["It has no settings."]
    rows = []
    for name, field in schema["properties"].items():
        required = name in schema.get("required", ())
        given = f"`{plain(field['default'])}`" if "default" in field else ""
        default = "required" if required else given
        shown = type_words(field, schema.get("$defs", {}))
        rows.append((f"`{name}`", shown, default, field.get("description", "")))
    return table(("setting", "type", "default", "meaning"), rows)
