"""Made-up trajectories with planted near-duplicates, for the benchmark and the tests of dedup.

Every trajectory has a system prompt of 25 words that all share, a task, two messages of the agent
with a call between them, and a result. A twentieth is copied word for word and three twentieths
with some words changed; a copy has a task and a result of its own. Before the agent's first words
may stand a prefix that all share: what a shared prompt does to a comparison of texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from adp_schema.builder import Origin, RowBuilder
from adp_schema.ids import digest
from adp_schema.manifest import Counts, Lineage, Manifest
from adp_schema.store import Store
from adp_schema.tables import TABLES
from adp_schema.writer import ShardWriter, place

VOCABULARY = 30_000
GROUP = 10_000
SHARD = 50_000
TWENTIETHS = (1, 3)
"""Of twenty trajectories, how many are copies, and how many are changed copies."""

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Run:
    """One trajectory.

    Attributes:
        name: its id.
        like: name of the one that it copies; None for an original.
        task: text of the task.
        first: first words of the agent, the prefix before them.
        query: argument of its call.
        last: last words of the agent.
        result: what the call gave.
    """

    name: str
    like: str | None
    task: str
    first: str
    query: str
    last: str
    result: str

    @property
    def texts(self) -> list[str]:
        """What the agent says and does: one text a message, the call after the words before it."""
        return [f"{self.first} search {self.query}", self.last]


class _Words:
    """Words that are as frequent as in a language (Zipf)."""

    def __init__(self, seed: int) -> None:
        shape = np.random.default_rng(5)
        sizes = shape.integers(2, 11, VOCABULARY)
        letters = shape.integers(0, 26, sizes.sum())
        text = "".join(_LETTERS[letter] for letter in letters)
        ends = np.cumsum(sizes)
        self.known = [text[end - size : end] for end, size in zip(ends, sizes, strict=True)]
        weights = 1 / np.arange(1, VOCABULARY + 1)
        self._steps = np.cumsum(weights / weights.sum())
        self.draw = np.random.default_rng(seed)

    def some(self, count: int) -> np.ndarray[Any, Any]:
        """Numbers of so many words."""
        result = np.searchsorted(self._steps, self.draw.random(count))
        return np.minimum(result, VOCABULARY - 1)

    def text(self, numbers: np.ndarray[Any, Any]) -> str:
        """The words as text."""
        return " ".join([self.known[number] for number in numbers])


def runs(count: int, *, prefix: int = 0, seed: int = 1) -> Iterator[Run]:
    """Made-up trajectories: 100 to 370 words of the agent each.

    Args:
        count: how many.
        prefix: words that stand before the first words of the agent in all of them.
        seed: the same seed gives the same trajectories; the prefix changes nothing else.
    """
    words = _Words(seed)
    shared = words.text(np.random.default_rng(9).integers(0, VOCABULARY, prefix))
    copies, changed = (share * count // 20 for share in TWENTIETHS)
    originals = count - copies - changed
    taken = words.draw.permutation(originals)[: copies + changed]
    kept: dict[int, np.ndarray[Any, Any]] = dict.fromkeys(taken.tolist(), np.zeros(0, np.int64))
    for number in range(count):
        if number < originals:
            like = None
            some = words.some(int(words.draw.integers(100, 370)))
            if number in kept:
                kept[number] = some
        else:
            like = int(taken[number - originals])
            some = kept.pop(like).copy()
            if number >= originals + copies:
                share = words.draw.uniform(0.002, 0.05)
                at = words.draw.random(len(some)) < share
                some[at] = words.some(int(at.sum()))
        yield _run(words, number, like, some, shared)


def _run(words: _Words, number: int, like: int | None, native: Any, shared: str) -> Run:
    cut = len(native) // 3
    first = words.text(native[:cut])
    return Run(
        name=f"run-{number:07d}",
        like=None if like is None else f"run-{like:07d}",
        task=words.text(words.some(20)),
        first=f"{shared} {first}" if shared else first,
        query=words.text(native[cut : 2 * cut]),
        last=words.text(native[2 * cut :]),
        result=words.text(words.some(30)),
    )


def write_store(folder: Path, made: Iterator[Run]) -> Store:
    """Write trajectories as a store."""
    system = "You are an agent. " + "Use the tools and answer in the end. " * 3
    manifest = Manifest(lineage=[Lineage(act="convert")])
    staged = folder / "staging"
    builder, writer, total = RowBuilder(), ShardWriter(staged), 0

    def end() -> None:
        writer.flush(builder)
        index = len(manifest.tables.get("trajectories", []))
        for table in writer.close():
            file = staged / f"{table}.parquet"
            shard = place(file, folder, table, index, writer.rows.get(table, 0))
            manifest.tables.setdefault(table, []).append(shard)

    for total, run in enumerate(made, 1):
        _add(builder, run, total * 1000, system)
        if total % SHARD == 0:
            end()
            builder, writer = RowBuilder(), ShardWriter(staged)
        elif total % GROUP == 0:
            writer.flush(builder)
    if total % SHARD:
        end()
    import pyarrow as pa

    writer = ShardWriter(staged)
    source = {"source_file": "made_up.jsonl", "records": total, "used": total}
    writer.write("sources", pa.Table.from_pylist([source], schema=TABLES["sources"].schema))
    writer.close()
    shard = place(staged / "sources.parquet", folder, "sources", 0, 1)
    manifest.tables["sources"] = [shard]
    for rest in staged.iterdir():
        rest.unlink()
    staged.rmdir()
    manifest.datasets = {"made_up": total}
    manifest.counts = Counts(records=total, used=total, trajectories=total)
    manifest.write(folder)
    return Store.open(str(folder))


def _add(builder: RowBuilder, run: Run, seq: int, system: str) -> None:
    columns = {"source_file": "made_up.jsonl", "source_hash": digest(run.name.encode())}
    builder.begin(Origin(seq=seq, dataset="made_up", columns=columns, size=2_000))
    builder.trajectory({"source_id": run.name})
    builder.step({"source": "system", "kind": "message", "text": system})
    builder.step({"source": "user", "kind": "message", "text": run.task})
    builder.step({"source": "agent", "kind": "llm_turn", "text": run.first})
    arguments = json.dumps(run.query)
    call = {"call_id": "1", "kind": "function", "name": "search", "arguments": arguments}
    builder.call({**call, "arguments_kind": "json_string"})
    builder.observation({"source": "environment", "text": run.result}, answers="1")
    builder.step({"source": "agent", "kind": "llm_turn", "text": run.last})
    builder.finish()
