"""Made-up trajectories for the benchmarks: seeded, streamed, the same bytes every time.

    python benchmarks/generate.py chat FILE --megabytes 500
    python benchmarks/generate.py store FOLDER --count 100000

``chat`` writes OpenAI chat trajectories as JSON Lines. ``store`` writes one set of trajectories
twice: as a store, and as one nested Parquet file. Texts are random words of a fixed vocabulary;
they compress less well than real logs do.
"""

from __future__ import annotations

import argparse
import random
import string
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adp_schema.builder import Origin, RowBuilder
from adp_schema.ids import digest
from adp_schema.manifest import Counts, Lineage, Manifest
from adp_schema.store import Store
from adp_schema.tables import TABLES
from adp_schema.writer import ShardWriter, place

SHARD_BYTES = 128_000_000
NESTED_GROUP = 2_000
DATASETS = ("web", "shell", "code_fix", "api_calls", "games", "office", "research", "support")
_CALL = pa.struct({"id": pa.string(), "name": pa.string(), "arguments": pa.string()})
_MESSAGE = pa.struct(
    {
        "role": pa.string(),
        "content": pa.string(),
        "reasoning": pa.string(),
        "tool_calls": pa.list_(_CALL),
    }
)
NESTED = pa.schema(
    {
        "id": pa.string(),
        "dataset": pa.string(),
        "success": pa.bool_(),
        "messages": pa.list_(_MESSAGE),
    }
)

_VERBS = ("read", "write", "list", "find", "open", "close", "run", "move", "copy", "check")
_NOUNS = ("file", "page", "issue", "table", "mail", "build", "event")
TOOLS = tuple(f"{verb}_{noun}" for verb in _VERBS for noun in _NOUNS)[:67]
_KEYS = (
    "path", "query", "timeout", "limit", "url", "text", "count", "flags", "mode", "target",
    "offset", "filter", "recursive", "owner", "command", "value",
)  # fmt: skip


