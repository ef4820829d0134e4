"""The environment ``configured``: tools from a file, JSON or YAML, in the manner of Tiny Tool Use.

    tools:
      - name: calculator
        description: Works out arithmetic.
        type: function            # a tool that comes with this package
        function: calculator
        parameters: {type: object, properties: {expression: {type: string}}}
      - name: stock
        type: api                 # an HTTP server
        url: https://api.example.com/stock/{symbol}
      - name: count_words
        type: command             # a program; needs allow_commands=true
        command: [wc, -w, --, "{path}"]

The file may hold other sections, so a training configuration of Tiny Tool Use is read as it is; or
it is the list of tools alone. Tools in the OpenAI shape are taken, too, when a function of their
name is there.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from adp.core.input_files import read_text
from adp.rollouts.environment import EnvironmentKind, Settings
from adp.rollouts.environments.calculator import CALCULATOR
from adp.rollouts.environments.configured_api import ApiEntry
from adp.rollouts.environments.configured_command import CommandEntry, ToolEntry
from adp.rollouts.environments.search import library, search_tool
from adp.rollouts.environments.weather import weather_tool
from adp.rollouts.tool_environment import ToolEnvironment, by_name
from adp.rollouts.tools import FunctionTool, ToolError
from adp.rollouts.turns import ErrorType
from adp_schema.errors import InputError, UsageError


class FunctionEntry(ToolEntry):
    """A tool that comes with this package."""

    type: Literal["function"] = "function"
    function: str | None = None
    """calculator, weather or search; without it, that of the name."""
    corpus: Path | None = None
    """Documents of search."""
    limit: int = Field(default=5, ge=1, le=100)
    """Documents that search shows."""


Entry = FunctionEntry | ApiEntry | CommandEntry
_ENTRIES: TypeAdapter[Entry] = TypeAdapter(Annotated[Entry, Field(discriminator="type")])


class ConfiguredSettings(Settings):
    """Settings of the environment ``configured``."""

    file: Path
    """JSON or YAML file with a list 'tools'."""
    allow_commands: bool = False
    """Whether tools of type command may run programs."""


class Configured(ToolEnvironment):
    """Tools from a file.

    Args:
        settings: the file, and whether commands are allowed.
    """

    blocking = True

    def __init__(self, settings: ConfiguredSettings) -> None:
        path = settings.file.resolve()
        try:
            status = path.stat()
        except OSError as error:
            raise InputError(f"{settings.file} cannot be read: {error}") from error
        changed = (status.st_mtime_ns, status.st_size)
        super().__init__(_tools(path, changed, settings.allow_commands))


def read_tools(path: Path, *, allow_commands: bool = False) -> Sequence[FunctionTool]:
    """Read the tools of a configuration.

    Args:
        path: JSON or YAML file.
        allow_commands: whether tools of type ``command`` are taken.

    Raises:
        InputError: the file cannot be read.
        UsageError: a tool is wrong, or is a command that is not allowed; the message names it.
    """
    tools = []
    for number, entry in enumerate(_entries(path)):
        try:
            checked = _ENTRIES.validate_python(_flat(entry))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, (number, *first["loc"])))
            hint = "; write the command as a list of words" if "command" in first["loc"] else ""
            raise UsageError(f"{path}: tools.{place}: {first['msg']}{hint}") from None
        tools.append(_made(checked, path, allow_commands))
    return tuple(by_name(tools).values())


@functools.lru_cache(maxsize=8)
def _tools(path: Path, changed: tuple[int, int], allow_commands: bool) -> Sequence[FunctionTool]:
    """The tools keep nothing of an episode, so all episodes share them."""
    return read_tools(path, allow_commands=allow_commands)


def _entries(path: Path) -> Sequence[Any]:
    try:
        text = read_text(path)
        value = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    if isinstance(value, dict):
        if "tools" not in value:
            raise UsageError(f"{path} has no section 'tools'")
        value = value["tools"] or []
    if not isinstance(value, list):
        raise UsageError(f"{path}: 'tools' is no list")
    return value


def _flat(entry: Any) -> Any:
    """An entry with its type; a tool in the OpenAI shape becomes one of type function."""
    if not isinstance(entry, dict):
        return entry
    child = entry.get("function")
    if isinstance(child, dict):
        known = {key: child[key] for key in ("name", "description", "parameters") if key in child}
        return {**known, "type": "function"}
    return {"type": "function", **entry}


def _made(entry: Entry, path: Path, allowed: bool) -> FunctionTool:
    if isinstance(entry, FunctionEntry):
        run = _builtin(entry, path)
    else:
        if isinstance(entry, CommandEntry):
            if not allowed:
                raise UsageError(
                    f"the tool '{entry.name}' runs a program; if you trust {path}, allow it with "
                    "allow_commands=true"
                )
            if entry.folder is not None:
                entry = entry.model_copy(update={"folder": path.parent / entry.folder})
        entry.check()
        run = entry.run
    read_only = isinstance(entry, FunctionEntry)
    tool = FunctionTool(entry.name, entry.description, entry.parameters, run, read_only)
    tool.wrong({})  # a schema that is none is said now
    return tool


def _builtin(entry: FunctionEntry, path: Path) -> Callable[..., Any]:
    """The function behind a tool; the arguments must fit its own schema, too."""
    name = entry.function or entry.name
    if name == "calculator":
        tool = CALCULATOR
    elif name == "weather":
        tool = weather_tool()
    elif name == "search":
        corpus = None if entry.corpus is None else (path.parent / entry.corpus).resolve()
        tool = search_tool(library(corpus, None, 1.2, 0.75), entry.limit)
    else:
        raise UsageError(
            f"the tool '{entry.name}' names the function '{name}'; functions: calculator, search, "
            "weather"
        )
    offered = entry.known
    unknown = offered - set(tool.parameters["properties"])
    missing = set(tool.parameters["required"]) - offered
    if unknown or missing:
        takes = ", ".join(tool.parameters["properties"])
        raise UsageError(f"the tool '{entry.name}' is the function {name}, which takes {takes}")

    def run(**arguments: Any) -> Any:
        reason = tool.wrong(arguments)
        if reason is not None:
            raise ToolError(reason, ErrorType.INVALID_ARGS)
        return tool.run(**arguments)

    return run


KIND = EnvironmentKind(
    name="configured",
    about="Tools from a file: functions of this package, HTTP servers, programs.",
    settings=ConfiguredSettings,
    make=Configured,
)
"""What the registry holds."""
