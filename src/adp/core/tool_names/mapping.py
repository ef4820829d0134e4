"""The mapping of names of tools: what ``names.yaml`` says, applied to the values of one call."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceName(_Strict):
    """What is special about one name that sources give a tool."""

    arguments: dict[str, str] = Field(default_factory=dict)
    add: dict[str, Any] = Field(default_factory=dict)
    only: list[str] | None = None


class NamedTool(_Strict):
    """A tool that harnesses agree on, with the names that sources give it."""

    main: str
    parameters: dict[str, str]
    required: list[str]
    languages: list[str] = Field(default_factory=list)
    arguments: dict[str, str] = Field(default_factory=dict)
    names: dict[str, SourceName | None]


class _ByArgument(_Strict):
    argument: str
    main: str


@dataclass(frozen=True, slots=True)
class NamedCall:
    """A call as values.

    Attributes:
        name: name of the tool; None for code that names none.
        arguments: its arguments; None when the source gives a text only.
        text: that text.
        language: programming language of code.
    """

    name: str | None
    arguments: Mapping[str, Any] | None = None
    text: str | None = None
    language: str | None = None


@dataclass(frozen=True)
class ToolNames:
    """The table, in the form that look-ups want.

    Attributes:
        tools: the tools by their names in the Agent Data Protocol.
    """

    tools: Mapping[str, NamedTool]
    _by_name: dict[str, str] = field(default_factory=dict)
    _by_language: dict[str, str] = field(default_factory=dict)
    _by_argument: Mapping[str, _ByArgument] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for tool_name, tool in self.tools.items():
            for name in tool.names:
                if self._by_name.setdefault(name, tool_name) != tool_name:
                    raise ValueError(f"the name {name} stands under two tools")
            for language in tool.languages:
                self._by_language[language] = tool_name

    def of_language(self, language: str | None) -> str | None:
        """The tool that runs code of a language; None when there is none."""
        return self._by_language.get((language or "").strip().lower())

    def rename(self, call: NamedCall) -> NamedCall | None:
        """A call under the name of the Agent Data Protocol, with its arguments.

        Returns:
            None when the table does not know the call, or its arguments do not fit: then it keeps
            the name that its source gave it.
        """
        chosen = self._chosen(call)
        if chosen is None:
            return None
        tool_name, name, arguments = chosen
        tool = self.tools[tool_name]
        rule = tool.names.get(name) or SourceName()
        if rule.only is not None and not set(arguments) <= {*rule.only, *tool.parameters}:
            return None
        renamed = _renamed(arguments, {**tool.arguments, **rule.arguments})
        if renamed is None:
            return None
        for key, value in rule.add.items():
            renamed.setdefault(key, value)
        if tool.main in renamed:
            text = _text(renamed[tool.main])
            if text is None:
                return None
            renamed[tool.main] = text
        if any(key not in renamed for key in tool.required):
            return None
        return NamedCall(tool_name, renamed)

    def _chosen(self, call: NamedCall) -> tuple[str, str, dict[str, Any]] | None:
        """Tool, name of the source, and arguments under the names of the source."""
        by_argument = self._by_argument.get(call.name or "")
        if by_argument is not None and call.arguments is not None:
            arguments = dict(call.arguments)
            tool_name = self.of_language(_word(arguments.pop(by_argument.argument, None)))
            if tool_name is None or by_argument.main not in arguments:
                return None
            main = arguments.pop(by_argument.main)
            return tool_name, tool_name, {self.tools[tool_name].main: main, **arguments}
        tool_name = self._by_name.get(call.name or "") or self.of_language(call.language)
        if tool_name is None:
            return None
        if call.language not in (None, call.name) and tool_name != self.of_language(call.language):
            return None  # code of another language than the tool runs
        if call.arguments is None:
            return tool_name, call.name or "", {self.tools[tool_name].main: call.text or ""}
        return tool_name, call.name or "", dict(call.arguments)

    def rename_schema(self, schema: Mapping[str, Any]) -> dict[str, Any] | None:
        """The schema of a tool under the name of the Agent Data Protocol.

        Args:
            schema: in the manner of OpenAI, with ``type`` and ``function`` or without them.

        Returns:
            None when the table does not know the tool, or its parameters do not fit.
        """
        function = schema.get("function", schema)
        name = function.get("name") if isinstance(function, Mapping) else None
        tool_name = self._by_name.get(name) if isinstance(name, str) else None
        if tool_name is None:
            return None
        tool = self.tools[tool_name]
        rule = tool.names.get(str(name)) or SourceName()
        parameters = function.get("parameters")
        if not isinstance(parameters, Mapping):
            parameters = {}
        properties = parameters.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        if rule.only is not None and not set(properties) <= {*rule.only, *tool.parameters}:
            return None
        names = {**tool.arguments, **rule.arguments}
        renamed = _renamed(properties, names)
        if renamed is None:
            return None
        for key in rule.add:
            renamed.setdefault(key, {"type": tool.parameters[key]})
        main = renamed.get(tool.main)
        if isinstance(main, Mapping) and main.get("type") not in (None, "string"):
            renamed[tool.main] = {"type": "string", **_only(main, ("description",))}
        written = {**function, "name": tool_name}
        if renamed or "parameters" in function:
            written["parameters"] = {**parameters, "properties": renamed}
            required = parameters.get("required")
            if isinstance(required, list):
                written["parameters"]["required"] = [
                    names.get(key, key) if isinstance(key, str) else key for key in required
                ]
        return {**schema, "function": written} if "function" in schema else written


def _renamed(arguments: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any] | None:
    """Arguments under other names; None when two would share one."""
    result = {names.get(key, key): value for key, value in arguments.items()}
    return result if len(result) == len(arguments) else None


def _text(value: Any) -> str | None:
    """A main argument as text; a command in words becomes one line for a shell."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
        if len(value) == 3 and value[0].rsplit("/", 1)[-1] in _SHELLS and value[1] in ("-c", "-lc"):
            return str(value[2])
        return shlex.join(value)
    return None


_SHELLS = ("bash", "sh", "zsh")


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _only(value: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    return {key: value[key] for key in keys if key in value}


@cache
def tool_names() -> ToolNames:
    """The table that comes with this package."""
    from adp.core.yaml_text import parse_yaml

    file = resources.files("adp.core.tool_names") / "names.yaml"
    plain = parse_yaml(file.read_text(encoding="utf-8"), "names.yaml", "table of names")
    by_argument = {
        name: _ByArgument.model_validate(value)
        for name, value in plain.pop("by_argument", {}).items()
    }
    tools = {name: NamedTool.model_validate(value) for name, value in plain.items()}
    return ToolNames(tools, _by_argument=by_argument)
