"""Planted contamination: precision, recall, prompts that all share, and mutants that must fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import adp.curation.ops.decontaminate as op
from adp.curation.apply import apply
from adp.curation.op import OpResult
from adp.curation.ops.decontaminate import index, scan
from tests.curation.ops.planted import Planted

PROMPTS = ("none", "message", "prefix")


@pytest.fixture(scope="module")
def planted() -> Planted:
    return Planted()


@pytest.fixture(scope="module")
def folder(planted: Planted, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted")
    for prompt in PROMPTS:
        planted.store(folder / prompt, prompt)
    planted.benchmark(folder / "items.jsonl")
    return folder


def _outcome(folder: Path, prompt: str, **options: object) -> OpResult:
    return apply(
        "decontaminate", str(folder / prompt), against=[str(folder / "items.jsonl")], **options
    )


def _flagged(folder: Path, prompt: str) -> set[int]:
    columns = _outcome(folder, prompt).columns
    assert columns is not None
    return set(columns.filter(columns["contaminated"])["seq"].to_list())


def accept(planted: Planted, folder: Path) -> None:
    """What must hold, with and without a prompt that all documents share."""
    truth = {seq for seq, document in enumerate(planted.documents) if document.share >= 0.5}
    without = _flagged(folder, "none")
    for prompt in PROMPTS:
        result = without if prompt == "none" else _flagged(folder, prompt)
        assert len(result & truth) >= 0.95 * len(result), "precision"
        assert len(result & truth) >= 0.9 * len(truth), "recall"
        assert result == without, "shared prompt"
    turns = {seq for seq, document in enumerate(planted.documents) if document.why == "turns"}
    assert not without & turns, "message boundary"


def test_precision_and_recall_with_and_without_a_shared_prompt(
    planted: Planted, folder: Path
) -> None:
    accept(planted, folder)


def test_every_kind_of_document_is_judged_as_planted(planted: Planted, folder: Path) -> None:
    flagged = _flagged(folder, "none")
    wrong = [
        (document.why, document.share)
        for seq, document in enumerate(planted.documents)
        if (document.share >= 0.5) != (seq in flagged)
    ]
    assert wrong == []


def test_the_share_and_the_item_are_told(planted: Planted, folder: Path) -> None:
    columns = _outcome(folder, "none").columns
    assert columns is not None
    exact = {"whole", "exactly half", "a part", "less than half", "just under half", "paragraphs"}
    for seq, _, share, item, level in columns.iter_rows():
        document = planted.documents[seq]
        if document.why in exact:
            assert share == pytest.approx(document.share)
            assert item == f"items#{document.item + 1}"
            assert level == ("text" if document.share >= 0.5 else None)
        elif document.why == "innocent":
            assert share < 0.1


def test_an_item_that_the_prompt_quotes_is_reported_as_not_compared(
    planted: Planted, folder: Path
) -> None:
    for prompt, lost in (("none", []), ("message", ["items#1"]), ("prefix", ["items#1"])):
        outcome = _outcome(folder, prompt)
        part = outcome.summary["benchmarks"][0]["text"]
        assert part["too_frequent_examples"] == lost
        assert any("items#1" in line for line in outcome.lines) == bool(lost)


@pytest.mark.slow
def test_the_partitions_make_no_difference(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _outcome(folder, "prefix")
    monkeypatch.setattr("adp.curation.partitions.PARTITION_BYTES", 400_000)
    cut = _outcome(folder, "prefix")
    for name in ("columns", "dropped", "events"):
        result, other = getattr(whole, name), getattr(cut, name)
        assert result.sort("seq").equals(other.sort("seq"))
    assert whole.summary == cut.summary


# ---- mutants ------------------------------------------------------------------------------------


def _no_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    def held(share: np.ndarray, threshold: float) -> np.ndarray:
        return share > 0

    monkeypatch.setattr(scan, "held", held)
    monkeypatch.setattr(op, "held", held)


def _no_document_frequency(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> np.ndarray:
        return np.empty(0, np.int64)

    monkeypatch.setattr(scan, "frequent_parts", none)


def _no_boundary(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_document(words: object) -> np.ndarray:
        return np.zeros(len(words), np.int64)  # type: ignore[arg-type]

    monkeypatch.setattr(index, "message_of", one_document)


@pytest.mark.parametrize(
    ("mutate", "what"),
    [
        (_no_threshold, "precision"),
        (_no_document_frequency, "precision"),
        (_no_boundary, "precision"),
    ],
)
def test_a_mutant_fails(
    mutate: Callable[[pytest.MonkeyPatch], None],
    what: str,
    planted: Planted,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutate(monkeypatch)
    with pytest.raises(AssertionError, match=what):
        accept(planted, folder)
