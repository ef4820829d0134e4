"""``adp collect --list``: which environments and policies there are, and the tools of one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rich.text import Text

from adp.cli.text import console, light_table, print_json, visible


def list_kinds(*, as_json: bool) -> None:
    """Print the environments and the policies that have a name, one line each."""
    from adp.rollouts.environment import ENVIRONMENTS
    from adp.rollouts.policy import POLICIES

    kinds: dict[str, list[Any]] = {
        "environments": list(ENVIRONMENTS.all()),
        "policies": list(POLICIES.all()),
    }
    if as_json:
        print_json({word: [_described(kind) for kind in match] for word, match in kinds.items()})
        return
    screen = console()
    for word, result in kinds.items():
        table = light_table(word, "what it is", "settings", fold=["what it is", "settings"])
        for kind in result:
            row = _described(kind)
            table.add_row(*(Text(visible(cell)) for cell in _cells(row)))
        screen.print(table)
        screen.print()
    screen.print("tools of one: adp collect --env NAME:key=value,... --list")


def list_tools(env: str, tasks: str | None, *, as_json: bool) -> None:
    """Print the tools that an environment offers at the beginning of an episode.

    Args:
        env: the environment, as people write it.
        tasks: the first of these tasks is begun; without them one of its own.
        as_json: print the tools in the OpenAI shape.
    """
    from adp.rollouts.collecting.offered_tools import offered_tools
    from adp.rollouts.environment import ENVIRONMENTS
    from adp.rollouts.spec import load

    kind, about = load(ENVIRONMENTS, env)
    tools = offered_tools(kind, about, tasks)
    if as_json:
        print_json({"environment": kind.name, "tools": tools})
        return
    screen = console()
    for tool in tools:
        function = tool["function"]
        names = ", ".join(_arguments(function.get("parameters")))
        screen.print(Text(visible(f"{function['name']}({names})"), style="bold"), soft_wrap=True)
        lines = str(function.get("description") or "").split("\n")
        for line in lines if any(lines) else ():
            screen.print(Text(visible(f"    {line}")), soft_wrap=True)
    if not tools:
        screen.print("no tool is on offer at the beginning of an episode")


def _described(kind: Any) -> dict[str, Any]:
    fields = kind.settings.model_fields
    needed = [name for name, field in fields.items() if field.is_required()]
    return {"name": kind.name, "about": kind.about, "settings": list(fields), "needed": needed}


def _cells(row: Mapping[str, Any]) -> Iterable[str]:
    settings = [f"{name} (needed)" if name in row["needed"] else name for name in row["settings"]]
    return row["name"], row["about"], ", ".join(settings)


def _arguments(parameters: Any) -> Iterable[str]:
    """The arguments of a tool: ``name: type``, with a question mark where it may be left out."""
    schema = parameters if isinstance(parameters, Mapping) else {}
    properties = schema.get("properties")
    needed = schema.get("required")
    for name, child in properties.items() if isinstance(properties, Mapping) else ():
        mark = "" if isinstance(needed, list) and name in needed else "?"
        yield f"{name}{mark}: {_type(child)}"


def _type(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    if isinstance(schema.get("enum"), list):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    kind = schema.get("type")
    either = schema.get("anyOf")
    if isinstance(either, list):
        return " | ".join(map(_type, either))
    return " | ".join(map(str, kind)) if isinstance(kind, list) else str(kind or "any")
