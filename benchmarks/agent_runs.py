"""Made-up runs of agents that read and write code, and a tokenizer of real size for them.

Their words come from the source of Python's standard library, which every machine has: results of
tools are pages of its files, thoughts are sentences of its docstrings. System prompt and tools are
the same in all runs of an agent, as in real data. The same seed and Python give the same bytes.
"""

from __future__ import annotations

import json
import random
import re
import sysconfig
from pathlib import Path
from typing import Any

VOCABULARY = 32_000
AGENTS = 3
STEPS = (5, 150)

SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How the tokenizers of Qwen2 and Qwen3 cut a text into words."""

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>",
         "</think>")  # fmt: skip


def library() -> list[str]:
    """The files of the standard library, without its tests."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    paths = sorted(folder.glob("*.py")) + sorted(folder.glob("*/*.py"))
    skipped = {"site-packages", "test", "idlelib", "lib2to3", "__pycache__"}
    return [
        path.read_text(encoding="utf-8", errors="replace")
        for path in paths
        if path.parent.name not in skipped
    ]


def tokenizer(folder: Path) -> Path:
    """Train the tokenizer, unless the folder has it already; byte-level BPE as Qwen's."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, trainers
    from tokenizers import pre_tokenizers as pre
    from transformers import PreTrainedTokenizerFast

    if (folder / "tokenizer.json").exists():
        return folder
    backend = Tokenizer(models.BPE())
    backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = pre.Sequence(
        [pre.Split(Regex(SPLIT), "isolated"), pre.ByteLevel(False, use_regex=False)]
    )
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(SPECIAL) - len(MARKS),
        initial_alphabet=sorted(pre.ByteLevel.alphabet()),
        show_progress=False,
    )
    backend.train_from_iterator(library(), trainer)
    backend.add_special_tokens([AddedToken(text, normalized=False) for text in SPECIAL])
    backend.add_tokens([AddedToken(text, normalized=False) for text in MARKS])
    made = PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token=SPECIAL[0], eos_token=SPECIAL[2]
    )
    made.save_pretrained(folder)
    return folder


class RunMaker:
    """Makes runs as OpenAI chats with arguments as objects.

    Args:
        seed: of the draws.
        scale: makes all texts longer or shorter.
    """

    def __init__(self, seed: int, scale: float = 1.0) -> None:
        self._draw = random.Random(seed)
        self._scale = scale
        self._files = library()
        docs = [doc for text in self._files for doc in re.findall(r'"""(.{40,}?)"""', text, re.S)]
        self._sentences = [" ".join(doc.split())[:300] for doc in docs]
        self._agents = [self._agent() for _ in range(AGENTS)]

    def run(self, index: int) -> dict[str, Any]:
        """One run: messages and tools."""
        draw = self._draw
        system, tools = self._agents[index % AGENTS]
        low, high = STEPS
        steps = min(high, max(low, int(draw.lognormvariate(3.4, 0.7))))
        turns = draw.choice((1, 1, 1, 2))
        messages = [{"role": "system", "content": system}]
        for turn in range(turns):
            messages.append({"role": "user", "content": self._words(200, 1_500)})
            for step in range(steps // turns):
                messages += self._step(tools, f"call_{turn}_{step}")
            messages.append({"role": "assistant", "content": self._words(100, 900)})
        return {"id": f"run-{index:06d}", "messages": messages, "tools": tools}

    def pair(self, index: int, characters: int) -> dict[str, Any]:
        """A pair: a talk in turns of about so many characters, and two answers to its end.

        Args:
            index: number of the pair.
            characters: of the talk and an answer together.
        """
        system, _ = self._agents[index % AGENTS]
        prompt = [{"role": "system", "content": system}]
        size = len(system) + int(2_000 * self._scale)
        while True:
            prompt.append({"role": "user", "content": self._page(1_000, 4_000)})
            size += len(prompt[-1]["content"]) + int(1_000 * self._scale)
            if size >= characters:
                break
            prompt.append({"role": "assistant", "content": self._words(200, 1_500)})
            size += len(prompt[-1]["content"])
        answers = [{"role": "assistant", "content": self._words(500, 2_000)} for _ in range(2)]
        chosen, rejected = answers
        return {"prompt": prompt, "chosen": [chosen], "rejected": [rejected]}

    def _agent(self) -> tuple[str, list[dict[str, Any]]]:
        names = ("read_file", "edit_file", "run_shell", "search", "list_files", "open_page",
                 "find_symbol", "run_tests", "show_diff", "finish")  # fmt: skip
        return self._words(3_000, 5_000), [self._tool(name) for name in names]

    def _tool(self, name: str) -> dict[str, Any]:
        properties = {
            key: {"type": "string", "description": self._words(40, 160)}
            for key in self._draw.sample(("path", "text", "command", "query", "line", "old"), 3)
        }
        function = {
            "name": name,
            "description": self._words(150, 600),
            "parameters": {"type": "object", "properties": properties, "required": []},
        }
        return {"type": "function", "function": function}

    def _step(self, tools: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
        draw = self._draw
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        if draw.random() < 0.6:
            message["reasoning_content"] = self._words(80, 700)
        if draw.random() < 0.4:
            message["content"] = self._words(40, 300)
        arguments: dict[str, Any] = {"path": f"src/part_{draw.randint(1, 99)}/main.py"}
        if draw.random() < 0.3:
            arguments |= {"old": self._page(100, 800), "text": self._page(100, 800)}
        else:
            arguments |= {"line": draw.randint(1, 900), "query": self._words(20, 60)}
        function = {"name": draw.choice(tools)["function"]["name"], "arguments": arguments}
        message["tool_calls"] = [{"id": name, "type": "function", "function": function}]
        size = int(min(12_000, draw.lognormvariate(6.8, 1.0)))
        result = {"role": "tool", "tool_call_id": name, "content": self._page(size // 2, size)}
        return [message, result]

    def _words(self, least: int, most: int) -> str:
        wanted = max(1, int(self._draw.randint(least, most) * self._scale))
        text = self._draw.choice(self._sentences)
        while len(text) < wanted:
            text += " " + self._draw.choice(self._sentences)
        return text[:wanted].strip()

    def _page(self, least: int, most: int) -> str:
        text = self._draw.choice(self._files)
        size = max(1, int(self._draw.randint(least, max(least, most)) * self._scale))
        start = self._draw.randint(0, max(0, len(text) - size))
        return text[start : start + size].strip() or "done"


def write_runs(path: Path, count: int, seed: int = 1, scale: float = 1.0) -> None:
    """Write runs as JSON Lines."""
    maker = RunMaker(seed, scale)
    with path.open("w", encoding="utf-8") as file:
        for index in range(count):
            file.write(json.dumps(maker.run(index), ensure_ascii=False) + "\n")


def write_pairs(
    plain: Path, ranking: Path, count: int, characters: int, scale: float = 1.0
) -> None:
    """Write pairs as JSON Lines: as messages, and in the ranking form that adp reads.

    Args:
        plain: file with prompt, chosen and rejected as messages.
        ranking: file in the manner of LLaMA-Factory.
        count: number of pairs.
        characters: of a prompt with an answer, about.
        scale: makes all texts longer or shorter.
    """
    maker = RunMaker(1, scale)
    names = {"user": "human", "assistant": "gpt", "system": "system"}
    with plain.open("w", encoding="utf-8") as file, ranking.open("w", encoding="utf-8") as other:
        for index in range(count):
            pair = maker.pair(index, characters)
            file.write(json.dumps(pair, ensure_ascii=False) + "\n")
            turns = {
                key: [{"from": names[m["role"]], "value": m["content"]} for m in messages]
                for key, messages in pair.items()
            }
            record = {
                "conversations": turns["prompt"],
                "chosen": turns["chosen"][0],
                "rejected": turns["rejected"][0],
            }
            other.write(json.dumps(record, ensure_ascii=False) + "\n")
