"""Chats that only talk about tools: nothing is read out of them when nobody names a dialect.

The folder ``talk`` holds such chats: lessons, minutes, code reviews, logs in bug reports, role-play.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from adp.converters.run import ConvertOptions, convert
from adp.converters.text_calls.registry import DIALECTS
from adp.converters.text_calls.store import ParseOptions, find_dialects, parse
from adp.stores.shards import open_finished
from adp_schema.store import Store

TALK = Path(__file__).parent / "talk"
FILES = sorted(TALK.glob("*.jsonl"))


def invented(store: Store) -> Counter[str]:
    """Calls, observations and reasoning of a store of chats that have none."""
    counts: Counter[str] = Counter()
    for table in ("tool_calls", "observations"):
        if store.files(table):
            counts[table] += len(store.scan(table).collect())
    steps = store.scan("steps").collect()
    counts["reasoning"] += len(steps) - steps["reasoning"].null_count()
    counts["prose"] += len(steps) - steps["prose"].null_count()
    return +counts


def converted(source: Path, out: Path) -> Store:
    """A store made as ``adp convert`` makes it."""
    convert([str(source)], str(out), options=ConvertOptions(workers=1))
    return open_finished(str(out))


def messages(record: dict[str, Any]) -> list[str]:
    """The texts of a chat."""
    return [turn.get("content") or turn["value"] for turn in
            record.get("messages") or record["conversations"]]  # fmt: skip


def test_there_is_enough_talk() -> None:
    records = [json.loads(line) for path in FILES for line in path.read_text("utf-8").splitlines()]
    assert len(records) >= 90
    texts = [text for record in records for text in messages(record)]
    assert sum(text.count("\n") + 1 for text in texts) >= 1000


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_talk_has_no_dialect(path: Path, tmp_path: Path) -> None:
    store = converted(path, tmp_path / "store")
    assert not store.manifest.parsed
    assert not invented(store)
    assert find_dialects(store) == {}


def test_all_talk_in_one_file(tmp_path: Path) -> None:
    """OpenAI's shape in one file; ShareGPT's is another format and stays a file of its own."""
    lines = [path.read_text("utf-8") for path in FILES if "sharegpt" not in path.stem]
    (tmp_path / "all.jsonl").write_text("".join(lines), encoding="utf-8")
    assert not invented(converted(tmp_path / "all.jsonl", tmp_path / "store"))


def test_chats_that_are_files_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for path in FILES:
        for number, line in enumerate(path.read_text("utf-8").splitlines()):
            (folder / f"{path.stem}-{number}.json").write_text(line, encoding="utf-8")
    store = converted(folder, tmp_path / "store")
    wrong = find_dialects(store)
    assert not wrong
    assert not invented(store)
    assert not store.manifest.parsed
