"""The tools of an MCP server as an environment.

    mcp:command=[python, my_server.py]
    mcp:url=http://localhost:8000/mcp

Each episode has a connection of its own, and with ``command`` a server process of its own, which
gets only a few harmless variables of our environment and those named in ``env``. The server is
the user's choice alone: nothing in a task can name one.

What a tool of the server says about its own failure is an error of type ``execution``; arguments
that do not fit its schema are not sent. A server that cannot be reached, or dies, is no fault of
the agent's: the episode breaks as *infrastructure*. Needs the extra ``mcp``.
"""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TextIO

from pydantic import Field, model_validator

from adp.rollouts.environment import CannotForkError, EnvironmentKind, Settings, Start
from adp.rollouts.environments.variables import expanded, variable
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.tool_environment import AsyncToolEnvironment, ToolEnvironment, by_name
from adp.rollouts.tools import LONGEST_REASON, FunctionTool, ToolError, failed
from adp.rollouts.turns import ErrorType, Result
from adp_schema.errors import MissingExtraError, UsageError
from adp_schema.model import Task

_CLOSED, _TIMEOUT = -32000, -32001
_BY_CODE = {-32601: ErrorType.UNKNOWN_TOOL, -32602: ErrorType.INVALID_ARGS}
_GRACE = 10.0
"""Seconds that ending a server may take."""
_TAIL = 300
"""Characters of what a server wrote before it failed that are shown."""


class McpSettings(Settings):
    """Settings of the environment ``mcp``."""

    command: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Program of the server and its arguments."""
    url: str | None = Field(default=None, pattern="^https?://")
    """Address of the server (streamable HTTP)."""
    env: tuple[str, ...] = ()
    """Names of environment variables that the server process gets."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Headers of HTTP; ${NAME} stands for an environment variable."""
    only: tuple[str, ...] | None = None
    """Names of the tools on offer; without it, all."""
    timeout: float = Field(default=30.0, gt=0)
    """Seconds that a call may take."""
    start_timeout: float = Field(default=60.0, gt=0)
    """Seconds that the server may take to begin."""
    longest: int = Field(default=100_000, ge=1)
    """Characters of a result that the agent reads."""

    @model_validator(mode="after")
    def _one_server(self) -> McpSettings:
        if (self.command is None) == (self.url is None):
            raise ValueError("give either command or url")
        return self


class McpEnvironment(AsyncToolEnvironment):
    """The tools of an MCP server.

    Args:
        settings: the server, and how it is called.

    Raises:
        UsageError: the command is no program, or an environment variable is not set.
        MissingExtraError: the package mcp is not installed.
    """

    def __init__(self, settings: McpSettings) -> None:
        _check(settings)
        self._settings = settings
        super().__init__(ToolEnvironment())
        self._server: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._client: Any = None

    async def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        """Connect to the server, and begin with the instruction of the task.

        Raises:
            UsageError: there is no task with an instruction, or the server has not the tools that
                are named.
            InfrastructureError: the server does not answer as it should.
        """
        start = self._inner.reset(task, seed=seed)
        await self.close()
        self._client = await self._connected()
        try:
            async with asyncio.timeout(self._settings.start_timeout):
                self._inner.functions = await self._listed()
        except TimeoutError:
            raise _late(self._settings) from None
        return start

    def fork(self) -> McpEnvironment:
        """Not possible.

        Raises:
            CannotForkError: always; the state is in the server.
        """
        raise CannotForkError("an MCP server cannot be copied")

    async def close(self) -> None:
        """End the connection, and the process of the server."""
        server, self._server = self._server, None
        connected, self._client = self._client is not None, None
        if server is None:
            return
        self._stop.set()
        if connected:
            await asyncio.wait({server}, timeout=_GRACE)
        # Once only: a second cancellation would keep the package from ending the process.
        if not server.done() and not server.cancelling():
            server.cancel()
        await asyncio.wait({server}, timeout=_GRACE)

    async def _connected(self) -> Any:
        # A task of its own holds the connection: the package wants it closed by the task that
        # opened it, and cancels that task when the server dies.
        self._stop = asyncio.Event()
        ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._server = asyncio.create_task(self._serve(ready))
        try:
            async with asyncio.timeout(self._settings.start_timeout):
                return await asyncio.shield(ready)
        except TimeoutError:
            self._server.cancel()
            raise _late(self._settings) from None

    async def _serve(self, ready: asyncio.Future[Any]) -> None:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
            try:
                async with _client(self._settings, log) as client:
                    ready.set_result(client)
                    await self._stop.wait()
            except Exception as error:
                if not ready.done():
                    ready.set_exception(_unreachable(self._settings, _first(error), log))
            finally:
                ready.cancel()

    async def _listed(self) -> Mapping[str, FunctionTool]:
        result, cursor = [], None
        while True:
            page = await self._asked(self._client.list_tools(cursor=cursor))
            result += [self._tool(tool) for tool in page.tools]
            cursor = page.next_cursor
            if not cursor:
                break
        tools = by_name(result)
        only = self._settings.only
        missing = sorted(set(only or ()) - set(tools))
        if missing:
            known = ", ".join(tools) or "none"
            raise UsageError(f"the server has no tool {', '.join(missing)}; it has: {known}")
        return {name: tool for name, tool in tools.items() if only is None or name in only}

    def _tool(self, given: Any) -> FunctionTool:
        hints = given.annotations
        return FunctionTool(
            given.name,
            given.description or "",
            given.input_schema,
            functools.partial(self._called, given.name),
            read_only=bool(hints and hints.read_only_hint),
        )

    async def _called(self, tool: str, /, **arguments: Any) -> Result:
        timeout = self._settings.timeout
        answer = await self._asked(
            self._client.call_tool(tool, arguments, read_timeout_seconds=timeout)
        )
        text = _text(answer)
        if len(text) > self._settings.longest:
            more = len(text) - self._settings.longest
            text = f"{text[: self._settings.longest]}\n[{more:,} more characters]"
        if answer.is_error:
            return failed(ErrorType.EXECUTION, text)
        return Result(text=text, structured=answer.structured_content)

    async def _asked(self, coroutine: Any) -> Any:
        """What the server answers.

        Raises:
            ToolError: it refuses, or it takes too long.
            InfrastructureError: it is gone.
        """
        from mcp import MCPError

        try:
            return await coroutine
        except MCPError as error:
            if error.code == _TIMEOUT:
                raise ToolError("the tool took too long", ErrorType.TIMEOUT) from None
            if error.code != _CLOSED:
                kind = _BY_CODE.get(error.code, ErrorType.EXECUTION)
                raise ToolError(error.message[:LONGEST_REASON], kind) from None
            reason = error.message
        except (OSError, EOFError) as error:
            reason = str(error)
        raise InfrastructureError("mcp_connection", f"{_named(self._settings)} is gone: {reason}")


