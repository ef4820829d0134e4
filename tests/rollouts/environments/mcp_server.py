"""A small MCP server for tests: ``python mcp_server.py`` speaks stdio, ``... http`` HTTP.

Over HTTP it chooses a port that is free, and prints it when it can be asked.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys

from mcp.server.mcpserver import Image, MCPServer  # noqa: TID253 - a program of its own
from mcp.server.mcpserver.exceptions import ToolError  # noqa: TID253

server = MCPServer("small")
counted = 0


@server.tool()
def add(a: int, b: int = 1) -> int:
    """Adds."""
    return a + b


@server.tool()
def count() -> str:
    """Counts its calls."""
    global counted
    counted += 1
    return str(counted)


@server.tool()
def say(text: str, times: int = 1) -> str:
    """Says."""
    return text * times


@server.tool()
def fail() -> str:
    """Fails."""
    raise ToolError("it broke")


@server.tool()
async def wait(seconds: float) -> str:
    """Waits."""
    await asyncio.sleep(seconds)
    return "waited"


@server.tool()
def variable(name: str) -> str:
    """Tells an environment variable."""
    return os.environ.get(name, "")


@server.tool()
def die() -> str:
    """Ends the server."""
    os._exit(3)


@server.tool()
def picture() -> Image:
    """Draws."""
    return Image(data=b"\x89PNG", format="png")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        import uvicorn

        with socket.create_server(("127.0.0.1", 0)) as listening:
            print(listening.getsockname()[1], flush=True)
            app = uvicorn.Config(server.streamable_http_app(), log_level="error")
            uvicorn.Server(app).run(sockets=[listening])
    else:
        server.run("stdio")
