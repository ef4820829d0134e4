"""Runs whose actions stand in texts, for the speed of the grammar: seeded, always the same bytes.

A run has a prompt that teaches the dialect, a task, turns with an action and their results, and an
answer. Texts are the random words of `generate`.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
from generate import Words

NAMES = ("react", "function_xml", "hermes", "terminus")
_PROMPTS = {
    "react": "Thought: why\nAction: a tool\nAction Input: JSON\nObservation: what came back",
    "function_xml": "<function=NAME>\n<parameter=KEY>value</parameter>\n</function>",
    "hermes": '<tools></tools> <tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>',
    "terminus": '{"analysis": "", "plan": "", "commands": [{"keystrokes": "ls\\n"}]}',
}
_RESULTS = {
    "react": "Observation: {}",
    "function_xml": "OBSERVATION:\n{}",
    "hermes": "<tool_response>\n{}\n</tool_response>",
    "terminus": "New Terminal Output:\n{}",
}


class RunMaker:
    """Makes runs of about 20 KB and 20 turns in a dialect.

    Args:
        name: the dialect.
        seed: of all that is drawn.
    """

    def __init__(self, name: str, seed: int = 1) -> None:
        self._name = name
        self._random = random.Random(seed)
        self._words = Words(seed)

    def record(self, index: int) -> dict[str, Any]:
        """One run."""
        words, name = self._words, self._name
        turns = [("system", f"Act in this form:\n{_PROMPTS[name]}\n{words.text(400)}")]
        turns.append(("user", words.text(200)))
        for _ in range(self._random.randint(8, 16)):
            turns.append(("assistant", self._action()))
            turns.append(
                ("user", _RESULTS[name].format(words.text(self._random.randint(50, 2_000))))
            )
        turns.append(("assistant", f"It is done: {words.text(100)}"))
        messages = [{"role": role, "content": text} for role, text in turns]
        return {"id": f"{name}-{index:08d}", "messages": messages}

    def _action(self) -> str:
        draw, words = self._random, self._words
        thought = words.text(draw.randint(40, 600)).replace("\n", " ")
        arguments = {"query": words.text(40), "limit": draw.randint(1, 99)}
        if self._name == "react":
            return f"Thought: {thought}\nAction: search\nAction Input: {json.dumps(arguments)}"
        if self._name == "hermes":
            call = json.dumps({"name": "search", "arguments": arguments})
            return f"<think>\n{thought}\n</think>\n\n<tool_call>\n{call}\n</tool_call>"
        if self._name == "function_xml":
            values = "\n".join(
                f"<parameter={key}>{it}</parameter>" for key, it in arguments.items()
            )
            return f"{thought}\n\n<function=search>\n{values}\n</function>"
        command = {"keystrokes": f"grep {words.text(20)}\n", "duration": 0.1}
        return json.dumps({"analysis": thought, "plan": words.text(60), "commands": [command]})


class CodeMaker:
    """Makes chats of 3 KB about code: fences, brackets, headings, and no action.

    Args:
        seed: of all that is drawn.
    """

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._words = Words(seed)

    def record(self, index: int) -> dict[str, Any]:
        """One chat."""
        words, draw = self._words, self._random
        messages = []
        for _ in range(draw.randint(2, 4)):
            language = draw.choice(("python", "bash", "json", "html"))
            code = f"```{language}\ncheck(a=[1, 2])\n{words.text(200)}\n```"
            messages.append({"role": "user", "content": f"How to take and open {words.text(120)}?"})
            text = f"Answer: use <b>this</b>\n\n{code}\n\nAction items: {words.text(300)}"
            messages.append({"role": "assistant", "content": text})
        return {"id": f"code-{index:08d}", "messages": messages}


def write_runs(name: str, path: Path, megabytes: float) -> int:
    """Write runs of a dialect until the file has so many megabytes; returns their number."""
    maker = RunMaker(name)
    limit, size, count = int(megabytes * 1_000_000), 0, 0
    with path.open("wb", buffering=1 << 20) as file:
        while size < limit:
            size += file.write(msgspec.json.encode(maker.record(count)) + b"\n")
            count += 1
    return count


def write_small_files(folder: Path, count: int) -> float:
    """Write so many files of one chat about code each; returns their megabytes."""
    folder.mkdir(parents=True, exist_ok=True)
    maker, size = CodeMaker(), 0
    for index in range(count):
        size += (folder / f"{index:05d}.json").write_bytes(msgspec.json.encode(maker.record(index)))
    return size / 1_000_000