@asynccontextmanager
async def _client(settings: McpSettings, log: TextIO) -> AsyncIterator[Any]:
    """A connection to the server; what the server writes to stderr goes to the log."""
    from mcp import Client, StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client

    if settings.command is not None:
        program, *arguments = settings.command
        process = StdioServerParameters(command=program, args=arguments, env=_passed(settings.env))
        async with Client(stdio_client(process, errlog=log)) as client:
            yield client
        return
    import httpx2

    headers = {name: expanded(value) for name, value in settings.headers.items()}
    timeout = httpx2.Timeout(settings.timeout, read=None)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout) as http,
        Client(streamable_http_client(str(settings.url), http_client=http)) as client,
    ):
        yield client


def _check(settings: McpSettings) -> None:
    """What would be wrong in every episode is said before the first."""
    if importlib.util.find_spec("mcp") is None:
        raise MissingExtraError("mcp", "mcp")
    if settings.command is not None and shutil.which(settings.command[0]) is None:
        raise UsageError(f"{_named(settings)} cannot be started: there is no such program")
    _passed(settings.env)
    for value in settings.headers.values():
        expanded(value)


def _passed(names: Sequence[str]) -> dict[str, str]:
    return {name: variable(name, "the server needs it") for name in names}


def _first(error: BaseException) -> BaseException:
    """The first exception that is no group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _unreachable(settings: McpSettings, error: BaseException, log: TextIO) -> Exception:
    named = _named(settings)
    log.seek(0)
    wrote = log.read().strip()
    wrote = wrote if len(wrote) <= _TAIL else f"... {wrote[-_TAIL:]}"
    reason = f"{named} does not answer: {error}" + (f"; it wrote: {wrote}" if wrote else "")
    return InfrastructureError("mcp_connection", reason)


def _late(settings: McpSettings) -> InfrastructureError:
    seconds = settings.start_timeout
    reason = f"{_named(settings)} did not answer in time: {seconds:g} s (start_timeout)"
    return InfrastructureError("mcp_timeout", reason)


def _named(settings: McpSettings) -> str:
    what = settings.url if settings.command is None else " ".join(settings.command)
    return f"the MCP server '{what}'"


def _text(answer: Any) -> str:
    """What the agent reads of a result: its texts, and a word about what is no text."""
    parts = [_part(block) for block in answer.content]
    if not parts and answer.structured_content is not None:
        return json.dumps(answer.structured_content, ensure_ascii=False)
    return "\n".join(parts)


def _part(block: Any) -> str:
    if block.type == "text":
        return str(block.text)
    if block.type == "resource_link":
        return f"[resource {block.uri}]"
    if block.type == "resource":
        resource = block.resource
        return str(getattr(resource, "text", None) or f"[resource {resource.uri}]")
    return f"[{block.type} {getattr(block, 'mime_type', '')}]"


KIND = EnvironmentKind(
    name="mcp",
    about="The tools of an MCP server: a command of your own, or an address.",
    settings=McpSettings,
    make=McpEnvironment,
)
"""What the registry holds."""
