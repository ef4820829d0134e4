"""Tools of reference data: recorded responses, given again for the same call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jsonschema import Draft202012Validator, SchemaError

from adp.rendering.m3_forms import ERRORS
from adp.rollouts.experts.history import call_key
from adp.rollouts.experts.reference_run import GoldTurn
from adp.rollouts.tools import FunctionTool, ToolError
from adp.rollouts.turns import Call, ErrorType, Result, Tool

SUCCESS = "ToolCallSuccessful"
PREFIXES: Mapping[ErrorType, str] = {
    ErrorType.PARSING: "ParsingError",
    ErrorType.UNKNOWN_TOOL: "ToolDoesNotFoundError",
    ErrorType.INVALID_ARGS: "ToolMissingArgumentError",
    ErrorType.EXECUTION: "ToolCallError",
    ErrorType.TIMEOUT: "ToolCallError",
    ErrorType.LIMIT: "ToolCallQuotaExceededError",
}
"""The words before an error in M3's manner."""
PARALLEL = "ParallelToolCallingError"


def recorded(gold: Sequence[GoldTurn]) -> dict[str, str]:
    """The responses of a reference run, by call."""
    results: dict[str, str] = {}
    for turn in gold:
        for step in turn.steps:
            for call in step.turn.calls:
                if step.response is not None:
                    results.setdefault(call_key(call), step.response)
    return results


def replaying(tool: Tool, responses: Mapping[str, str]) -> FunctionTool:
    """A tool that gives recorded responses.

    Any other call is an error: nobody knows what the tool would have said.
    """
    function = tool.get("function")
    about: Mapping[str, Any] = function if isinstance(function, Mapping) else {}
    name = str(about.get("name", ""))

    def run(**arguments: Any) -> str:
        key = call_key(Call(name, json.dumps(arguments)))
        if key not in responses:
            raise ToolError("no response is recorded for these arguments", ErrorType.EXECUTION)
        return responses[key]

    return FunctionTool(
        name=name,
        description=str(about.get("description", "")),
        parameters=checkable(about.get("parameters")),
        run=run,
        read_only=True,
    )


def live(tool: FunctionTool, other: FunctionTool) -> FunctionTool:
    """A tool of reference data that asks another tool.

    Arguments are checked by the other tool. An answer in JSON is told as M3 tells it: as Python
    writes the value.
    """

    def run(**arguments: Any) -> Result:
        reason = other.wrong(arguments)
        if reason is not None:
            raise ToolError(reason, ErrorType.INVALID_ARGS)
        result: Result = other.run(**arguments)
        if result.error is not None or result.structured is None:
            return result
        return replace(result, text=str(result.structured))

    return replace(tool, run=run, read_only=other.read_only)


def checkable(parameters: Any) -> Mapping[str, Any]:
    """A schema that arguments can be checked against; one that is none admits every object."""
    anything = {"type": "object"}
    if not isinstance(parameters, Mapping):
        return anything
    try:
        Draft202012Validator.check_schema(parameters)
    except SchemaError:
        return anything
    return parameters


def in_m3_words(result: Result) -> Result:
    """A result with the word before it that M3 begins it with."""
    if result.error is None:
        return replace(result, text=f"{SUCCESS}: {result.text}")
    reason = result.text.removeprefix("Error: ")
    if result.error is ErrorType.PARSING and ERRORS.match(reason):
        return replace(result, text=reason)
    return replace(result, text=f"{PREFIXES[result.error]}: {reason}")
