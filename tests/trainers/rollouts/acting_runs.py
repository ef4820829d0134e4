"""Small runs of GRPO in an environment, with a script in the place of what the model writes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from adp.rendering.tiny import tiny_tokenizer
from adp.rollouts.policies.generation import GenerationJob, Generator
from adp.rollouts.policies.prompts import Generated
from adp.trainers.config import TrainConfig
from adp.trainers.config_file import read_config
from tests.trainers.preference_runs import SMALL

Writes = Callable[[str, int], str]
"""From a prompt, and how often it was seen before, to what is written."""


class ScriptedWriter:
    """Writes by a script in the place of a model.

    Args:
        writes: says what.
    """

    def __init__(self, writes: Writes) -> None:
        self._tokenizer = tiny_tokenizer()
        self._writes = writes
        self._seen: Counter[tuple[int, ...]] = Counter()
        self.texts: list[str] = []

    def install(self, monkeypatch: Any) -> ScriptedWriter:
        """Let it write for all models of this process."""
        monkeypatch.setattr(Generator, "generate", lambda _, jobs: self.generate(jobs))
        return self

    def generate(self, jobs: Sequence[GenerationJob]) -> list[Generated]:
        """Write answers; each one ends."""
        return [self._answer(job) for job in jobs]

    def _answer(self, job: GenerationJob) -> Generated:
        key = tuple(job.ids)
        prompt = self._tokenizer.decode(list(key), skip_special_tokens=False)
        text = self._writes(prompt, self._seen[key])
        self._seen[key] += 1
        self.texts.append(text)
        ids = self._tokenizer.encode(text, add_special_tokens=False)
        ids = [*ids, self._tokenizer.eos_token_id]
        return Generated(ids, [-0.5] * len(ids), True, [0.5] * len(ids))


def call_text(name: str, **arguments: Any) -> str:
    """A call as the template of ``tiny`` writes it."""
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def sums(folder: Path, count: int = 4) -> Path:
    """A file of tasks for the calculator."""
    path = folder / "sums.jsonl"
    rows = [{"task_id": f"sum-{n}", "question": f"What is {n} * 7?"} for n in range(2, 2 + count)]
    lines = [json.dumps({**row, "answer": str((n + 2) * 7)}) for n, row in enumerate(rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def works_out(prompt: str, seen: int) -> str:
    """Every second episode of a group works a sum out, the others add instead."""
    question = prompt.rpartition("What is ")[2].partition("?")[0]
    results = prompt.split("<tool_response>")[1:]
    if results:
        return f"answer: {results[-1].partition('</tool_response>')[0].strip()}"
    wrong = question.replace("*", "+")
    return call_text("calculator", expression=question if seen % 2 == 0 else wrong)


def acting_config(
    tasks: Path | str,
    environment: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
    **grpo: Any,
) -> TrainConfig:
    """A configuration for the model ``tiny``."""
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    acting = {"name": "calculator", "tasks": str(tasks), **(environment or {})}
    values = {
        "method": "grpo",
        "model": {"model_name_or_path": "tiny", "tiny": shape},
        "lora": None,
        "training": {**SMALL, "per_device_train_batch_size": 8, "max_steps": 2, **(training or {})},
        "grpo": {"num_generations": 4, "environment": acting, **grpo},
    }
    return read_config(values)[0]
