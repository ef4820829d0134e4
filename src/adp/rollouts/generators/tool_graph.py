"""Which result of a tool can be an argument of another one: the edges of a graph of tools.

As GOAT does, each output is held against each input of other tools, and what does not fit is left
out: here by the schema that a tool declares for its output (or by results of calls on trial), by
names and by types. An edge that is wrong for another reason is values_of when calls along it fail.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from adp.core.input_files import read_text
from adp.core.yaml_text import parse_yaml
from adp.rollouts.environment import Settings
from adp.rollouts.generators.drafts import NoValueError, looked_up, value_of
from adp.rollouts.generators.synthetic import tool_name
from adp.rollouts.generators.values import ArgumentValues, parameters_of, properties_of
from adp.rollouts.turns import Result, Tool
from adp_schema.errors import InputError, UsageError

_DEEPEST = 3
"""Levels of a result whose members are looked at."""
_LONGEST_VALUE = 200
"""Characters of a text that can be an argument."""

Member = tuple[str | int, ...]
"""A member of a result: keys and indexes."""


class Edge(Settings):
    """The result of a tool is an argument of another one."""

    source: str = Field(alias="from")
    """Tool whose result it is."""
    target: str = Field(alias="to")
    """Tool whose argument it becomes."""
    argument: str
    """The argument."""
    field: tuple[str | int, ...] | str = ()
    """Member of the result: names and indexes, or a text with dots; none: the result itself."""
    form: str | None = Field(default=None, alias="as")
    """Text of the argument, with {value}, such as "{value} * 2"."""
    rule: str = "file"
    """Who says so: file, name, or type."""

    @property
    def path(self) -> Member:
        """The member as keys and indexes."""
        if not isinstance(self.field, str):
            return tuple(self.field)
        parts = [part for part in self.field.split(".") if part]
        return tuple(int(part) if part.isdigit() else part for part in parts)


@dataclass(frozen=True)
class TrialCall:
    """A call that was made to see what a tool brings.

    Attributes:
        arguments: its arguments.
        result: what it brought.
    """

    arguments: Mapping[str, Any]
    result: Result


def read_edges(path: Path, tools: Sequence[Tool]) -> list[Edge]:
    """Read the edges of a YAML file: a list ``edges``.

    Raises:
        UsageError: it holds no edges, or one names a tool or an argument that is not there.
        InputError: it cannot be read.
    """
    try:
        text = read_text(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    given = parse_yaml(text, str(path), "file of edges")
    listed = given.get("edges") if isinstance(given, Mapping) else given
    if not isinstance(listed, list) or not listed:
        raise UsageError(f"{path} holds no list 'edges'")
    known = {tool_name(tool): properties_of(tool) for tool in tools}
    edges = []
    for number, item in enumerate(listed):
        try:
            edge = Edge.model_validate(item)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise UsageError(f"{path}: edges.{number}.{place}: {first['msg']}") from None
        for name in (edge.source, edge.target):
            if name not in known:
                raise UsageError(f"{path}: edges.{number}: there is no tool '{name}'")
        if edge.argument not in known[edge.target]:
            raise UsageError(
                f"{path}: edges.{number}: '{edge.target}' has no parameter '{edge.argument}'"
            )
        edges.append(edge)
    return edges


def find_edges(
    tools: Sequence[Tool], trials: Mapping[str, Sequence[TrialCall]], values: ArgumentValues
) -> list[Edge]:
    """The edges that names, types and results on trial allow.

    Args:
        tools: the tools.
        trials: calls of each tool that went well.
        values: checks arguments.
    """
    edges = []
    for tool in tools:
        name = tool_name(tool)
        for path, values_of in _outputs(tool, trials.get(name, ())).items():
            for other in tools:
                for argument in properties_of(other):
                    rule = _fits(path, values_of, name, other, argument, values)
                    if rule is not None:
                        edges.append(Edge.model_validate({
                            "from": name, "to": tool_name(other), "argument": argument,
                            "field": path, "rule": rule,
                        }))  # fmt: skip
    return edges


def _outputs(tool: Tool, trials: Sequence[TrialCall]) -> dict[Member, list[Any]]:
    """The members of a tool's results, with the values that were seen.

    Those that only say an argument again are left out. Where calls on trial brought nothing, the
    schema that the tool declares for its output says which members there are.
    """
    values_of: dict[Member, list[Any]] = {}
    for trial in trials:
        for path in _paths(value_of(trial.result)):
            value = looked_up(value_of(trial.result), path)
            values_of.setdefault(path, []).append(value)
    for trial in trials:
        for path in list(values_of):
            try:
                value = looked_up(value_of(trial.result), path)
            except NoValueError:
                continue
            if path and trial.arguments.get(str(path[-1])) == value:
                del values_of[path]
    if not trials:
        function = tool["function"]
        schema = function.get("outputSchema") or function.get("output_schema") or {}
        for name in schema.get("properties") or {} if isinstance(schema, Mapping) else {}:
            values_of[(name,)] = []
    return values_of


def _paths(value: Any, path: Member = ()) -> list[Member]:
    """Where single values stand; of a list the first item alone."""
    if isinstance(value, Mapping) and len(path) < _DEEPEST:
        return [deeper for key, item in value.items() for deeper in _paths(item, (*path, str(key)))]
    if isinstance(value, list) and value and len(path) < _DEEPEST:
        return _paths(value[0], (*path, 0))
    usable = isinstance(value, int | float) or (
        isinstance(value, str) and 0 < len(value) <= _LONGEST_VALUE
    )
    return [path] if usable else []


def _fits(
    path: Member,
    values_of: Sequence[Any],
    source: str,
    tool: Tool,
    argument: str,
    values: ArgumentValues,
) -> str | None:
    """Why a member of a result can be an argument: its name, or its type; None when it cannot."""
    names = [part for part in path if isinstance(part, str)]
    schema = properties_of(tool)[argument]
    same = bool(names) and _same_name(names, source, argument)
    plain = not names and not (isinstance(schema, Mapping) and {"enum", "const"} & set(schema))
    if not (same or (plain and len(path) == 0)):
        return None
    if any(_misfit(tool, argument, value, values) for value in values_of):
        return None
    return "name" if same else "type" if values_of else None


def _misfit(tool: Tool, argument: str, value: Any, values: ArgumentValues) -> bool:
    """Whether a value does not fit the schema of an argument alone."""
    parameters = {**parameters_of(tool), "required": [argument], "properties": {
        argument: properties_of(tool)[argument]
    }}  # fmt: skip
    alone = {**tool["function"], "name": f"{tool_name(tool)}.{argument}", "parameters": parameters}
    return values.wrong({"type": "function", "function": alone}, {argument: value}) is not None


def _same_name(path: Sequence[str], source: str, argument: str) -> bool:
    """Whether a member has the name of an argument: ``orderId`` and ``order_id``.

    A member ``id`` has that of the word before it, as in ``order.id``, or of its tool.
    """
    wanted, last = _words(argument), _words(path[-1])
    if wanted == last and (last not in (["id"], ["name"], ["value"])):
        return True
    if last == ["id"] and wanted[-1:] == ["id"] and len(wanted) > 1:
        before = _words(path[-2]) if len(path) > 1 else _words(source)
        return wanted[-2] in before
    return False


def _words(name: str | int) -> list[str]:
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", str(name)).lower()
    words = [part for part in re.split(r"[^a-z0-9]+", text) if part]
    return [part[:-1] if len(part) > 3 and part.endswith("s") and not part.endswith("ss") else part
            for part in words]  # fmt: skip
