"""Stores with planted contamination: who holds how much of which benchmark item is known."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path

from adp_schema.builder import Origin, RowBuilder
from adp_schema.store import Store
from tests.store_builders import write_store

ITEMS = 40
INNOCENT = 400
PROMPT_WORDS = 1000


@dataclass
class Document:
    """The user's messages, and the share of an item that they hold."""

    messages: list[str]
    share: float = 0.0
    item: int | None = None
    why: str = "innocent"


@dataclass
class Planted:
    """Items, documents, and a prompt that quotes some of the items.

    Item 0 is quoted whole by the prompt, items 1 to 9 with one sentence each.
    """

    seed: int = 1
    items: list[str] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)
    prompt: str = ""

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._words = [
            "".join(self._draw.choices(letters, k=self._draw.randint(2, 9))) for _ in range(3000)
        ]
        self._weights = [1 / (rank + 10) for rank in range(len(self._words))]
        self.items = [self.text(self._draw.randint(60, 300)) for _ in range(ITEMS)]
        self._plant()
        self._draw.shuffle(self.documents)
        quotes = [self.items[0]]
        quotes += [" ".join(item.split()[20:36]) for item in self.items[1:10]]
        filler = [self.text(90) for _ in range(10)]
        prompt = [part for pair in zip(filler, quotes, strict=True) for part in pair]
        words = " ".join(prompt).split()
        self.prompt = " ".join([*words, *self.text(PROMPT_WORDS).split()][:PROMPT_WORDS])

    def text(self, words: int) -> str:
        """Words that are as unequal in frequency as those of a language."""
        return " ".join(self._draw.choices(self._words, self._weights, k=words))

    def _plant(self) -> None:
        for item in range(1, ITEMS):
            self._add(item, [1.0], "whole")
            self._add(item, [0.5], "exactly half")
            self._add(item, [self._draw.uniform(0.55, 0.9)], "a part")
            self._add(item, [self._draw.uniform(0.2, 0.45)], "less than half")
            self._add(item, [0.49], "just under half")
            self._paragraphs(item)
            self._edited(item)
            self._turns(item)
        for _ in range(30):
            # Attempts at one task, in more than one document in a hundred.
            self.documents.append(Document([self.items[12]], 1.0, 12, "attempt"))
        for _ in range(INNOCENT):
            self.documents.append(Document([self.text(self._draw.randint(20, 200))]))

    def _add(self, item: int, shares: list[float], why: str) -> None:
        words = self.items[item].split()
        for share in shares:
            count = round(share * len(words)) if share < 0.5 else -int(-share * len(words) // 1)
            if share == 0.49:
                count = (len(words) - 1) // 2
            start = self._draw.randint(0, len(words) - count)
            held = " ".join(words[start : start + count])
            text = f"{self.text(25)} 0 {held} 0 {self.text(25)}"
            self.documents.append(Document([text], count / len(words), item, why))

    def _paragraphs(self, item: int) -> None:
        """Most of an item, its paragraphs of 15 to 30 words in another order and message."""
        words = self.items[item].split()
        parts, start = [], 0
        while start < len(words):
            size = self._draw.randint(15, 30)
            parts.append(words[start : start + size])
            start += size
        if len(parts[-1]) < 15:
            parts[-2:] = [parts[-2] + parts[-1]]
        self._draw.shuffle(parts)
        kept, count = [], 0
        for part in parts:
            if count < 0.6 * len(words):
                kept.append(" ".join(part))
                count += len(part)
        cut = len(kept) // 2
        messages = [f" 0 {self.text(9)} 0 ".join(part) for part in (kept[:cut], kept[cut:])]
        self.documents.append(Document(messages, count / len(words), item, "paragraphs"))

    def _edited(self, item: int) -> None:
        """The whole item with a word in forty replaced."""
        words = self.items[item].split()
        for place in range(self._draw.randint(0, 39), len(words), 40):
            words[place] = "edited"
        held = sum(word != "edited" for word in words) / len(words)
        self.documents.append(Document([" ".join(words)], held, item, "edited"))

    def _turns(self, item: int) -> None:
        """All words, but never more than six in one message: no n-gram stands in any of them."""
        words = self.items[item].split()
        turns = [" ".join(words[start : start + 6]) for start in range(0, len(words), 6)]
        self.documents.append(Document(turns, 0.0, item, "turns"))

    # ---- writing -----------------------------------------------------------------------------

    def store(self, folder: Path, prompt: str = "none") -> Store:
        """Write the documents; the prompt may stand in the first message, or in one before."""
        builder = RowBuilder()
        for seq, document in enumerate(self.documents):
            messages = list(document.messages)
            if prompt == "message":
                messages.insert(0, self.prompt)
            elif prompt == "prefix":
                messages[0] = f"{self.prompt} {messages[0]}"
            builder.begin(Origin(seq=seq, dataset="planted", columns={"source_format": "x"}))
            builder.trajectory({"source_id": str(seq)})
            for message in messages:
                builder.step({"source": "user", "kind": "message", "text": message})
            builder.step({"source": "agent", "kind": "llm_turn", "text": "Done."})
            builder.finish()
        return write_store(folder, builder)

    def benchmark(self, path: Path) -> str:
        """Write the items, as a file of questions."""
        rows = [json.dumps({"question": item}) for item in self.items]
        path.write_text("\n".join(rows), encoding="utf-8")
        return str(path)
