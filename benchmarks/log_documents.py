"""The other half of `log_shapes`: trajectories, exports, spans, requests and evaluation logs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from log_shapes import LINES, Clock, Message, RunSource, Turn, compact, spaced, write_lines

_TURNS = 20
"""Turns of a run in formats of many runs a file."""


def _chat(turn: Turn) -> list[Message]:
    """A turn as messages of OpenAI's form."""
    messages: list[Message] = [{"role": "user", "content": turn.user}] if turn.user else []
    calls = []
    for call, name, arguments, _ in turn.calls:
        function = {"name": name, "arguments": spaced(arguments).decode()}
        calls.append({"id": call, "type": "function", "function": function})
    messages.append({"role": "assistant", "content": turn.text, "tool_calls": calls})
    for call, _, _, result in turn.calls:
        messages.append({"role": "tool", "content": result, "tool_call_id": call})
    return messages


def swe_agent(source: RunSource) -> Iterator[bytes]:
    """A trajectory of SWE-agent: each step with the messages of its query."""
    history: list[Message] = [
        {"role": "system", "content": source.system, "message_type": "system_prompt"},
        {"role": "user", "content": source.words.text(900), "message_type": "observation"},
    ]
    history = [{**message, "agent": "main"} for message in history]
    steps = []
    for _ in range(_TURNS * 3):
        turn = source.turn()
        turn.user, turn.calls = "", turn.calls[:1]
        call, name, arguments, result = turn.calls[0]
        action = f"{name} {arguments['path']}"
        step = {"action": action, "observation": result, "response": turn.text}
        step |= {"thought": turn.text, "execution_time": 0.25, "state": {"working_dir": "/w"}}
        steps.append({**step, "query": list(history), "extra_info": {}})
        answer, observed = _chat(turn)
        more = {"thought": turn.text, "action": action, "agent": "main", "message_type": "action"}
        history.append({**answer, **more})
        observed = {"role": "tool", "content": result, "agent": "main"}
        history.append({**observed, "message_type": "observation", "tool_call_ids": [call]})
    info = {"exit_status": "submitted", "submission": "diff", "model_stats": {"api_calls": 60}}
    whole = {"environment": "swe_main", "trajectory": steps, "history": history, "info": info}
    yield json.dumps(whole, indent=2).encode()


def opencode(source: RunSource) -> Iterator[bytes]:
    """An export of a session of opencode."""
    clock, session, parts_made = Clock(), "ses_orchard1", 0
    messages: list[Message] = []

    def part(message: str, kind: str, **more: Any) -> Message:
        nonlocal parts_made
        parts_made += 1
        head = {"id": f"prt_{parts_made:08}", "sessionID": session, "messageID": message}
        return {**head, "type": kind, **more}

    for number in range(_TURNS * 50):
        turn, name = source.turn(first=not number), f"msg_{number:06}"
        if turn.user:
            info = {"id": f"{name}u", "sessionID": session, "role": "user", "agent": "build"}
            info |= {"time": {"created": clock.milliseconds()}}
            texts = [part(f"{name}u", "text", text=turn.user)]
            messages.append({"info": info, "parts": texts})
        span = {"start": clock.milliseconds(), "end": clock.milliseconds()}
        parts = [part(name, "step-start"), part(name, "reasoning", text=turn.reasoning, time=span)]
        parts += [part(name, "text", text=turn.text, time=span)] if turn.text else []
        for call, tool, arguments, result in turn.calls:
            state = {"status": "completed", "input": arguments, "output": result, "title": tool}
            state |= {"metadata": {"exit": 0, "truncated": False}, "time": span}
            parts.append(part(name, "tool", callID=call, tool=tool, state=state))
        tokens = {"input": turn.tokens[0], "output": turn.tokens[1], "reasoning": 0}
        tokens |= {"cache": {"read": 60, "write": 40}}
        parts.append(part(name, "step-finish", reason="tool-calls", cost=0.01, tokens=tokens))
        info = {"id": name, "sessionID": session, "role": "assistant", "modelID": "claude-x"}
        info |= {"providerID": "anthropic", "mode": "build", "path": {"cwd": "/srv", "root": "/"}}
        info |= {"cost": 0.01, "tokens": tokens, "time": {"created": span["start"]}}
        messages.append({"info": info, "parts": parts})
    about = {"id": session, "version": "1.18.31", "projectID": "prj_1", "directory": "/srv/orchard"}
    about |= {"title": "Count the trees", "time": {"created": 1_790_000_000_000}}
    yield json.dumps({"info": about, "messages": messages}, indent=2, ensure_ascii=False).encode()


def _attribute(key: str, value: Any) -> Message:
    kind = "intValue" if isinstance(value, int) else "stringValue"
    return {"key": key, "value": {kind: str(value)}}


