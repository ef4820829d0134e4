"""The tools of toolworld: four that questions need, four that none needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, Literal

from adp.rollouts.environments.toolworld.world import (
    ATTRIBUTES,
    NUMBERS,
    RELATIONS,
    WORDS,
    Split,
    World,
    is_name,
    name_of,
    number_of,
)
from adp.rollouts.tools import FunctionTool, ToolError, arguments_schema
from adp.rollouts.turns import Result

_ENTITY = {"type": "string", "description": "Name of an entity."}
_NUMBER = {"type": "integer", "minimum": -(10**6), "maximum": 10**6}


@dataclass(frozen=True)
class Role:
    """What a tool does.

    Attributes:
        name: its role, which is its name too where names are fixed.
        description: what it does, for the agent.
        properties: JSON Schema of each argument.
        run: the world and the arguments, in their order, to the value.
    """

    name: str
    description: str
    properties: Mapping[str, Any]
    run: Callable[..., str | int]

    def value(self, world: World, arguments: Mapping[str, Any]) -> str | int:
        """What the tool brings.

        Raises:
            ToolError: an argument is no name of an entity.
        """
        entities = [name for name, schema in self.properties.items() if schema is _ENTITY]
        if not all(is_name(arguments[name]) for name in entities):
            raise ToolError("there is no entity of that name")
        return self.run(world, *(arguments[name] for name in self.properties))


def _among(values: Sequence[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def _add(world: World, a: int, b: int) -> int:
    return int(a) + int(b)


def _subtract(world: World, a: int, b: int) -> int:
    return int(a) - int(b)


def _count(world: World, entity: str, relation: str) -> int:
    return number_of(world.seed, entity, relation, "count") % 10


def _describe(world: World, entity: str) -> str:
    moods = WORDS["mood"]
    return moods[number_of(world.seed, entity, "describe") % len(moods)]


def _locate(world: World, entity: str) -> str:
    return name_of(world.split, world.seed, entity, "locate")


NEEDED = (
    Role(
        "follow",
        "Gives the entity that stands in a relation to an entity.",
        {"entity": _ENTITY, "relation": _among(RELATIONS)},
        World.value,
    ),
    Role(
        "lookup",
        "Gives an attribute of an entity.",
        {"entity": _ENTITY, "attribute": _among(ATTRIBUTES)},
        World.value,
    ),
    Role("add", "Adds two numbers.", {"a": _NUMBER, "b": _NUMBER}, _add),
    Role(
        "compare",
        "Gives the one of two entities that has the greater number.",
        {"a": _ENTITY, "b": _ENTITY, "attribute": _among(NUMBERS)},
        World.greater,
    ),
)
DISTRACTORS = (
    Role("subtract", "Subtracts b from a.", {"a": _NUMBER, "b": _NUMBER}, _subtract),
    Role(
        "count",
        "Counts the entities that stand in a relation to an entity.",
        {"entity": _ENTITY, "relation": _among(RELATIONS)},
        _count,
    ),
    Role("describe", "Describes an entity in a word.", {"entity": _ENTITY}, _describe),
    Role("locate", "Gives the place where an entity is.", {"entity": _ENTITY}, _locate),
)
ROLES = {role.name: role for role in (*NEEDED, *DISTRACTORS)}


def draw_tools(
    split: Split, distractors: int, names: Literal["fixed", "random"], random: Random
) -> list[tuple[str, str]]:
    """Draw the tools of a task: (role, name) of each, in the order in which they are offered.

    Args:
        split: split whose random names are taken.
        distractors: number of tools that no question needs.
        names: whether a tool is called by its role or by a random name.
        random: where it is drawn from.
    """
    roles = [*NEEDED, *random.sample(DISTRACTORS, distractors)]
    random.shuffle(roles)
    if names == "fixed":
        return [(role.name, role.name) for role in roles]
    results: dict[str, str] = {}
    for role in roles:
        name = ""
        while not name or name in results:
            name = name_of(split, "tool", random.getrandbits(64))
        results[name] = role.name
    return [(role, name) for name, role in results.items()]


RENAMED = {
    "follow": ("trace", ("subject", "link")),
    "lookup": ("inspect", ("item", "field")),
    "add": ("total", ("first", "second")),
    "compare": ("rank", ("left", "right", "by")),
    "subtract": ("reduce", ("first", "second")),
    "count": ("tally", ("subject", "link")),
    "describe": ("portray", ("item",)),
    "locate": ("place", ("item",)),
}
"""Of each role the name and the arguments that it has in no task of the split ``train``."""


def rename_tools(
    tools: Sequence[tuple[str, str]], needed: Sequence[str], random: Random
) -> tuple[list[tuple[str, str]], dict[str, dict[str, str]]]:
    """Give two tools, one of them at least needed, names and arguments that ``train`` never has.

    Args:
        tools: (role, name) of each.
        needed: roles that the plan needs.
        random: where it is drawn from.

    Returns:
        the tools, and for each that was renamed the role's argument behind each of its own.
    """
    first = random.choice(sorted(set(needed)))
    second = random.choice([role for role, _ in tools if role != first])
    chosen = {first, second}
    arguments = {
        RENAMED[role][0]: dict(zip(RENAMED[role][1], ROLES[role].properties, strict=True))
        for role, _ in tools
        if role in chosen
    }
    result = [(role, RENAMED[role][0] if role in chosen else name) for role, name in tools]
    return result, arguments


@lru_cache(maxsize=4096)
def tool_for(role: str, name: str, arguments: tuple[tuple[str, str], ...] = ()) -> FunctionTool:
    """The tool of a role under a name, and with other names of its arguments.

    Args:
        role: what it does.
        name: its name.
        arguments: (name, the role's name of it) of each argument; none: those of the role.

    Raises:
        ValueError: the arguments are not those of the role.

    It is shared by all worlds, since building the check of a schema is the dearest part of an
    episode. So it only checks the arguments and hands them back as ``structured``; the
    environment, which knows the world, does the rest.
    """
    about = ROLES[role]
    properties = about.properties
    if arguments:
        if [known for _, known in arguments] != list(properties):
            raise ValueError(f"the arguments of '{name}' are not those of '{role}'")
        properties = {argument: properties[known] for argument, known in arguments}
    parameters = arguments_schema(properties)
    return FunctionTool(name, about.description, parameters, _checked, read_only=True)


def _checked(**arguments: Any) -> Result:
    # JSON Schema takes 5.0 for an integer; here it is the same call as 5.
    same = {key: int(value) if isinstance(value, float) else value
            for key, value in arguments.items()}  # fmt: skip
    return Result(text="", structured=same)
