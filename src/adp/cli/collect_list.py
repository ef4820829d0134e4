"""``adp collect --list``: which environments and policies there are, and the tools of one."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from adp.cli.text import console, print_json, print_table, say
from adp.rollouts.collecting.offered_tools import offered_tools
from adp.rollouts.environment import ENVIRONMENTS, LeftOut
from adp.rollouts.policy import POLICIES
from adp.rollouts.spec import load


def list_kinds(*, as_json: bool) -> None:
    """Print the environments and the policies that have a name, one line each."""
    kinds = {
        "environments": [_described(kind) for kind in ENVIRONMENTS.all()],
        "policies": [_described(kind) for kind in POLICIES.all()],
    }
    if as_json:
        print_json(kinds)
        return
    for word, rows in kinds.items():
        heads = (word, "what it is", "settings")
        print_table(heads, map(_cells, rows), fold=["what it is", "settings"])
        console().print()
    say("tools of one: adp collect --env NAME:key=value,... --list")


def list_tools(env: str, tasks: str | None, *, as_json: bool) -> None:
    """Print the tools that an environment offers at the beginning of an episode.

    Args:
        env: the environment, as people write it.
        tasks: the first of these tasks is begun; without them one of its own.
        as_json: print the tools in the OpenAI shape.
    """
    kind, about = load(ENVIRONMENTS, env)
    tools = offered_tools(kind, about, tasks)
    behind = kind.left_out(about) if kind.left_out is not None else None
    if as_json:
        more = {} if behind is None else {"left_out": [dataclasses.asdict(item) for item in behind]}
        print_json({"environment": kind.name, "tools": tools, **more})
        return
    for tool in tools:
        function = tool["function"]
        names = ", ".join(_arguments(function.get("parameters")))
        say(f"{function['name']}({names})", "bold")
        lines = str(function.get("description") or "").split("\n")
        for line in lines if any(lines) else ():
            say(f"    {line}")
    if not tools:
        say("no tool is on offer at the beginning of an episode")
    if behind is not None:
        _say_left_out(behind, len(tools))


def _say_left_out(items: Sequence[LeftOut], tools: int) -> None:
    """Which operations are no tools: the wrong ones by name, the others counted by reason."""
    say(f"{tools + len(items):,} operations: {tools:,} tools, {len(items):,} left out", "bold")
    for item in items:
        if item.wrong:
            say(f"    {item.operation}: {item.reason} - at {item.place}")
    reasons = Counter(item.reason for item in items if not item.wrong)
    for reason, count in reasons.most_common():
        say(f"    {count:,} x {reason}")


def _described(kind: Any) -> dict[str, Any]:
    fields = kind.settings.model_fields
    needed = [name for name, field in fields.items() if field.is_required()]
    return {"name": kind.name, "about": kind.about, "settings": list(fields), "needed": needed}


def _cells(row: Mapping[str, Any]) -> tuple[str, str, str]:
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
