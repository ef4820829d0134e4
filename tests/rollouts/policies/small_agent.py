"""A small model that is trained in seconds to call a tool and to answer with its result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from adp.rollouts.environment import Verdict
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool
from adp_schema.model import Task

SYSTEM = "You add numbers."
ADD = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}


class Sums(ToolEnvironment):
    """Adds two numbers; the sum is the right answer."""

    def offered(self):
        return [FunctionTool("add", "Add.", ADD, lambda a, b: a + b)]

    def system(self):
        return SYSTEM

    def score(self, trajectory):
        return Verdict(success=self.answer == json.loads(self.task.answers)[0])


def task(a: int, b: int) -> Task:
    return Task(task_id=f"{a}+{b}", instruction=f"{a}+{b}", answers=json.dumps([str(a + b)]))


TASKS = (task(17, 25), task(3, 4))

BROKEN = task(9, 9)
"""The task in which the model learns to write a call that is no JSON."""

BROKEN_CALL = '<tool_call>{"name": "add", "arg</tool_call>'


def conversation(value: Task, broken: bool = False) -> list[dict[str, Any]]:
    a, b = value.instruction.split("+")
    arguments = f'{{"a": {a}, "b": {b}}}'
    answer = json.loads(value.answers)[0]
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": arguments}}
    output: list[dict[str, Any]] = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "name": "add", "content": answer},
        {"role": "assistant", "content": answer},
    ]
    if broken:
        output = [{"role": "assistant", "content": BROKEN_CALL}]
    first = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": value.instruction}]
    return first + output


def train(model: Any, tokenizer: Any, chats: list[list[dict[str, Any]]], steps: int = 60) -> float:
    """Train until the loss is low; return the last loss."""
    import torch

    rows = [
        tokenizer.apply_chat_template(chat, tools=list(Sums().tools()), tokenize=False)
        for chat in chats
    ]
    batch = tokenizer(rows, return_tensors="pt", padding=True, add_special_tokens=False)
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    loss = float("inf")
    model.train()
    for _ in range(steps):
        result = model(**batch, labels=labels).loss
        result.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss = float(result.detach())
        if loss < 0.01:
            break
    model.eval()
    return loss


def write_agent(folder: Path) -> Path:
    """Train the model ``tiny`` on the tasks, and write it down."""
    from adp.rendering.tiny import tiny_model, tiny_tokenizer

    model, tokenizer = tiny_model(), tiny_tokenizer()
    chats = [conversation(item) for item in TASKS] + [conversation(BROKEN, broken=True)]
    train(model, tokenizer, chats, 200)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
