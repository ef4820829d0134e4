"""Environments of verifiers (0.3 and later): tasks, tools, stops and rewards of a taskset.

    verifiers:env=my_taskset,allow_import=true

A taskset of verifiers is a Python package: it loads tasks, which have servers of tools and rewards.
Importing it runs its code, so that has to be allowed. The tools of a server are called in this
process, through verifiers' own registration of them; no server is started. What happened becomes a
trace of verifiers, which the task's own rewards and stops judge.

What needs a machine to run in (containers, ``setup`` and ``finalize`` with a runtime) or several
agents (a simulated user) is refused, or skipped by verifiers itself where a reward asks for it.
"""

from __future__ import annotations

import functools
import math
from typing import Any, get_type_hints

from adp.rollouts.environment import CannotForkError, EnvironmentKind, Start, Verdict
from adp.rollouts.environments.verifiers_tasks import (
    NAME,
    VerifiersSettings,
    check_task,
    found_task,
    make_tasks,
    taskset_of,
)
from adp.rollouts.environments.verifiers_trace import (
    assistant_message,
    first_messages,
    new_trace,
    tool_message,
)
from adp.rollouts.tool_environment import AsyncToolEnvironment, ToolEnvironment, by_name
from adp.rollouts.tools import FunctionTool, ToolError, failed
from adp.rollouts.turns import ErrorType, Outcome, Result, Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task, Trajectory


