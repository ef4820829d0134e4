"""A Python interpreter: each call is a program of its own in the sandbox.

Nothing is kept between calls, so an episode can be forked at any time. The sandbox is bubblewrap
(`adp.rollouts.sandbox`); without it the environment refuses, unless ``unsafe`` is set, which only a
person may do.
"""

from __future__ import annotations

from typing import Any

from adp.rollouts.environment import EnvironmentKind
from adp.rollouts.sandbox.command import bubblewrap
from adp.rollouts.sandbox.run import Completed, SandboxLimits, run_python
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool, arguments_schema
from adp.rollouts.turns import ErrorType, Result

_CODE = {"type": "string", "description": "The program."}
_STOPPED = {
    "time": (ErrorType.TIMEOUT, "the program ran longer than {seconds:g} s and was stopped"),
    "memory": (ErrorType.LIMIT, "the program used more than {memory_mb} MiB and was stopped"),
    "output": (ErrorType.LIMIT, "the program wrote more than {output_bytes} bytes; it was stopped"),
}


class PythonSettings(SandboxLimits):
    """Settings of the environment ``python``."""

    unsafe: bool = False
    """Run without a sandbox, with all rights of this process."""


class PythonEnvironment(ToolEnvironment):
    """One tool, ``python``, that runs a program and returns what it printed.

    Args:
        settings: limits, and whether to do without a sandbox.

    Raises:
        UsageError: bubblewrap is missing or does not work here, and ``unsafe`` is not set.
    """

    blocking = True

    def __init__(self, settings: PythonSettings) -> None:
        if not settings.unsafe:
            bubblewrap()
        super().__init__([python_tool(settings)])


def python_tool(settings: PythonSettings) -> FunctionTool:
    """The tool alone, for other environments."""

    def python(code: str) -> Result:
        return told_of(run_python(code, settings, unsafe=settings.unsafe), settings)

    return FunctionTool(
        name="python",
        description="Run a Python program with the standard library. Returns what it prints; the "
        "value of a last expression is printed. Nothing is kept for the next call.",
        parameters=arguments_schema({"code": _CODE}),
        run=python,
        read_only=True,
    )


def told_of(done: Completed, limits: SandboxLimits) -> Result:
    """What the agent is told of a program that ran."""
    output = "\n".join(part.rstrip("\n") for part in (done.stdout, done.stderr) if part)
    code = done.exit_code
    structured: dict[str, Any] = {"stdout": done.stdout, "stderr": done.stderr, "exit_code": code}
    if done.stopped is not None:
        kind, reason = _STOPPED[done.stopped]
        text = f"Error: {reason.format(**limits.model_dump())}"
        return Result(f"{output}\n{text}" if output else text, error=kind, structured=structured)
    if code != 0:
        text = output or f"Error: the program ended with the exit status {code} and said nothing"
        return Result(text, error=ErrorType.EXECUTION, exit_code=code, structured=structured)
    return Result(output or "(no output)", exit_code=0, structured=structured)


KIND = EnvironmentKind(
    name="python",
    about="A Python interpreter in a sandbox (bubblewrap): no network, no files, limits.",
    settings=PythonSettings,
    make=PythonEnvironment,
)