def otlp(source: RunSource) -> Iterator[bytes]:
    """Traces as a collector writes them to a file: a run a line, each call of the model a span."""
    number = 0
    while True:
        number += 1
        history: list[Message] = []
        spans = []
        for order in range(_TURNS // 2):
            turn = source.turn(first=not order)
            if turn.user:
                parts = [{"type": "text", "content": turn.user}]
                history.append({"role": "user", "parts": parts})
            made = [{"type": "reasoning", "content": turn.reasoning}]
            for call, name, arguments, _ in turn.calls:
                made.append({"type": "tool_call", "id": call, "name": name, "arguments": arguments})
            output = {"role": "assistant", "parts": made, "finish_reason": "tool_call"}
            values = {"gen_ai.conversation.id": f"conv-{number}", "gen_ai.operation.name": "chat"}
            values |= {"gen_ai.provider.name": "acme", "gen_ai.request.model": "m-1"}
            values |= {"gen_ai.usage.input_tokens": turn.tokens[0]}
            values |= {"gen_ai.usage.output_tokens": turn.tokens[1]}
            system = [{"type": "text", "content": source.system}]
            values |= {"gen_ai.system_instructions": spaced(system).decode()}
            values |= {"gen_ai.input.messages": spaced(history).decode()}
            values |= {"gen_ai.output.messages": spaced([output]).decode()}
            start = 1_790_000_000_000_000_000 + order * 10**9
            span = {"traceId": f"{number:032x}", "spanId": f"{number:08x}{order + 1:08x}"}
            span |= {"name": "chat m-1", "kind": 3, "startTimeUnixNano": str(start)}
            span |= {"endTimeUnixNano": str(start + 10**8), "status": {}}
            span |= {"attributes": [_attribute(key, value) for key, value in values.items()]}
            spans.append(span)
            history.append(output)
            for call, _, _, result in turn.calls:
                answer = {"type": "tool_call_response", "id": call, "response": result}
                history.append({"role": "tool", "parts": [answer]})
        resource = {"attributes": [_attribute("service.name", "orchard")]}
        scoped = {"scope": {"name": "inst", "version": "0.3"}, "spans": spans}
        yield compact({"resourceSpans": [{"resource": resource, "scopeSpans": [scoped]}]})


def anthropic_messages(source: RunSource) -> Iterator[bytes]:
    """Requests with their responses, of runs of the Messages API: the last one of each run."""
    number = 0
    tools = [
        {"name": tool["name"], "description": tool["description"], "input_schema": tool["schema"]}
        for tool in source.tools
    ]
    while True:
        number += 1
        messages: list[Message] = []
        for order in range(_TURNS):
            turn = source.turn(first=not order)
            asked = [{"type": "text", "text": turn.user}] if turn.user else []
            if asked and messages:
                messages[-1]["content"] += asked
            elif asked:
                messages.append({"role": "user", "content": asked})
            blocks = [{"type": "thinking", "thinking": turn.reasoning, "signature": "abc="}]
            for call, name, arguments, _ in turn.calls:
                blocks.append({"type": "tool_use", "id": call, "name": name, "input": arguments})
            messages.append({"role": "assistant", "content": blocks})
            results = [
                {"type": "tool_result", "tool_use_id": call, "content": result}
                for call, _, _, result in turn.calls
            ]
            messages.append({"role": "user", "content": results})
        request = {"model": "claude-x", "max_tokens": 800, "temperature": 0.5}
        request |= {"system": source.system, "tools": tools, "messages": messages}
        response = {"id": f"msg_{number}", "type": "message", "role": "assistant"}
        response |= {"model": "claude-x", "content": [{"type": "text", "text": "Done."}]}
        response |= {"stop_reason": "end_turn", "stop_sequence": None}
        response |= {"usage": {"input_tokens": 10, "output_tokens": 7}}
        yield spaced({"request": request, "response": response, "session_id": f"sess-{number}"})


def openai_responses(source: RunSource) -> Iterator[bytes]:
    """Requests with their responses, of runs of the Responses API: the last one of each run."""
    number = 0
    while True:
        number += 1
        items: list[Message] = []
        for order in range(_TURNS):
            turn = source.turn(first=not order)
            if turn.user:
                content = [{"type": "input_text", "text": turn.user}]
                items.append({"role": "user", "content": content})
            summary = [{"type": "summary_text", "text": turn.reasoning}]
            reasoning = {"type": "reasoning", "id": f"rs_{number}_{order}", "summary": summary}
            items.append({**reasoning, "encrypted_content": "ZW5j" * 80})
            for call, name, arguments, _ in turn.calls:
                made = {"type": "function_call", "id": f"fc_{call}", "call_id": call, "name": name}
                written = compact(arguments).decode()
                items.append({**made, "arguments": written, "status": "completed"})
            for call, _, _, result in turn.calls:
                items.append({"type": "function_call_output", "call_id": call, "output": result})
        answer = [{"type": "output_text", "text": "Done.", "annotations": []}]
        output = {"id": f"msg_{number}", "type": "message", "role": "assistant"}
        output |= {"status": "completed", "content": answer}
        request = {"model": "gpt-z", "instructions": source.system, "input": items}
        usage = {"input_tokens": 65, "output_tokens": 28, "total_tokens": 93}
        response = {"id": f"resp_{number}", "object": "response", "created_at": 1_772_840_681}
        response |= {"status": "completed", "model": "gpt-z", "output": [output], "usage": usage}
        yield spaced({"request": request, "response": response})


def inspect(source: RunSource) -> Iterator[bytes]:
    """A log of Inspect: samples with their messages, and an event for each call of the model."""
    clock, samples = Clock(), list[Message]()
    for number in range(40):
        system: Message = {"id": f"m-{number}-sys", "content": source.system, "role": "system"}
        asked = source.words.text(300)
        user = {"id": f"m-{number}-user", "content": asked, "source": "input", "role": "user"}
        messages, events = [system, user], list[Message]()
        for order in range(_TURNS // 2):
            turn, name, now = source.turn(), f"m-{number}-{order}", clock.iso()
            calls = [
                {"id": call, "function": tool, "arguments": arguments, "type": "function"}
                for call, tool, arguments, _ in turn.calls
            ]
            content = [{"type": "reasoning", "reasoning": turn.reasoning, "signature": "c2ln"}]
            content.append({"type": "text", "text": turn.text})
            answer = {"id": name, "content": content, "source": "generate", "role": "assistant"}
            answer |= {"tool_calls": calls, "model": "model-3"}
            usage = {"input_tokens": turn.tokens[0], "output_tokens": turn.tokens[1]}
            output = {"model": "model-3", "completion": turn.text, "usage": usage, "time": 0.25}
            output |= {"choices": [{"message": answer, "stop_reason": "tool_calls"}]}
            event = {"uuid": f"e{name}", "span_id": "s-agent", "timestamp": now, "event": "model"}
            event |= {"model": "example/model-3", "input": list(messages), "tools": []}
            event |= {"tool_choice": "auto", "config": {}, "output": output, "completed": now}
            events.append(event)
            messages.append(answer)
            for place, (call, tool, arguments, result) in enumerate(turn.calls):
                result_id = f"{name}-t{place}"
                event = {"uuid": f"e{result_id}", "span_id": "s-agent", "timestamp": now}
                event |= {"event": "tool", "type": "function", "id": call, "function": tool}
                event |= {"arguments": arguments, "result": result, "events": []}
                events.append({**event, "completed": now, "message_id": result_id})
                message = {"id": result_id, "content": result, "role": "tool", "tool_call_id": call}
                messages.append({**message, "function": tool})
        sample = {"id": f"sum-{number}", "epoch": 1, "input": asked, "target": "three"}
        sample |= {"messages": messages, "output": output, "metadata": {}, "store": {}}
        sample |= {"scores": {"graded": {"value": "C", "answer": "three"}}, "events": events}
        samples.append(sample)
    about = {"eval_id": "eval-1", "run_id": "run-1", "created": clock.iso(), "task": "sums"}
    about |= {"task_id": "t-1", "dataset": {"samples": 40}, "model": "example/model-3"}
    about |= {"packages": {"inspect_ai": "0.3.285"}, "config": {"epochs": 1}}
    whole = {"version": 2, "status": "success", "eval": about, "samples": samples}
    yield json.dumps(whole, indent=2, ensure_ascii=False).encode()


def openai_chat(source: RunSource) -> Iterator[bytes]:
    """The same runs as rows of messages, which all others are measured by."""
    number = 0
    while True:
        number += 1
        messages: list[Message] = [{"role": "system", "content": source.system}]
        for order in range(_TURNS):
            messages += _chat(source.turn(first=not order))
        yield compact({"id": f"run-{number:06}", "messages": messages})


RECORDS: dict[str, Callable[[RunSource], Iterator[bytes]]] = {
    "otlp": otlp,
    "anthropic_messages": anthropic_messages,
    "openai_responses": openai_responses,
}
"""Formats of a record a line."""

DOCUMENTS: dict[str, tuple[Callable[[RunSource], Iterator[bytes]], str]] = {
    "swe_agent": (swe_agent, "run.traj"),
    "opencode": (opencode, "export.json"),
    "inspect": (inspect, "log.json"),
}
"""Formats of one document a file, and how the file is called."""

LOG_FORMATS = (*LINES, *RECORDS, *DOCUMENTS)
"""The formats that are used most: a session a file, a record a line, or a document a file."""


def write_log(name: str, folder: Path, megabytes: float, seed: int = 1) -> Path:
    """Write logs of a format until they have so many megabytes; returns the file or the folder.

    Documents are of the size that they have; there are as many as it takes.
    """
    source = RunSource(seed)
    if name not in DOCUMENTS:
        path = folder / f"{name}.jsonl"
        write_lines((LINES | RECORDS | {"openai_chat": openai_chat})[name](source), path, megabytes)
        return path
    make, file_name = DOCUMENTS[name]
    size, count = 0, 0
    while size < megabytes * 1_000_000:
        path = folder / name / f"{count:03}" / file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        size += path.write_bytes(next(make(source)))
        count += 1
    return folder / name
