"""``compat: sage`` against the written arithmetic, one dialog at a time."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from adp.converters.run import convert
from adp.curation.apply import apply
from adp.curation.ops.coreset import Coreset, run
from adp_schema.store import Store
from tests.curation.pools import open_pool
from tests.curation.vector_stores import chat_store, with_column

DIALOGS = (
    Path(__file__).parents[4].parent / "shared" / "data" / "sage" / "agent_sft_synthetic_60.jsonl"
)
SIZES = (1, 2, 5, 17, 36, 59)


class Reference:
    """The selector as it is described: samples are (text, loss or None)."""

    def __init__(self, samples: list[tuple[str, float | None]]) -> None:
        self.samples = samples

    def select(self, strategy: str, size: int | None) -> list[int]:
        everything = list(range(len(self.samples)))
        if size is None or size <= 0 or size >= len(everything):
            return everything
        choose: dict[str, Callable[[list[int], int], list[int]]] = {
            "loss_topk": self.loss_topk,
            "random": lambda rows, size: random.Random(13).sample(rows, size),
            "diversity": self.diversity,
            "hybrid": self.hybrid,
        }
        return choose[strategy](everything, size)

    def loss(self, row: int) -> float:
        text, given = self.samples[row]
        if given is not None:
            return given
        tokens = text.lower().split()
        length = len(tokens)
        entropy = 0.0
        for count in Counter(tokens).values():
            entropy -= (count / length) * math.log(count / length + 1e-9)
        return min(max(length / 512 + entropy / 5, 0), 5)

    def loss_topk(self, rows: list[int], size: int) -> list[int]:
        return sorted(rows, key=self.loss, reverse=True)[:size]

    def features(self, row: int) -> dict[str, float]:
        tokens = re.findall(r"[a-zA-Z0-9_]+", self.samples[row][0].lower())
        counts = Counter(token for token in tokens if len(token) > 2)
        total = sum(counts.values()) or 1
        return {token: count / total for token, count in counts.items()}

    def diversity(self, rows: list[int], size: int) -> list[int]:
        features = {row: self.features(row) for row in rows}

        def norm(row: int) -> float:
            return math.sqrt(sum(value * value for value in features[row].values()))

        def distance(row: int) -> float:
            feature = features[row]
            return 1.0 - max(
                sum(
                    feature[token] * features[other][token]
                    for token in feature
                    if token in features[other]
                )
                for other in chosen
            )

        chosen = [max(rows, key=norm)]
        while len(chosen) < min(size, len(rows)):
            rest = [row for row in rows if row not in chosen]
            chosen.append(max(rest, key=distance))
        return chosen

    def hybrid(self, rows: list[int], size: int) -> list[int]:
        by_loss = int(0.6 * size)
        top = self.loss_topk(rows, by_loss or 1)
        rest = [row for row in rows if row not in top]
        return (top + self.diversity(rest, max(size - by_loss, 1)))[:size]


def selected(outcome: Any, seqs: list[int]) -> list[int]:
    """Places of the selected trajectories, in the order of selection."""
    ranked = outcome.columns.sort("coreset_rank")
    assert ranked["coreset_rank"].to_list() == list(range(1, ranked.height + 1))
    gone = set(outcome.dropped["seq"])
    assert gone.isdisjoint(ranked["seq"])
    assert len(gone) + ranked.height == len(seqs)
    return [seqs.index(seq) for seq in ranked["seq"]]


def check(store: Store, reference: Reference, **more: Any) -> None:
    """Compare all methods at several sizes."""
    seqs = store.scan("trajectories").collect()["seq"].sort().to_list()
    for method in ("loss_topk", "random", "diversity", "hybrid"):
        for size in (None, 0, -3, len(seqs), len(seqs) + 1, *SIZES):
            options = {"method": method, "compat": "sage", "size": size, "coverage": False, **more}
            result = selected(apply("coreset", store, workers=1, **options), seqs)
            assert result == reference.select(method, size), (method, size)


@pytest.mark.skipif(not DIALOGS.exists(), reason="needs the shared dialogs of SAGE")
def test_the_synthetic_dialogs_of_sage(tmp_path: Path) -> None:
    texts, lines = [], []
    for line in DIALOGS.read_text(encoding="utf-8").splitlines():
        dialog = json.loads(line)
        messages = [{"role": turn["role"], "content": turn["content"]} for turn in dialog["turns"]]
        texts.append("\n".join(turn["content"] for turn in dialog["turns"]))
        lines.append(json.dumps({"id": dialog["dialog_id"], "messages": messages}))
    source = tmp_path / "dialogs.jsonl"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    convert([str(source)], str(tmp_path / "store"))
    store = Store.open(str(tmp_path / "store"))
    assert store.scan("trajectories").collect().height == 60
    check(store, Reference([(text, None) for text in texts]))


def _dialogs(count: int, seed: int) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    words = ["plan", "call", "TOOL_1", "tool_1", "it", "of", "Zürich", "x-ray", "42", "so", "data"]
    dialogs = []
    for number in range(count):
        turns = [
            (role, " ".join(draw.choices(words, k=draw.randrange(12))))
            for role in draw.choices(["user", "assistant", "tool"], k=draw.randrange(1, 7))
        ]
        if turns[0][0] == "tool":
            turns[0] = ("user", turns[0][1])
        dialogs.append({"turns": turns if number % 9 else []})
        if number % 7 == 0:
            dialogs.append(dialogs[-1])
    return dialogs


def test_dialogs_with_repeats_and_without_words(tmp_path: Path) -> None:
    dialogs = _dialogs(70, 3)
    store = chat_store(tmp_path / "s", dialogs)
    texts = ["\n".join(text for _, text in dialog["turns"] if text) for dialog in dialogs]
    check(store, Reference([(text, None) for text in texts]))


def test_a_column_with_the_loss(tmp_path: Path) -> None:
    dialogs = _dialogs(40, 5)
    draw = random.Random(1)
    losses = [draw.choice([None, 0.5, 0.5, draw.random(), -1.0]) for _ in dialogs]
    store = chat_store(tmp_path / "s", dialogs)
    texts = ["\n".join(text for _, text in dialog["turns"] if text) for dialog in dialogs]
    reference = Reference([(text, loss or 0.0) for text, loss in zip(texts, losses, strict=True)])
    for method in ("loss_topk", "hybrid"):
        options = Coreset(method=method, compat="sage", size=9, by="loss", coverage=False)
        with open_pool(tmp_path / method, store) as pool:
            with_column(pool, "loss", losses)
            seqs = pool.members["seq"].to_list()
            result = selected(run(pool, options), seqs)
        assert result == reference.select(method, 9)


def test_calls_belong_to_the_text(tmp_path: Path) -> None:
    message = {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"q": "a"}'}}
        ],
    }
    messages = [{"role": "user", "content": "Hi"}, message]
    messages.append({"role": "tool", "tool_call_id": "c", "content": "found"})
    source = tmp_path / "a.jsonl"
    source.write_text(json.dumps({"messages": messages}) + "\n", encoding="utf-8")
    convert([str(source)], str(tmp_path / "store"))
    from adp.curation.ops.coreset.sage import whole_texts

    with open_pool(tmp_path / "x", Store.open(str(tmp_path / "store"))) as pool:
        (result,) = pool.partitions
        assert [text for _, text in whole_texts(result)] == ['Hi\nI look.\nfind {"q": "a"}\nfound']


def test_columns_are_described(tmp_path: Path) -> None:
    store = chat_store(tmp_path / "s", _dialogs(10, 1))
    outcome = apply("coreset", store, method="diversity", compat="sage", size=3)
    assert outcome.columns is not None
    assert outcome.columns.schema == pl.Schema(
        {"seq": pl.Int64, "coreset_rank": pl.Int64, "coreset_gain": pl.Float64}
    )
    assert outcome.columns["coreset_gain"].null_count() == 1
