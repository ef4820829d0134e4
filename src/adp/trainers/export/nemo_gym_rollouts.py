"""``nemo-gym-rollouts``: finished rollouts as the rows that NeMo Gym collects and NeMo RL trains.

A row is the request, the response with its items in order (results of tools among them), and the
reward. The last item of each turn of the model has the ids of its prompt, the ids that it wrote,
and their log probabilities, as NeMo Gym's model server adds them for training.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from adp.rendering.chat import Message
from adp.trainers.export.exporter import UnwritableChatError
from adp.trainers.export.rollout_messages import RolloutMessages
from adp.trainers.export.rollout_rows import Rollout
from adp.trainers.export.rollouts import RolloutExporter
from adp.trainers.export.shapes import plain
from adp.trainers.rollouts.sequence import TokenSequence
from adp_schema.ids import digest

_BODY = """\
## Load it

A line is a row of NeMo Gym's rollout collection, checked with its own types (0.4.0):

```python
from nemo_gym.base_resources_server import BaseVerifyResponse

rows = [BaseVerifyResponse.model_validate_json(line) for line in open("rollouts.jsonl")]
```

- `responses_create_params` has the input and the tools, `response.output` the items in order:
  reasoning, messages, calls, and results of tools.
- The last item of each turn has `prompt_token_ids`, `generation_token_ids` and
  `generation_log_probs`: NeMo RL joins them to one sequence, and trains what was generated.
- A generated token that a mask of the store leaves out cannot be said here, so a turn of which all
  tokens are out has no ids, and one of which some are is counted as left out.
- `_ng_task_index` is the same for all attempts at one task, `_ng_rollout_index` is the attempt.
- A rollout whose history was rewritten is a row for each part, with the reward of the whole.
"""

_SOME = "a turn of which only some tokens are trained, which NeMo Gym cannot say"


class NemoGymRollouts(RolloutExporter):
    """The exporter."""

    name = "nemo-gym-rollouts"
    title = "NeMo Gym, NeMo RL: finished rollouts with token ids on the items of the response"
    file = "rollouts.jsonl"
    heading = "Rollouts for NeMo Gym"
    body = _BODY
    needs_logprobs = True
    needs_reward = True

    def rows_of(self, rollout: Rollout) -> Iterator[dict[str, Any]]:
        """The rows of a rollout, by its messages."""
        messages = RolloutMessages(rollout.trajectory)
        for number, row in enumerate(rollout.rows):
            yield self._row(rollout, number, row, messages)

    def _row(
        self, rollout: Rollout, number: int, row: TokenSequence, messages: RolloutMessages
    ) -> dict[str, Any]:
        run = rollout.trajectory
        turns = messages.turns(row)
        name = f"{run.trajectory_id}/{number}"
        tools = [_tool(tool) for tool in messages.tools]
        output: list[dict[str, Any]] = []
        for place, ((inputs, answer), span) in enumerate(zip(turns, row.spans, strict=True)):
            if place:
                output += _inputs(inputs, f"{name}/{place}")
            items = _items(answer, f"{name}/{place}")
            items[-1].update(_tokens(row, *span))
            output += items
        started = run.started_at
        values: dict[str, Any] = plain(
            {
                "responses_create_params": {
                    "input": _inputs(turns[0][0] if turns else (), name),
                    "tools": tools,
                },
                "response": {
                    "id": f"resp_{digest(name.encode('utf-8', 'replace'))}",
                    "created_at": 0.0 if started is None else started.timestamp(),
                    "model": run.agent_model or "",
                    "object": "response",
                    "output": output,
                    "parallel_tool_calls": True,
                    "tool_choice": "auto",
                    "tools": tools,
                },
                "reward": rollout.reward,
                "_ng_task_index": int(digest(rollout.group.encode("utf-8", "replace"))[:13], 16),
                "_ng_rollout_index": run.attempt or 0,
                "agent_ref": {"type": "responses_api_agents", "name": "adp"},
                "metadata": {**rollout.facts(), "row": number, "rows": len(rollout.rows)},
            }
        )
        return values


def _tokens(row: TokenSequence, begin: int, end: int) -> dict[str, Any]:
    mask = row.response_mask[begin:end]
    if not any(mask):
        return {}
    if not all(mask):
        raise UnwritableChatError(_SOME)
    assert row.logprobs is not None
    return {
        "prompt_token_ids": [*row.prompt_ids, *row.response_ids[:begin]],
        "generation_token_ids": list(row.response_ids[begin:end]),
        "generation_log_probs": list(row.logprobs[begin:end]),
    }


def _items(message: Message | None, name: str) -> list[dict[str, Any]]:
    """The items of a turn; an empty message where it says nothing."""
    items: list[dict[str, Any]] = []
    if message is not None and message.reasoning:
        summary = [{"type": "summary_text", "text": message.reasoning}]
        items.append({"id": f"rs_{name}", "type": "reasoning", "summary": summary})
    calls = () if message is None else message.calls
    text = "" if message is None else message.text
    if text or not calls:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        about = {"role": "assistant", "status": "completed"}
        items.append({"id": f"msg_{name}", "type": "message", "content": content, **about})
    for call in calls:
        item = {"name": call.name, "arguments": call.text, "call_id": call.call_id}
        items.append({"id": f"fc_{call.call_id}", "type": "function_call", **item})
    return items


def _inputs(messages: Iterable[Message], name: str) -> list[dict[str, Any]]:
    """Messages that the model read; those of an assistant are examples or a copied context."""
    items: list[dict[str, Any]] = []
    for place, message in enumerate(messages):
        if message.role == "tool":
            answer = {"call_id": message.call_id or "", "output": message.text}
            items.append({"type": "function_call_output", **answer})
        elif message.role == "assistant":
            items += _items(message, f"{name}/context-{place}")
        else:
            items.append({"type": "message", "role": message.role, "content": message.text})
    return items


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    function = tool.get("function", {})
    return {
        "type": "function",
        "name": str(function.get("name") or ""),
        "description": function.get("description") or "",
        "parameters": function.get("parameters") or {},
        "strict": False,
    }


EXPORTER = NemoGymRollouts()
