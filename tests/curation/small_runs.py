"""Attempts of two models at a few tasks, with errors, doubles and unknown outcomes."""

from __future__ import annotations

import json
import random
from pathlib import Path

from adp.converters.run import convert

WORDS = ("river", "train", "ticket", "window", "garden", "letter", "castle", "bridge", "market")


def make(folder: Path, tasks: int = 8, attempts: int = 4, seed: int = 1) -> Path:
    """Write ``store`` and ``benchmark.jsonl`` into a folder, and return the folder."""
    dice = random.Random(seed)
    rows = []
    questions = {task: " ".join(dice.choices(WORDS, k=30)) + f" {task}" for task in range(tasks)}
    for task, question in questions.items():
        for attempt in range(attempts):
            rows.append(_run(dice, f"t{task}", attempt, question))
    rows.append({**rows[3], "id": "double"})
    rows.append({**rows[5], "id": "other task", "task_id": "other"})
    (folder / "chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    items = [{"id": f"b{task}", "question": questions[task]} for task in (1, 4)]
    (folder / "benchmark.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    convert([str(folder / "chat.jsonl")], str(folder / "store"))
    return folder


def _run(dice: random.Random, task: str, attempt: int, question: str) -> dict:
    messages = [
        {"role": "system", "content": "You help people. " * 5},
        {"role": "user", "content": question},
    ]
    for number in range(dice.randint(1, 4)):
        text = json.dumps({"text": " ".join(dice.choices(WORDS, k=3))})
        if dice.random() < 0.2:
            text = text[:-3]
        function = {"name": dice.choice(["look", "ask"]), "arguments": text}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "I look.", "tool_calls": [call]})
        output = (
            "Error: no such thing" if dice.random() < 0.2 else " ".join(dice.choices(WORDS, k=20))
        )
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": output})
    messages.append({"role": "assistant", "content": " ".join(dice.choices(WORDS, k=25))})
    row = {"id": f"{task}-{attempt}", "task_id": task, "messages": messages}
    row["model"] = dice.choice(["small", "large"])
    if dice.random() < 0.9:
        row["success"] = dice.random() < 0.6
        row["reward"] = round(dice.random(), 2)
    return row