class Words:
    """Text of random words: three characters in a hundred need a backslash in JSON, and one text
    in twenty is not ASCII.
    """

    def __init__(self, seed: int) -> None:
        shape = random.Random(7)
        words = []
        for index in range(4_000):
            letters = "".join(shape.choices(string.ascii_lowercase, k=shape.randint(3, 9)))
            if index % 8 == 0:
                letters += "\n"
            elif index % 23 == 0:
                letters = f'"{letters}"'
            words.append(letters)
        self._words = np.array(words, dtype=object)
        self._random = np.random.default_rng(seed)
        self._block: list[str] = []
        self._next = 0
        self._texts = 0

    def text(self, characters: int) -> str:
        """About this many characters."""
        count = max(1, characters * 10 // 76)
        if self._next + count > len(self._block):
            draw = self._random.integers(0, len(self._words), max(200_000, count))
            self._block = self._words[draw].tolist()
            self._next = 0
        self._next += count
        self._texts += 1
        words = self._block[self._next - count : self._next]
        if self._texts % 20 == 0:
            words.append("naïve 世界")
        return " ".join(words)


# ---- chat files --------------------------------------------------------------------------------


class ChatMaker:
    """Makes chat records of about 64 KB and 40 messages."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._words = Words(seed)
        self._tools = [self._tool(name) for name in TOOLS]

    def record(self, index: int) -> dict[str, Any]:
        """One trajectory."""
        draw = self._random
        messages = [
            {"role": "system", "content": self._words.text(3_000)},
            {"role": "user", "content": self._content(800)},
        ]
        for turn in range(draw.randint(13, 23)):
            messages += self._turn(f"call_{index}_{turn}")
        messages.append({"role": "assistant", "content": self._content(600)})
        day = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=977 * index)
        return {
            "id": f"chat-{index:08d}",
            "created_at": day.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "model": f"model-{draw.randint(1, 5)}",
            "messages": messages,
            "tools": draw.sample(self._tools, 20),
            "metadata": {
                "split": draw.choice(("train", "test")),
                "score": self._scalar(),
                "resolved": draw.choice((True, False, None)),
                "host": {"cores": draw.randint(1, 64), "label": self._words.text(12)},
            },
        }

    def _turn(self, call_id: str) -> list[dict[str, Any]]:
        draw = self._random
        message: dict[str, Any] = {"role": "assistant", "content": self._content(300)}
        if draw.random() < 0.4:
            message["reasoning_content"] = self._words.text(500)
        calls = [self._call(f"{call_id}_{n}") for n in range(2 if draw.random() < 0.1 else 1)]
        message["tool_calls"] = calls
        results = [
            {
                "role": "tool",
                "tool_call_id": call["id"],
                "name": call["function"]["name"],
                "content": self._content(int(1_850 * draw.uniform(0.2, 1.8))),
            }
            for call in calls
        ]
        return [message, *results]

    def _call(self, call_id: str) -> dict[str, Any]:
        draw = self._random
        arguments: Any = {key: self._scalar() for key in draw.sample(_KEYS, draw.randint(1, 5))}
        arguments["text"] = self._words.text(150)
        if draw.random() < 0.5:
            arguments = msgspec.json.encode(arguments).decode()
        name = draw.choice(TOOLS)
        return {
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }

    def _content(self, characters: int) -> Any:
        """A string, or one time in five a list of parts."""
        if self._random.random() >= 0.2:
            return self._words.text(characters)
        half = characters // 2
        return [{"type": "text", "text": self._words.text(half)} for _ in range(2)]

    def _scalar(self) -> Any:
        """A value whose type nobody can foresee."""
        draw = self._random
        kind = draw.randrange(6)
        if kind == 0:
            return draw.randint(-5, 10_000)
        if kind == 1:
            return draw.random() * 100
        if kind == 2:
            return draw.random() < 0.5
        if kind == 3:
            return None
        return self._words.text(25) if kind == 4 else [draw.randint(0, 9), self._words.text(8)]

    def _tool(self, name: str) -> dict[str, Any]:
        draw = self._random
        properties = {
            key: {
                "type": draw.choice(("string", "integer", "boolean")),
                "description": "The " + key,
            }
            for key in draw.sample(_KEYS, 4)
        }
        return {
            "type": "function",
            "function": {
                "name": name,
                "description": self._words.text(80),
                "parameters": {"type": "object", "properties": properties},
            },
        }


def chat_jsonl(path: Path, megabytes: float, seed: int = 1) -> int:
    """Write chat trajectories until the file has so many megabytes; returns their number."""
    maker = ChatMaker(seed)
    limit = int(megabytes * 1_000_000)
    size = count = 0
    with path.open("wb", buffering=1 << 20) as file:
        while size < limit:
            size += file.write(msgspec.json.encode(maker.record(count)) + b"\n")
            count += 1
    return count


# ---- a store and its nested twin ---------------------------------------------------------------


def trajectories(count: int, seed: int = 2) -> Iterator[dict[str, Any]]:
    """Trajectories as rows of the nested file: 24 messages and 11 calls each, on average."""
    draw, words = random.Random(seed), Words(seed)
    for index in range(count):
        messages = [
            _message("system", words.text(1_200)),
            _message("user", words.text(int(400 * draw.uniform(0.3, 1.7)))),
        ]
        for turn in range(draw.randint(5, 16)):
            messages += _turn(draw, words, f"c{index}_{turn}")
        messages.append(_message("assistant", words.text(200)))
        yield {
            "id": f"run-{index:07d}",
            "dataset": draw.choice(DATASETS),
            "success": draw.choice((True, True, False, False, None)),
            "messages": messages,
        }


def _turn(draw: random.Random, words: Words, call_id: str) -> list[dict[str, Any]]:
    calls = []
    for number in range(2 if draw.random() < 0.04 else 1):
        arguments = {
            "path": words.text(30),
            "limit": draw.randint(0, 99),
            draw.choice(_KEYS[4:]): words.text(100),
        }
        text = msgspec.json.encode(arguments).decode()
        calls.append({"id": f"{call_id}_{number}", "name": draw.choice(TOOLS), "arguments": text})
    message = _message("assistant", words.text(150))
    message["tool_calls"] = calls
    if draw.random() < 0.3:
        message["reasoning"] = words.text(200)
    results = [_message("tool", words.text(int(430 * draw.uniform(0.1, 1.9)))) for _ in calls]
    return [message, *results]


def _message(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content, "reasoning": None, "tool_calls": None}


def _add(builder: RowBuilder, row: dict[str, Any], seq: int) -> int:
    """Add a trajectory to the builder; returns the length of its texts."""
    size = sum(len(message["content"]) for message in row["messages"])
    columns = {"source_file": "made_up.jsonl", "source_hash": digest(row["id"].encode())}
    builder.begin(Origin(seq=seq, dataset=row["dataset"], columns=columns, size=size))
    native = row.get("columns", {})
    builder.trajectory({"source_id": row["id"], "success": row["success"], **native})
    waiting: list[dict[str, Any]] = []
    for message in row["messages"]:
        role, text = message["role"], message["content"]
        if role == "tool":
            call = waiting.pop(0)
            columns = {"source": "environment", "name": call["name"], "text": text}
            if "is_error" in message:
                columns["is_error"] = message["is_error"]
            builder.observation(columns, answers=call["id"])
            continue
        agent = role == "assistant"
        step: dict[str, Any] = {"source": "agent" if agent else role, "text": text}
        step["kind"] = "llm_turn" if agent else "message"
        if message["reasoning"] is not None:
            step["reasoning"] = message["reasoning"]
        builder.step(step)
        waiting = list(message["tool_calls"] or ())
        for call in waiting:
            builder.call(
                {
                    "call_id": call["id"],
                    "kind": "function",
                    "name": call["name"],
                    "arguments": call["arguments"],
                    "arguments_kind": "json_string",
                }
            )
    builder.finish()
    return size


class StoreMaker:
    """Writes a store shard by shard, as the converters do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = Manifest(lineage=[Lineage(act="convert")])
        self.text = 0
        self._seq = 0
        self._start()

    def _start(self) -> None:
        self._builder, self._size = RowBuilder(), 0
        self._writer = ShardWriter(self.folder / "staging")

    def add(self, row: dict[str, Any]) -> None:
        """Add a trajectory."""
        size = _add(self._builder, row, self._seq)
        self._seq += size
        self._size += size
        self.text += size
        datasets = self.manifest.datasets
        datasets[row["dataset"]] = datasets.get(row["dataset"], 0) + 1
        if self._size >= SHARD_BYTES:
            self._end()
            self._start()
        elif self._builder.is_full():
            self._writer.flush(self._builder)

    def _end(self) -> None:
        self._writer.flush(self._builder)
        index = len(self.manifest.tables.get("trajectories", []))
        for table in self._writer.close():
            rows = self._writer.rows.get(table, 0)
            staged = self._writer.folder / f"{table}.parquet"
            shard = place(staged, self.folder, table, index, rows)
            self.manifest.tables.setdefault(table, []).append(shard)

    def finish(self) -> None:
        """Write what is left, the table of sources and the manifest."""
        if self._size:
            self._end()
        total = sum(self.manifest.datasets.values())
        writer = ShardWriter(self.folder / "staging")
        source = {"source_file": "made_up.jsonl", "records": total, "used": total}
        writer.write("sources", pa.Table.from_pylist([source], schema=TABLES["sources"].schema))
        writer.close()
        staged = writer.folder / "sources.parquet"
        self.manifest.tables["sources"] = [place(staged, self.folder, "sources", 0, 1)]
        for rest in writer.folder.iterdir():
            rest.unlink()
        writer.folder.rmdir()
        self.manifest.counts = Counts(records=total, used=total, trajectories=total)
        self.manifest.write(self.folder)


def store_and_nested(store: Path, nested: Path, count: int, seed: int = 2) -> dict[str, Any]:
    """Write the same trajectories as a store and as one nested file, and describe them."""
    maker = StoreMaker(store)
    batch: list[dict[str, Any]] = []
    with pq.ParquetWriter(nested, NESTED, compression="zstd", compression_level=3) as writer:
        for row in trajectories(count, seed):
            maker.add(row)
            batch.append(row)
            if len(batch) == NESTED_GROUP:
                writer.write_table(pa.Table.from_pylist(batch, schema=NESTED))
                batch.clear()
        if batch:
            writer.write_table(pa.Table.from_pylist(batch, schema=NESTED))
    maker.finish()
    return describe(store, nested) | {"content_megabytes": round(maker.text / 1e6, 1)}


def describe(store: Path, nested: Path) -> dict[str, Any]:
    """What a store and its nested twin hold, and their size on disk."""
    manifest = Store.open(str(store)).manifest
    rows = {table: manifest.rows(table) for table in manifest.tables}
    size = sum(shard.size for shards in manifest.tables.values() for shard in shards)
    return {
        "rows": rows,
        "shards": len(manifest.tables["trajectories"]),
        "store_megabytes": round(size / 1e6, 1),
        "nested_megabytes": round(nested.stat().st_size / 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("chat", "store"))
    parser.add_argument("target", type=Path)
    parser.add_argument("--megabytes", type=float, default=500)
    parser.add_argument("--count", type=int, default=100_000)
    options = parser.parse_args()
    if options.what == "chat":
        options.target.parent.mkdir(parents=True, exist_ok=True)
        print(chat_jsonl(options.target, options.megabytes), "records")
    else:
        options.target.mkdir(parents=True, exist_ok=True)
        nested = options.target / "nested.parquet"
        print(store_and_nested(options.target / "store", nested, options.count))


if __name__ == "__main__":
    main()
