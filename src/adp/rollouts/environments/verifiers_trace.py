"""The trace of an episode, for the rewards and stops of a task of verifiers."""

from __future__ import annotations

from typing import Any

from adp.rollouts.turns import Result, Turn


def new_trace(task: Any) -> Any:
    """The trace of an episode that begins."""
    import verifiers.v1 as package
    from verifiers.v1.state import state_cls

    about = package.TraceTask(
        type=type(task).__name__, data=task.data, key=task.key, hash=task.hash
    )
    agent = package.AgentInfo(config=package.AgentConfig())
    return package.Trace(task=about, agent=agent, state=state_cls(type(task))())


def first_messages(data: Any) -> list[dict[str, Any]]:
    """The first messages of a task."""
    system = data.system_prompt
    messages = [{"role": "system", "content": system}] if system else []
    if isinstance(data.prompt, str):
        return [*messages, {"role": "user", "content": data.prompt}]
    for message in data.prompt or []:
        content = message.content
        if not isinstance(content, str):
            content = "\n".join(getattr(part, "text", f"[{part.type}]") for part in content or [])
        messages.append({"role": message.role, "content": content})
    return messages


def assistant_message(turn: Turn) -> dict[str, Any]:
    """A turn of the model as a message of verifiers."""
    calls = [
        {"id": call.call_id, "name": call.name, "arguments": call.arguments} for call in turn.calls
    ]
    return {
        "role": "assistant",
        "content": turn.text,
        "reasoning_content": turn.reasoning,
        "tool_calls": calls or None,
    }


def tool_message(result: Result) -> dict[str, Any]:
    """A result as a message of verifiers."""
    return {
        "role": "tool",
        "tool_call_id": result.call_id,
        "content": result.text,
        "name": result.name,
    }
