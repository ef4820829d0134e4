"""Tools that are functions: their schema, the check of arguments, and calling them."""

from __future__ import annotations

import inspect
import json
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from jsonschema import Draft202012Validator, SchemaError
from jsonschema.exceptions import best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from adp.rendering.arguments import object_of
from adp.rollouts.plugin_errors import error_text, stops
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.turns import Call, ErrorType, Result, Tool
from adp_schema.errors import UsageError

LONGEST_REASON = 500
"""Characters of a reason that is told to the agent."""


def arguments_schema(
    properties: Mapping[str, Any], optional: Collection[str] = ()
) -> dict[str, Any]:
    """The JSON Schema of arguments: these, and no others.

    Args:
        properties: the schema of each argument, by its name.
        optional: names of those that may be left out.
    """
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


class ToolError(Exception):
    """Raised by a tool to tell the agent what went wrong; any other exception is told as well.

    Args:
        message: one sentence for the agent.
        kind: what sort of error it is.
    """

    def __init__(self, message: str, kind: ErrorType = ErrorType.EXECUTION) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class FunctionTool:
    """A tool that is a function.

    Attributes:
        name: its name.
        description: what it does, for the agent.
        parameters: JSON Schema (2020-12) of the arguments, an object.
        run: the function; it gets the arguments by name. It returns a text, a JSON value, or a
            `Result`; it raises `ToolError` to say what is wrong.
        read_only: whether calling it changes nothing, so that a call on the side does no harm.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    run: Callable[..., Any]
    read_only: bool = False

    @cached_property
    def schema(self) -> Tool:
        """The tool in the OpenAI shape."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.parameters),
        }
        return {"type": "function", "function": function}

    @cached_property
    def _validator(self) -> Any:
        try:
            Draft202012Validator.check_schema(self.parameters)
        except SchemaError as error:
            raise UsageError(
                f"the parameters of the tool '{self.name}' are no JSON Schema: {error.message}"
            ) from error
        # An empty registry: a schema never makes the network be asked for another one.
        registry: Registry[Any] = Registry()
        return Draft202012Validator(self.parameters, registry=registry)

    def wrong(self, arguments: Mapping[str, Any]) -> str | None:
        """What is wrong with arguments, in a sentence for the agent; None when they fit."""
        try:
            error = best_match(self._validator.iter_errors(arguments))
        except Unresolvable as missing:
            raise UsageError(
                f"the parameters of the tool '{self.name}' refer to a schema that is not there"
            ) from missing
        if error is None:
            return None
        place = "".join(f"[{part!r}]" for part in error.absolute_path)
        return f"{place + ': ' if place else ''}{error.message}"[:LONGEST_REASON]


def carry_out(call: Call, tools: Mapping[str, FunctionTool]) -> Result:
    """Call a tool. Whatever the agent does wrong is a result with an error.

    Args:
        call: the call.
        tools: the tools that can be called, by name.

    Raises:
        InfrastructureError: a tool raised it; the agent is not to blame.
        UsageError: the parameters of a tool are no JSON Schema.
    """
    started = time.perf_counter()
    return _timed(_carry_out(call, tools), call, started)


async def carry_out_async(call: Call, tools: Mapping[str, FunctionTool]) -> Result:
    """The same for tools of which some are coroutine functions."""
    started = time.perf_counter()
    return _timed(await _carry_out_async(call, tools), call, started)


def _timed(result: Result, call: Call, started: float) -> Result:
    duration = round((time.perf_counter() - started) * 1000, 3)
    return replace(result, call_id=call.call_id, name=call.name, duration_ms=duration)


def _carry_out(call: Call, tools: Mapping[str, FunctionTool]) -> Result:
    checked = _checked(call, tools)
    if isinstance(checked, Result):
        return checked
    tool, arguments = checked
    try:
        return _result(tool.run(**arguments))
    except BaseException as error:
        return _raised(error)


async def _carry_out_async(call: Call, tools: Mapping[str, FunctionTool]) -> Result:
    checked = _checked(call, tools)
    if isinstance(checked, Result):
        return checked
    tool, arguments = checked
    try:
        value = tool.run(**arguments)
        return _result(await value if inspect.isawaitable(value) else value)
    except BaseException as error:
        return _raised(error)


def _checked(
    call: Call, tools: Mapping[str, FunctionTool]
) -> tuple[FunctionTool, Mapping[str, Any]] | Result:
    """The tool and its arguments, or the result that says what is wrong."""
    tool = tools.get(call.name)
    if tool is None:
        known = ", ".join(tools) or "none"
        name = call.name[:LONGEST_REASON]
        return failed(ErrorType.UNKNOWN_TOOL, f"there is no tool '{name}'; tools: {known}")
    arguments, valid = object_of(call.arguments or "{}")
    if not valid:
        return failed(ErrorType.PARSING, "the arguments are not a JSON object")
    try:
        reason = tool.wrong(arguments)
    except RecursionError:
        reason = "the arguments are nested too deeply"
    if reason is not None:
        return failed(ErrorType.INVALID_ARGS, reason)
    return tool, arguments


def _result(value: Any) -> Result:
    if isinstance(value, Result):
        return value
    return Result(
        text=result_text(value), structured=None if isinstance(value, str) else plain(value)
    )


def _raised(error: BaseException) -> Result:
    """What the agent is told of an exception; one that is not for it is raised again."""
    if isinstance(error, InfrastructureError) or stops(error):
        raise error
    if isinstance(error, ToolError):
        return failed(error.kind, str(error))
    if isinstance(error, TimeoutError):
        return failed(ErrorType.TIMEOUT, str(error) or "the tool took too long")
    return failed(ErrorType.EXECUTION, error_text(error)[:LONGEST_REASON])


def failed(kind: ErrorType, reason: str) -> Result:
    """A result that tells the agent what went wrong."""
    return Result(text=f"Error: {reason}", error=kind)


def result_text(value: Any) -> str:
    """What the agent reads of a value: a text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(plain(value), ensure_ascii=False)


def plain(value: Any) -> Any:
    """A value as JSON knows it; NaN and infinity are texts, other objects their ``str``."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(child) for key, child in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes):
        return [plain(child) for child in value]
    return str(value)
