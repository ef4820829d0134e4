"""The tools of an environment of adp as a server that verifiers starts for each rollout."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import verifiers.v1 as vf

from adp.rollouts.environment import ENVIRONMENTS, AsyncEnvironment, as_async
from adp.rollouts.spec import load
from adp.rollouts.turns import Call, Turn
from adp_schema.model import Task
from adp_verifiers.data import AdpState, AdpTaskData


class AdpToolset(vf.Toolset[vf.ToolsetConfig, AdpState]):
    """The tools of one episode, under their own names."""

    TOOL_PREFIX = None

    async def setup_task(self, task: AdpTaskData) -> None:
        """Begin the episode.

        Args:
            task: the task of the rollout.
        """
        kind, settings = load(ENVIRONMENTS, task.environment)
        self.environment: AsyncEnvironment = as_async(kind.make(settings))
        self._exit_stack.push_async_callback(self.environment.close)
        self._turn = asyncio.Lock()
        await self.environment.reset(Task.model_validate_json(task.task), seed=task.seed)

    def register(self, mcp: Any) -> None:
        """Offer the tools with the schemas that the environment gives them."""
        from mcp.server.mcpserver.tools.base import Tool
        from mcp.types import CallToolResult, TextContent

        called = self._with_state(self.called)

        class OfferedTool(Tool):
            """A tool of the environment; its arguments are checked by the environment alone."""

            async def run(
                self, arguments: dict[str, Any], context: Any, convert_result: bool = False
            ) -> Any:
                """Call it."""
                text = await called(self.name, arguments)
                return CallToolResult(content=[TextContent(type="text", text=text)])

        for tool in self.environment.tools():
            function = tool["function"]
            plain = Tool.from_function(_nothing, name=function["name"], structured_output=False)
            fields = {name: getattr(plain, name) for name in Tool.model_fields}
            fields["description"] = function.get("description") or ""
            fields["parameters"] = function.get("parameters") or {"type": "object"}
            mcp._tool_manager._tools[function["name"]] = OfferedTool(**fields)

    async def called(self, tool: str, arguments: dict[str, Any]) -> str:
        """Carry out one call; calls of one turn come one after the other.

        Args:
            tool: name of the tool.
            arguments: its arguments.
        """
        call = Call(tool, json.dumps(arguments, ensure_ascii=False), "call")
        async with self._turn:
            if self.state.done:
                return "Error: the episode is over"
            outcome = await self.environment.step(Turn(calls=(call,)))
            self.state.done = outcome.terminated or outcome.truncated
        texts = [result.text for result in outcome.results]
        return "\n\n".join([*texts, *outcome.messages])


async def _nothing() -> str:
    """What a tool is made of before it gets its schema."""
    return ""


if __name__ == "__main__":
    AdpToolset.run()
