"""``verifiers-traces``: finished rollouts as the traces of verifiers (0.3 and later).

A trace is a graph of messages. Each holds the tokens that it adds; along a path from a root to a
leaf they are what the model read and wrote, and such a path is one training sample. So a rollout
is one trace, and a history that was rewritten begins a path of its answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from adp.rendering.chat import Message
from adp.trainers.export.rollout_messages import RolloutMessages
from adp.trainers.export.rollout_rows import Rollout
from adp.trainers.export.rollouts import RolloutExporter
from adp.trainers.export.shapes import plain
from adp.trainers.rollouts.sequence import TokenSequence
from adp_schema.model import Step

_BODY = """\
## Load it

With verifiers 0.4.0:

```python
import verifiers.v1 as vf

traces = [vf.WireTrace.model_validate_json(line) for line in open("traces.jsonl")]
for branch in traces[0].branches:
    branch.token_ids, branch.sampled_mask, branch.logprobs, branch.advantages
```

- A line is a `Trace`, as `traces.jsonl` of a verifiers run. Each branch is one training sample.
- Tokens between two turns stand at the last message between them; so do those of a prompt.
- `rewards` holds the reward of the run as `reward`, with the weight 1, and named rewards with the
  weight 0; a rollout that was not judged has null there. `metrics` has turns and tool calls.
- Without log probabilities (rollouts that were rendered) `logprobs` of a message is empty, and
  verifiers reads zeros. `info.adp.recorded` says which rollouts these are.
- `task.key` is the same for all attempts at one task.
"""

_REASONS = {"length": "length", "max_tokens": "length", "tool_calls": "tool_calls", "stop": "stop"}


class VerifiersTraces(RolloutExporter):
    """The exporter."""

    name = "verifiers-traces"
    title = "verifiers, prime-rl: finished rollouts as traces, with tokens on their messages"
    file = "traces.jsonl"
    heading = "Traces for verifiers"
    body = _BODY

    def rows_of(self, rollout: Rollout) -> Iterator[dict[str, Any]]:
        """One trace a rollout."""
        run = rollout.trajectory
        messages = RolloutMessages(run)
        steps = {step.step: step for step in run.steps}
        nodes: list[dict[str, Any]] = []
        calls: list[dict[str, Any]] = []
        tools = [_tool(tool) for tool in messages.tools]
        for row in rollout.rows:
            _add_path(nodes, calls, row, messages.turns(row), steps)
        for node in nodes:
            if node["parent"] is None and tools:
                node["tools"] = tools
            if node["sampled"] and rollout.advantage is not None:
                node["advantages"] = [rollout.advantage] * sum(node["mask"])
        task = {"id": run.task_id, "prompt": _inputs(messages.turns(rollout.rows[0]))}
        facts = rollout.facts()
        yield plain(
            {
                "version": 1,
                "id": run.trajectory_id,
                "task": {"type": "AdpTask", "data": task, "key": rollout.group},
                "agent": {"config": {"model": run.agent_model}, "name": "agent"},
                "tools": tools,
                "nodes": nodes,
                "calls": calls,
                "rewards": _rewards(rollout.reward, facts["rewards"]),
                "metrics": {"turns": facts["turns"], "tool_calls": facts["calls"]},
                "info": {"adp": facts},
                "is_completed": True,
                "ok": run.error_type is None,
                "stop_condition": _stop(rollout),
                "timing": {"start": _seconds(run.started_at)},
            }
        )


def _add_path(
    nodes: list[dict[str, Any]],
    calls: list[dict[str, Any]],
    row: TokenSequence,
    turns: Sequence[tuple[tuple[Message, ...], Message | None]],
    steps: dict[int | None, Step],
) -> None:
    """Add the messages of a row, each behind the one before it; the first is a root."""
    parent: int | None = None
    ids = list(row.prompt_ids)
    at = 0
    for number, (begin, end), (inputs, answer) in zip(row.steps, row.spans, turns, strict=True):
        ids += row.response_ids[at:begin]
        at, step = end, steps.get(number)
        time = _seconds(step.timestamp if step else None)
        for place, message in enumerate(inputs):
            held = ids if place == len(inputs) - 1 else []
            nodes.append(_node(parent, _message(message), held, time))
            parent, ids = len(nodes) - 1, [] if held else ids
        read = sum(len(node["token_ids"]) for node in _path(nodes, parent)) + len(ids)
        written = {"role": "assistant", "content": ""} if answer is None else _message(answer)
        node = _node(parent, written, [*ids, *row.response_ids[begin:end]], time, sampled=True)
        mask = row.response_mask[begin:end]
        node["mask"] = [False] * len(ids) + list(mask)
        if row.logprobs is not None:
            pairs = zip(row.logprobs[begin:end], mask, strict=True)
            node["logprobs"] = [value for value, written in pairs if written]
        nodes.append(node)
        parent, ids = len(nodes) - 1, []
        calls.append(
            {
                "node": parent,
                "model": step.model if step else None,
                "finish_reason": _REASONS.get(str(step.stop_reason)) if step else None,
                "usage": {"prompt_tokens": read, "completion_tokens": end - begin},
            }
        )


def _path(nodes: list[dict[str, Any]], last: int | None) -> Iterator[dict[str, Any]]:
    while last is not None:
        yield nodes[last]
        last = nodes[last]["parent"]


def _node(
    parent: int | None,
    message: dict[str, Any],
    ids: list[int],
    time: float,
    *,
    sampled: bool = False,
) -> dict[str, Any]:
    return {
        "parent": parent,
        "message": message,
        "sampled": sampled,
        "timestamp": time,
        "token_ids": ids,
        "mask": [False] * len(ids),
        "logprobs": [],
    }


def _message(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {
            "role": "tool",
            "tool_call_id": message.call_id or "",
            "content": message.text,
            "name": message.name,
        }
    if message.role != "assistant":
        return {"role": message.role, "content": message.text}
    calls = [
        {"id": call.call_id, "name": call.name, "arguments": call.text} for call in message.calls
    ]
    return {
        "role": "assistant",
        "content": message.text,
        "reasoning_content": message.reasoning,
        "tool_calls": calls or None,
    }


def _inputs(turns: Sequence[tuple[tuple[Message, ...], Any]]) -> list[dict[str, Any]]:
    return [_message(message) for message in (turns[0][0] if turns else ())]


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    function = tool.get("function", {})
    return {
        "type": "function",
        "name": str(function.get("name") or ""),
        "description": function.get("description") or "",
        "parameters": function.get("parameters") or {},
    }


def _rewards(reward: float | None, named: dict[str, Any]) -> dict[str, Any]:
    values = {
        name: {"score": float(value), "weight": 0.0}
        for name, value in named.items()
        if isinstance(value, int | float)
    }
    return {**values, "reward": None if reward is None else {"score": reward, "weight": 1.0}}


def _stop(rollout: Rollout) -> str | None:
    """Why it ended, in the words of verifiers where it has some."""
    reason = rollout.trajectory.stop_reason
    if not rollout.truncated:
        return reason or "agent_completed"
    return "max_turns" if reason == "max_turns" else "max_output_tokens"


def _seconds(time: datetime | None) -> float:
    return 0.0 if time is None else time.timestamp()


EXPORTER = VerifiersTraces()
