"""The tools on offer in a chat that a harness does not bring itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from adp.core.tool_names.mapping import tool_names
from adp.rendering.chat import Chat
from adp.trainers.export.harness.actions import action_of
from adp.trainers.export.harness.builtin_tools import inferred


def other_tools(chat: Chat, known: Collection[str], changed: Counter[str]) -> list[dict[str, Any]]:
    """Tools that are on offer or called, without those that the harness brings.

    Args:
        chat: the chat.
        known: names, in the Agent Data Protocol, of the tools that the harness brings, and names of
            actions that it writes in a tool of its own.
        changed: counts tools that nobody described.
    """
    names = tool_names()
    tools: dict[str, dict[str, Any]] = {}
    for tool in chat.tools:
        renamed = names.rename_schema(tool)
        name = (renamed or tool)["function"]["name"]
        if name not in known:
            tools.setdefault(name, renamed or tool)
    shown: dict[str, dict[str, Any]] = {}
    for message in chat.messages:
        for call in message.calls:
            action = action_of(call)
            if not (action.name in known or action.name in tools or action.language):
                shown.setdefault(action.name, inferred(action.name, action.arguments))
    if shown:
        changed["tools that are described nowhere, as their calls show them"] += len(shown)
    return [*tools.values(), *(shown[name] for name in sorted(shown))]