class VerifiersEnvironment(AsyncToolEnvironment):
    """A taskset of verifiers; an episode plays one of its tasks.

    Args:
        settings: which one, and how it is judged.

    Raises:
        UsageError: the import is not allowed, there is no such taskset, or verifiers is missing.
    """

    def __init__(self, settings: VerifiersSettings) -> None:
        super().__init__(ToolEnvironment())
        self._settings = settings
        self._taskset = taskset_of(settings)
        self._played: Any = None
        self._trace: Any = None
        self._toolsets: list[Any] = []

    async def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        """Begin an episode with a task of the taskset.

        Raises:
            UsageError: the task is none of the taskset, or needs what there is not.
        """
        self._played = found_task(self._taskset, task, seed)
        check_task(self._played)
        self._trace = new_trace(self._played)
        self._inner.task, self._inner.seed, self._inner.answer = task, seed, None
        self._toolsets = [
            *self._taskset.toolsets(self._taskset.config),
            *type(self._played).toolsets(self._taskset.config.task),
        ]
        tools: list[FunctionTool] = []
        for toolset in self._toolsets:
            tools += await self._started(toolset)
        self._inner.functions = by_name(tools)
        messages = first_messages(self._played.data)
        for message in messages:
            self._note(message)
        return Start(tuple(messages), {"verifiers": self._settings.env})

    async def step(self, turn: Turn) -> Outcome:
        """Carry out a turn. A stop of the task ends the episode, as before a call of the model."""
        self._note(assistant_message(turn), sampled=True)
        outcome = await super().step(turn)
        for result in outcome.results:
            if result.call_id:
                self._note(tool_message(result))
        stopped = None if outcome.terminated else await self._stopped()
        if stopped is None:
            return outcome
        return Outcome(outcome.results, terminated=True, stop_reason=stopped)

    async def score(self, trajectory: Trajectory) -> Verdict:
        """The rewards of the task, weighted; metrics are named rewards besides."""
        trace = self._trace
        if trace is None:
            return Verdict()
        trace.is_completed, trace.ok = True, True
        trace.stop_condition = trace.stop_condition or "agent_completed"
        await self._played.score(trace)
        scored = {name: kept for name, kept in trace.rewards.items() if kept is not None}
        named = {name: float(kept.score) for name, kept in scored.items()}
        named |= {name: value for name, value in trace.metrics.items() if value is not None}
        named = {name: value for name, value in named.items() if math.isfinite(value)}
        if not scored or not math.isfinite(trace.reward):
            return Verdict(rewards=named)
        solved_at = self._settings.solved_at
        success = None if solved_at is None else trace.reward >= solved_at
        return Verdict(success=success, reward=float(trace.reward), rewards=named)

    def fork(self) -> VerifiersEnvironment:
        """Not possible: servers of tools hold what cannot be copied.

        Raises:
            CannotForkError: always.
        """
        raise CannotForkError("an environment of verifiers cannot be copied")

    async def close(self) -> None:
        """Free what the servers of tools hold."""
        for toolset in self._toolsets:
            await toolset._exit_stack.aclose()
        self._toolsets = []

    def _note(self, message: dict[str, Any], *, sampled: bool = False) -> None:
        """Add a message to the trace, behind the last one."""
        import verifiers.v1 as package

        nodes = self._trace.nodes
        node = {"message": message, "sampled": sampled, "parent": len(nodes) - 1 if nodes else None}
        nodes.append(package.MessageNode.model_validate(node))

    async def _stopped(self) -> str | None:
        """The name of the stop of the task that fires now."""
        import verifiers.v1 as package
        from verifiers.v1.utils.decorators import invoke

        for stop in self._played.hooks("stop"):
            if _takes(stop, package.Request) or _takes(stop, package.Response):
                continue
            fired = invoke(stop, {package.Trace: self._trace, "trace": self._trace})
            if hasattr(fired, "__await__"):
                fired = await fired
            if fired:
                self._trace.stop(stop.__name__)
                return str(stop.__name__)
        return None

    async def _started(self, toolset: Any) -> list[FunctionTool]:
        """The tools of a server, which shares the state of the trace."""
        from mcp.server.mcpserver import MCPServer

        if getattr(toolset.config, "url", None):
            raise UsageError(
                f"the tools '{toolset.server_name}' are on a server of their own; "
                "use the environment mcp for them"
            )
        trace = self._trace

        async def pull() -> Any:
            kind = toolset._state_cls
            return trace.state if isinstance(trace.state, kind) else kind()

        async def push(before: bytes) -> None:
            """The state is shared, so there is nothing to send."""

        toolset._pull_state, toolset._push_state = pull, push
        await toolset.setup()
        await toolset.setup_task(self._played.data)
        server = MCPServer(toolset.server_name or type(toolset).__name__)
        toolset.register(server)
        prefix = f"{toolset.server_name}_" if toolset.server_name else ""
        return [_tool(server, given, prefix) for given in await server.list_tools()]


def _tool(server: Any, given: Any, prefix: str) -> FunctionTool:
    """A tool of a server, under the name that verifiers gives it."""
    run = functools.partial(_called, server, given.name)
    return FunctionTool(f"{prefix}{given.name}", given.description or "", given.input_schema, run)


async def _called(server: Any, tool: str, /, **arguments: Any) -> Result:
    try:
        answer = await server.call_tool(tool, arguments)
    except Exception as error:  # what a tool raises is told to the agent
        raise ToolError(str(error), ErrorType.EXECUTION) from None
    blocks = getattr(answer, "content", None)
    if blocks is None:
        raise ToolError("the tool asks for an input that nobody can give", ErrorType.EXECUTION)
    text = "\n".join(str(getattr(block, "text", f"[{block.type}]")) for block in blocks)
    if getattr(answer, "is_error", False):
        return failed(ErrorType.EXECUTION, text)
    return Result(text=text, structured=getattr(answer, "structured_content", None))


def _takes(function: Any, kind: type) -> bool:
    """Whether a hook asks for an argument of a type."""
    return kind in get_type_hints(function).values()


KIND = EnvironmentKind(
    name=NAME,
    about="A taskset of verifiers: its tasks, tools, stops and rewards.",
    settings=VerifiersSettings,
    make=VerifiersEnvironment,
    tasks=make_tasks,
)
"""What the registry holds."""
