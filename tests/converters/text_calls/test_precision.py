"""Chats that only talk about tools: nothing is read out of them when nobody names a dialect.

The folder ``talk`` holds such chats: lessons, minutes, code reviews, logs in bug reports, plays.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from adp.converters.run import ConvertOptions, convert
from adp.converters.text_calls.registry import DIALECTS, dialect
from adp.converters.text_calls.store import find_dialects
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


AUTOMATIC = [name for name in DIALECTS if dialect(name).automatic]


def runs(name: str, count: int) -> list[dict[str, Any]]:
    """Runs in a dialect: its example as the turns of the agent, its results as what comes back."""
    grammar = dialect(name)
    prompt = f"Act in this form and wait for what comes back:\n\n{grammar.example}"
    records = []
    for number in range(count):
        turns = [("system", prompt), ("user", f"Task {number}: do it.")]
        for turn in range(1 + number % 3):
            mark = grammar.results[0] if grammar.results else ""
            turns += [("assistant", grammar.example), ("user", f"{mark} result {turn}")]
        turns.append(("assistant", f"Task {number} is done."))
        messages = [{"role": role, "content": text} for role, text in turns]
        records.append({"messages": messages, "run": number})
    return records


@pytest.mark.parametrize("name", AUTOMATIC)
def test_talk_among_runs_stays_talk(name: str, tmp_path: Path) -> None:
    """Thirty chats that talk among seventy runs: nothing is invented in any of the thirty."""
    talk = [json.loads(line) for path in FILES if "sharegpt" not in path.stem
            for line in path.read_text("utf-8").splitlines()]  # fmt: skip
    acting = runs(name, 200)
    records: list[dict[str, Any]] = []
    while talk:
        records += [acting.pop() for _ in range(7 if records else 2)]
        records += [{**talk.pop(), "talk": True} for _ in range(min(3, len(talk)))]
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    (tmp_path / "mixed.jsonl").write_text("\n".join(lines), encoding="utf-8")
    store = converted(tmp_path / "mixed.jsonl", tmp_path / "store")
    assert {key.split(":")[0] for key in store.manifest.parsed} == {name}
    trajectories = store.scan("trajectories").collect()
    kept = dict(zip(trajectories["seq"].to_list(), trajectories["extra"].to_list(), strict=True))
    is_talk = {seq: '"talk"' in (extra or "") for seq, extra in kept.items()}
    assert sum(is_talk.values()) >= 80
    for table in ("tool_calls", "observations"):
        rows = store.scan(table).collect()["seq"].to_list()
        wrong = {seq for seq in rows if is_talk[seq]}
        assert not wrong
    # Every run is parsed, the talk around it notwithstanding.
    called = set(store.scan("tool_calls").collect()["seq"].to_list())
    assert {seq for seq, talks in is_talk.items() if not talks} == called
