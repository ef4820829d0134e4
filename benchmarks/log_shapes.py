"""Large logs of the formats that are used most: seeded, the same bytes every time.

All of them hold runs of the same make: a user's message, then turns of a model with reasoning, text
and calls, and what came back. Each is laid out as the program that writes the format lays it out.
What a format repeats is repeated here, too: a trajectory of SWE-agent has the messages of each
query, a log of Inspect and a span the messages that the model saw.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from generate import TOOLS, Words

Message = dict[str, Any]
_DAY = "2026-03-04T"
_TOOL_COUNT = 12


@dataclass
class Turn:
    """A turn of the model, or a message of the user when there are no calls and no reasoning.

    Attributes:
        user: what the user says before it; mostly empty.
        reasoning: what the model thinks.
        text: what it says.
        calls: (id, tool, arguments, what came back).
        tokens: of the prompt, and of the answer.
    """

    user: str
    reasoning: str
    text: str
    calls: list[tuple[str, str, dict[str, Any], str]]
    tokens: tuple[int, int]


class RunSource:
    """Makes runs turn by turn.

    Args:
        seed: of the texts.
    """

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.words = Words(seed)
        self.system = self.words.text(4_000)
        self.tools = [
            {"name": name, "description": self.words.text(200), "schema": {"type": "object"}}
            for name in TOOLS[:_TOOL_COUNT]
        ]
        self._count = 0

    def turn(self, *, first: bool = False) -> Turn:
        """The next turn; a user says something before the first one and before one in ten."""
        draw, words = self.draw, self.words
        self._count += 1
        user = words.text(300) if first or self._count % 10 == 0 else ""
        calls = []
        for number in range(draw.choice((1, 1, 1, 2))):
            arguments = {"path": f"src/{words.text(12)}.py", "limit": draw.randint(1, 900)}
            if draw.random() < 0.3:
                arguments["text"] = words.text(draw.randint(100, 900))
            size = int(min(12_000, draw.lognormvariate(6.8, 1.0)))
            name = draw.choice(TOOLS[:_TOOL_COUNT])
            calls.append((f"call_{self._count}_{number}", name, arguments, words.text(size)))
        text = words.text(draw.randint(40, 400)) if draw.random() < 0.5 else ""
        return Turn(user, words.text(draw.randint(80, 600)), text, calls,
                    (draw.randint(1_000, 90_000), draw.randint(20, 900)))  # fmt: skip


class Clock:
    """Times that go on by a second and a bit."""

    def __init__(self) -> None:
        self.ticks = 0

    def iso(self) -> str:
        """The next time, as text."""
        self.ticks += 1
        seconds = self.ticks % 86_400
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return f"{_DAY}{clock}.{self.ticks % 1000:03}Z"

    def milliseconds(self) -> int:
        """The next time, in milliseconds."""
        self.ticks += 1
        return 1_772_600_000_000 + self.ticks * 1_037


def compact(value: Any) -> bytes:
    """JSON as JavaScript writes it."""
    return msgspec.json.encode(value)


def spaced(value: Any) -> bytes:
    """JSON as Python writes it."""
    return json.dumps(value, ensure_ascii=False).encode()


def _uuid(number: int) -> str:
    return f"0195a000-0000-7000-8000-{number:012x}"


# ---- logs of coding agents -----------------------------------------------------------------------


def claude_code(source: RunSource) -> Iterator[bytes]:
    """Lines of a session of Claude Code: a line a block of a message."""
    clock, number = Clock(), 0
    session = _uuid(1)

    def line(kind: str, **more: Any) -> bytes:
        nonlocal number
        number += 1
        parent = _uuid(number - 1) if number > 1 else None
        head = {"parentUuid": parent, "isSidechain": False, "userType": "external"}
        head |= {"cwd": "/work/mill", "sessionId": session, "version": "2.1.290"}
        head |= {"gitBranch": "main", "slug": "slow-mill", "type": kind, "uuid": _uuid(number)}
        return compact({**head, "timestamp": clock.iso(), **more})

    snapshot = {"type": "prompt_snapshot", "systemPrompt": [source.system], "tools": source.tools}
    yield line("attachment", attachment=snapshot)
    first = True
    while True:
        turn, first = source.turn(first=first), False
        if turn.user:
            yield line("user", message={"role": "user", "content": turn.user})
        usage = {"input_tokens": 4, "cache_read_input_tokens": turn.tokens[0]}
        usage |= {"cache_creation_input_tokens": 100, "output_tokens": turn.tokens[1]}
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant"}
        message |= {"model": "claude-opus-9", "stop_reason": None, "stop_sequence": None}
        blocks = [{"type": "thinking", "thinking": turn.reasoning, "signature": "c2lnMQ=="}]
        blocks += [{"type": "text", "text": turn.text}] if turn.text else []
        for call, name, arguments, _ in turn.calls:
            blocks.append({"type": "tool_use", "id": call, "name": name, "input": arguments})
        request = f"req_{number}"
        for block in blocks:
            content = {**message, "content": [block], "usage": usage}
            yield line("assistant", message=content, requestId=request)
        for call, _, _, result in turn.calls:
            block = {"tool_use_id": call, "type": "tool_result", "content": result}
            outcome = {"stdout": result, "stderr": "", "interrupted": False, "isImage": False}
            content = {"role": "user", "content": [block]}
            yield line("user", message=content, toolUseResult=outcome)


def codex(source: RunSource, compact_every: int = 0) -> Iterator[bytes]:
    """Lines of a rollout of Codex; with ``compact_every``, a compaction after so many turns."""
    clock, turns, history = Clock(), 0, list[Message]()

    def line(kind: str, payload: Message) -> bytes:
        return compact({"timestamp": clock.iso(), "type": kind, "payload": payload})

    def item(payload: Message) -> bytes:
        history.append(payload)
        return line("response_item", payload)

    meta = {"id": _uuid(1), "timestamp": clock.iso(), "cwd": "/srv/kites", "source": "cli"}
    meta |= {"originator": "codex_cli_rs", "cli_version": "0.101.0", "model_provider": "openai"}
    yield line("session_meta", {**meta, "base_instructions": {"text": source.system}})
    used = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}
    used |= {"reasoning_output_tokens": 0, "total_tokens": 0}
    while True:
        turn = source.turn(first=not turns)
        turns += 1
        if turn.user:
            context = {"turn_id": _uuid(turns), "cwd": "/srv/kites", "model": "gpt-kite"}
            context |= {"approval_policy": "never", "effort": "high", "summary": "auto"}
            yield line("turn_context", context)
            content = [{"type": "input_text", "text": turn.user}]
            yield item({"type": "message", "role": "user", "content": content})
            yield line("event_msg", {"type": "user_message", "message": turn.user, "images": []})
        yield line("event_msg", {"type": "agent_reasoning", "text": turn.reasoning})
        summary = [{"type": "summary_text", "text": turn.reasoning}]
        sealed = {"content": None, "encrypted_content": "c2VhbGVk" * 40}
        yield item({"type": "reasoning", "summary": summary, **sealed})
        if turn.text:
            content = [{"type": "output_text", "text": turn.text}]
            yield line("event_msg", {"type": "agent_message", "message": turn.text})
            yield item({"type": "message", "role": "assistant", "content": content})
        for call, name, arguments, _ in turn.calls:
            text = compact(arguments).decode()
            head = {"type": "function_call", "name": name, "arguments": text}
            yield item({**head, "call_id": call})
        last = {"input_tokens": turn.tokens[0], "cached_input_tokens": 0}
        last |= {"output_tokens": turn.tokens[1], "reasoning_output_tokens": 0}
        last |= {"total_tokens": sum(turn.tokens)}
        used = {name: used[name] + last[name] for name in used}
        info = {"total_token_usage": used, "last_token_usage": last, "model_context_window": 200000}
        yield line("event_msg", {"type": "token_count", "info": info, "rate_limits": None})
        for call, _, _, result in turn.calls:
            yield item({"type": "function_call_output", "call_id": call, "output": result})
        if compact_every and turns % compact_every == 0:
            yield line("compacted", {"message": "", "replacement_history": list(history)})


def pi(source: RunSource) -> Iterator[bytes]:
    """Lines of a session of Pi."""
    clock, number = Clock(), 0

    def message(content: Message) -> bytes:
        nonlocal number
        number += 1
        parent = f"{number - 1:08x}" if number > 1 else None
        head = {"type": "message", "id": f"{number:08x}", "parentId": parent}
        return compact({**head, "timestamp": clock.iso(), "message": content})

    head = {"type": "session", "version": 3, "id": _uuid(1), "timestamp": clock.iso()}
    yield compact({**head, "cwd": "/home/ann/shop"})
    while True:
        turn = source.turn(first=not number)
        if turn.user:
            content = [{"type": "text", "text": turn.user}]
            yield message({"role": "user", "content": content, "timestamp": clock.milliseconds()})
        blocks = [{"type": "thinking", "thinking": turn.reasoning, "thinkingSignature": "c2ln"}]
        blocks += [{"type": "text", "text": turn.text}] if turn.text else []
        for call, name, arguments, _ in turn.calls:
            blocks.append({"type": "toolCall", "id": call, "name": name, "arguments": arguments})
        usage = {"input": turn.tokens[0], "output": turn.tokens[1], "cacheRead": 56}
        usage |= {"cacheWrite": 7, "totalTokens": sum(turn.tokens), "cost": {"total": 0.037}}
        more = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-x"}
        more |= {"usage": usage, "stopReason": "toolUse", "timestamp": clock.milliseconds()}
        yield message({"role": "assistant", "content": blocks, **more})
        for call, name, _, result in turn.calls:
            content = [{"type": "text", "text": result}]
            answer = {"role": "toolResult", "toolCallId": call, "toolName": name}
            answer |= {"content": content, "isError": False, "timestamp": clock.milliseconds()}
            yield message(answer)


def gemini_cli(source: RunSource) -> Iterator[bytes]:
    """Lines of a session of Gemini CLI: a message once before and once after its calls."""
    clock, number = Clock(), 0
    head = {"sessionId": _uuid(1), "projectHash": "ab12cd", "startTime": clock.iso()}
    yield compact({**head, "lastUpdated": clock.iso(), "kind": "main"})
    while True:
        turn, now = source.turn(first=not number), clock.iso()
        number += 1
        if turn.user:
            content = [{"text": turn.user}]
            yield compact(
                {"id": f"u{number}", "timestamp": now, "type": "user", "content": content}
            )
        tokens = {"input": turn.tokens[0], "output": turn.tokens[1], "cached": 0, "thoughts": 5}
        tokens |= {"tool": 0, "total": sum(turn.tokens) + 5}
        thought = {"subject": "Next", "description": turn.reasoning, "timestamp": now}
        message = {"id": f"g{number}", "timestamp": now, "type": "gemini", "content": turn.text}
        message |= {"thoughts": [thought], "tokens": tokens, "model": "gemini-pond"}
        yield compact(message)
        calls = []
        for call, name, arguments, result in turn.calls:
            response = {"id": call, "name": name, "response": {"output": result}}
            made = {"id": call, "name": name, "args": arguments, "status": "success"}
            made |= {"timestamp": now, "result": [{"functionResponse": response}]}
            calls.append({**made, "resultDisplay": "", "displayName": name})
        yield compact({**message, "toolCalls": calls})
        yield compact({"$set": {"lastUpdated": clock.iso()}})


def openhands_v1(source: RunSource) -> Iterator[bytes]:
    """Events of a conversation of OpenHands."""
    clock, number = Clock(), 0

    def event(kind: str, origin: str, **more: Any) -> bytes:
        nonlocal number
        number += 1
        head = {"id": _uuid(number), "timestamp": clock.iso()[:-1], "source": origin}
        return spaced({**head, **more, "kind": kind})

    def texts(text: str) -> list[Message]:
        return [{"cache_prompt": False, "type": "text", "text": text}] if text else []

    tools = [{"type": "function", "function": tool} for tool in source.tools]
    yield event("SystemPromptEvent", "agent", system_prompt=texts(source.system)[0], tools=tools)
    while True:
        turn = source.turn(first=number == 1)
        if turn.user:
            message = {"role": "user", "content": texts(turn.user), "tool_calls": None}
            message |= {"tool_call_id": None, "name": None, "thinking_blocks": []}
            yield event("MessageEvent", "user", llm_message=message, activated_skills=[])
        response, actions = f"resp-{number}", []
        for order, (call, name, arguments, result) in enumerate(turn.calls):
            written = spaced(arguments).decode()
            made = {"id": call, "name": name, "arguments": written, "origin": "completion"}
            yield event(
                "ActionEvent", "agent", thought=[] if order else texts(turn.text),
                reasoning_content=None if order else turn.reasoning, thinking_blocks=[],
                action={**arguments, "kind": "FileAction"}, tool_name=name, tool_call_id=call,
                tool_call=made, llm_response_id=response, security_risk="LOW", summary="a step",
            )  # fmt: skip
            actions.append((_uuid(number), call, name, result))
        for action, call, name, result in actions:
            observed = {"content": texts(result or "-"), "is_error": False, "exit_code": 0}
            observed |= {"timeout": False, "kind": "TerminalObservation"}
            more = {"tool_name": name, "tool_call_id": call, "action_id": action}
            yield event("ObservationEvent", "environment", observation=observed, **more)


LINES: dict[str, Callable[[RunSource], Iterator[bytes]]] = {
    "claude_code": claude_code,
    "codex": codex,
    "openhands_v1": openhands_v1,
    "pi": pi,
    "gemini_cli": gemini_cli,
}
"""Formats of one session a file, a line an event."""


def write_lines(lines: Iterator[bytes], path: Path, megabytes: float) -> int:
    """Write lines until the file has so many megabytes; returns their number."""
    size = count = 0
    with path.open("wb", buffering=1 << 20) as file:
        for line in lines:
            size += file.write(line + b"\n")
            count += 1
            if size >= megabytes * 1_000_000:
                break
    return count
