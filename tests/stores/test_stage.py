"""Stages: whoever does the parts, and in whatever order, the bytes are the same."""

from __future__ import annotations

import hashlib
import json
from contextlib import nullcontext
from dataclasses import dataclass

import pytest

import adp
from adp.core.progress import Silent
from adp.stores.stage import run_stage, use_executor
from adp.stores.workers import AHEAD
from adp_schema.manifest import RUN


class Backwards:
    """Does the last part first, all in this process."""

    def __init__(self):
        self.stages = 0

    def run(self, work, parts, workers, folder=None):
        self.stages += 1
        for part in reversed(list(parts)):
            yield part, work(part)

    def kept(self):
        return nullcontext()


@dataclass(frozen=True)
class Part:
    index: int
    size: int = 1


def double(part):
    return part.index * 2


def test_results_are_in_the_order_of_the_parts():
    parts = [Part(index) for index in (4, 2, 9)]
    came = []
    with use_executor(Backwards()):
        results = run_stage(
            parts, double, None, Silent(), done=lambda part, made: came.append((part.index, made))
        )
    assert results == [8, 4, 18]
    assert came == [(9, 18), (2, 4), (4, 8)]
    assert run_stage(parts, double, None, Silent()) == [8, 4, 18]


@pytest.mark.parametrize("workers", [1, 2])
def test_parts_are_asked_for_only_as_others_end(workers):
    asked, came, most = [], [], 0

    def parts():
        for index in range(12):
            asked.append(index)
            yield Part(index)

    def done(part, made):
        nonlocal most
        came.append(made)
        most = max(most, len(asked) - len(came))

    results = run_stage(parts(), double, workers, Silent(), known={3: 6}, done=done)
    assert results == [index * 2 for index in range(12)]
    assert sorted(came) == [index * 2 for index in range(12) if index != 3]
    assert most <= (0 if workers == 1 else workers + AHEAD) + 1  # and the one that was known


def test_what_fails_while_parts_are_made_ends_the_stage():
    def parts():
        yield from (Part(index) for index in range(5))
        raise KeyError("no more")

    with pytest.raises(KeyError, match="no more"):
        run_stage(parts(), double, 2, Silent())


def hashes(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != RUN
    }


@pytest.fixture
def chats(tmp_path, monkeypatch):
    monkeypatch.setattr("adp.converters.plan.SHARD_BYTES", 3000)
    (tmp_path / "chats").mkdir()
    for number in range(12):
        chat = [{"role": "user", "content": "x" * 900}, {"role": "assistant", "content": "y" * 90}]
        lines = [json.dumps({"messages": [*chat, {"role": "user", "content": str(number)}]})] * 2
        (tmp_path / "chats" / f"{number}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return str(tmp_path / "chats")


def test_a_store_and_what_is_made_of_it_do_not_depend_on_the_executor(chats, tmp_path):
    recipe = {"recipe": 1, "ops": ["measure", "dedup_exact"], "inputs": {}}
    made = []
    for name, executor in (("here", None), ("backwards", Backwards())):
        with use_executor(executor) if executor else nullcontext():
            adp.convert(chats, tmp_path / name / "store")
            inputs = {"a": str(tmp_path / name / "store")}
            adp.curate({**recipe, "inputs": inputs}, tmp_path / name / "curated")
        if executor:
            assert executor.stages >= 3
        made.append(hashes(tmp_path / name / "store"))
        parts = hashes(tmp_path / name / "curated")
        made[-1] |= {path: text for path, text in parts.items() if path.endswith(".parquet")}
    assert len([path for path in made[0] if path.startswith("steps/")]) > 3
    assert made[0] == made[1]
