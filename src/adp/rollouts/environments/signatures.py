"""Tools out of functions: the schema follows from types and docstring.

    def book(city: str, nights: int = 1) -> str:
        '''Books a room.

        Args:
            city: where.
            nights: how many.
        '''

    tool_from_function(book)

The types become a JSON Schema, and the arguments of a call become values of these types, by
pydantic: what it knows, such as ``Literal``, ``Optional``, ``date``, an ``Enum`` or a model, may be
used. The sections of the docstring are those of Google's style guide.
"""  # noqa: D214

from __future__ import annotations

import copy
import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import PydanticJsonSchemaWarning

from adp.rollouts.tools import LONGEST_REASON, FunctionTool, ToolError
from adp.rollouts.turns import ErrorType
from adp_schema.errors import UsageError

_SECTION = re.compile(r"^(Args|Arguments|Returns|Yields|Raises|Examples?|Notes?|Attributes):\s*$")
_ARGUMENT = re.compile(r"^(\s*)\*{0,2}(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")
_DATA = frozenset({"default", "enum", "const", "examples"})


@dataclass(frozen=True)
class Signature:
    """What a function takes, as a tool.

    Attributes:
        tool: the tool; what it runs is not set.
        is_async: whether the function is a coroutine function.
    """

    tool: FunctionTool
    is_async: bool
    _model: type[BaseModel]
    _names: Mapping[str, str]

    def bound(self, function: Callable[..., Any]) -> FunctionTool:
        """The tool that calls a function of this signature."""
        twin = copy.copy(self.tool)  # with the schema and the validator, which are costly to make
        object.__setattr__(twin, "run", partial(self._run, function))
        return twin

    def _run(self, function: Callable[..., Any], **arguments: Any) -> Any:
        try:
            values = self._model.model_validate(arguments)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            reason = f"{place}: {first['msg']}"[:LONGEST_REASON]
            raise ToolError(reason, ErrorType.INVALID_ARGS) from None
        given = {self._names[name]: getattr(values, name) for name in values.model_fields_set}
        return function(**given)


def tool_from_function(
    function: Callable[..., Any], name: str | None = None, *, read_only: bool = False
) -> FunctionTool:
    """Make a tool of a function.

    Args:
        function: the function, or a bound method; its arguments have types. Coroutine functions
            are for asynchronous environments.
        name: name of the tool; without it, that of the function.
        read_only: whether calling it changes nothing.

    Raises:
        UsageError: an argument has no type, or one that has no JSON Schema; or the function takes
            ``*args``, ``**kwargs`` or arguments by their place alone.
    """
    return signature_of(function, name, read_only=read_only).bound(function)


def signature_of(
    function: Callable[..., Any], name: str | None = None, *, read_only: bool = False
) -> Signature:
    """The signature of a function as a tool.

    Args:
        function: the function, or a bound method.
        name: name of the tool; without it, that of the function.
        read_only: whether calling it changes nothing.

    Raises:
        UsageError: see `tool_from_function`.
    """
    called = name or str(getattr(function, "__name__", "tool"))
    about, described = sections(inspect.getdoc(function) or "")
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    for number, (parameter, kind) in enumerate(_parameters(function, called)):
        default = ... if parameter.default is parameter.empty else parameter.default
        text = described.get(parameter.name)
        fields[f"p{number}"] = (kind, Field(default, alias=parameter.name, description=text))
        names[f"p{number}"] = parameter.name
    try:
        model = create_model(called, __config__=ConfigDict(extra="forbid"), **fields)
        with warnings.catch_warnings():
            # A default that is no JSON is left out of the schema; the function has it all the same.
            warnings.simplefilter("ignore", PydanticJsonSchemaWarning)
            parameters = _untitled(model.model_json_schema(by_alias=True))
    except (PydanticUserError, TypeError) as error:
        raise UsageError(f"the types of '{called}' have no JSON Schema: {error}") from error
    tool = FunctionTool(called, about, parameters, _unbound, read_only)
    _ = tool.schema, tool.wrong({})  # made once, and shared by the copies
    return Signature(tool, inspect.iscoroutinefunction(function), model, names)


def sections(docstring: str) -> tuple[str, Mapping[str, str]]:
    """What a docstring says.

    Args:
        docstring: in Google's style, without its indentation.

    Returns:
        The text before the first section, and what ``Args`` says about each argument.
    """
    text: list[str] = []
    described: dict[str, list[str]] = {}
    section, indent, current = "", None, ""
    for line in docstring.splitlines():
        heading = _SECTION.match(line)
        if heading:
            section, indent = heading[1], None
        elif not section:
            text.append(line)
        elif section.startswith("Arg") and line.strip():
            match = _ARGUMENT.match(line)
            if match and (indent is None or len(match[1]) <= indent):
                indent, current = len(match[1]), match[2]
                described[current] = [match[3]]
            elif current:
                described[current].append(line.strip())
    full = "\n".join(text).strip()
    return full, {name: " ".join(lines).strip() for name, lines in described.items()}


def _parameters(function: Callable[..., Any], called: str) -> list[tuple[inspect.Parameter, Any]]:
    try:
        values = inspect.signature(function).parameters.values()
        kinds = get_type_hints(function, include_extras=True)
    except (NameError, TypeError, ValueError) as error:
        raise UsageError(f"the types of '{called}' cannot be read: {error}") from error
    for parameter in values:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise UsageError(
                f"'{called}' takes '{parameter}', which no tool can; name each argument, or begin "
                "the name of the method with an underscore"
            )
        if parameter.name not in kinds:
            raise UsageError(
                f"the argument '{parameter.name}' of '{called}' has no type; give it one, or begin "
                "the name of the method with an underscore"
            )
    return [(parameter, kinds[parameter.name]) for parameter in values]


def _untitled(schema: Any) -> Any:
    """A schema without the titles that pydantic makes of names."""
    if isinstance(schema, list):
        return [_untitled(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value if key in _DATA else _untitled(value)
        for key, value in schema.items()
        if key != "title" or not isinstance(value, str)
    }


def _unbound(**arguments: Any) -> Any:
    raise NotImplementedError
