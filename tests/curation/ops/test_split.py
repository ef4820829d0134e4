"""Splits by task: stable, whole, near the shares; leaks reported, moved and dropped."""

from __future__ import annotations

import hashlib
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.curation.apply import apply
from adp.curation.op import OpResult
from adp.curation.ops.split import split_of, spot
from adp_schema.builder import Origin, RowBuilder
from adp_schema.errors import RecipeError
from adp_schema.store import Store
from tests.effort import examples
from tests.store_builders import write_store

Run = dict[str, Any]
SHARES = {"train": 0.8, "valid": 0.1, "test": 0.1}


def _store(folder: Path, runs: list[Run]) -> Store:
    builder = RowBuilder()
    for seq, run in enumerate(runs):
        name = run.get("dataset", "d")
        builder.begin(Origin(seq=seq, dataset=name, columns={"source_format": "x"}))
        columns = {name: run[name] for name in ("task_id", "split") if run.get(name) is not None}
        builder.trajectory({"source_id": run.get("id", str(seq)), **columns})
        for text in run.get("user", []):
            builder.step({"source": "user", "kind": "message", "text": text})
        builder.finish()
    return write_store(folder, builder)


def _split(runs: list[Run], **options: Any) -> OpResult:
    with tempfile.TemporaryDirectory() as folder:
        return apply("split", _store(Path(folder) / "s", runs), **options)


def _splits(outcome: OpResult) -> list[str]:
    assert outcome.splits is not None
    splits: list[str] = outcome.splits.sort("seq")["split"].to_list()
    return splits


def plain_split(key: str, salt: str, shares: dict[str, float]) -> str:
    """The definition, step by step, in whole numbers."""
    data = salt.encode() + b"\x00" + key.encode()
    number = int(hashlib.blake2b(data, digest_size=8).hexdigest(), 16)
    total = sum(shares.values())
    reached = 0.0
    for name in list(shares)[:-1]:
        reached += shares[name]
        if number / 2**64 < reached / total:
            return name
    return list(shares)[-1]


@given(st.text(max_size=5), st.text(max_size=5))
def test_the_split_is_that_of_the_definition(key: str, salt: str) -> None:
    assert split_of(spot(salt, key), SHARES) == plain_split(key, salt, SHARES)


tasks = st.lists(
    st.fixed_dictionaries(
        {
            "task_id": st.none() | st.sampled_from("abcdefghijkl"),
            "user": st.lists(st.sampled_from(["one", "two words", "", "three"]), max_size=2),
            "dataset": st.sampled_from(["d", "e"]),
            "split": st.none() | st.sampled_from(["train", "test", "other"]),
        }
    ),
    max_size=12,
)


@settings(max_examples=examples(20))
@given(runs=tasks, draw=st.randoms(use_true_random=False), keep=st.booleans())
def test_neither_more_data_nor_the_order_moves_a_task(
    runs: list[Run], draw: random.Random, keep: bool
) -> None:
    named = [{**run, "id": f"r{number}"} for number, run in enumerate(runs)]
    everything = _split(named, shares=SHARES)
    by_name = dict(zip([run["id"] for run in named], _splits(everything), strict=True))
    some = [run for run in named if draw.random() < 0.5]
    draw.shuffle(some)
    assert _splits(_split(some, shares=SHARES)) == [by_name[run["id"]] for run in some]
    kept = _split(named, shares=SHARES, keep_existing=True, leakage="off")
    for run, split in zip(named, _splits(kept), strict=True):
        assert split == run["split"] or run["split"] is None


@settings(max_examples=examples(20))
@given(runs=tasks, by=st.sampled_from(["task", "dataset", "agent_model"]))
def test_what_belongs_together_is_never_parted(runs: list[Run], by: str) -> None:
    outcome = _split(runs, by=by, shares=SHARES)
    splits = _splits(outcome)
    assert len(splits) == len(runs)
    known: dict[str, str] = {}
    for number, (run, split) in enumerate(zip(runs, splits, strict=True)):
        if by == "dataset":
            key = run["dataset"]
        elif by == "task" and run["task_id"]:
            key = f"{run['dataset']}/{run['task_id']}"
        elif by == "agent_model":
            key = f"trajectory:{run['dataset']}/{number}"
            assert split == plain_split(key, "split", SHARES)
        else:
            continue
        assert known.setdefault(key, split) == split == plain_split(key, "split", SHARES)
    assert sum(outcome.summary["trajectories"].values()) == len(runs)


def test_the_shares_come_out_near_what_was_asked() -> None:
    runs = [{"task_id": f"t{number}"} for number in range(3000) for _ in range(1)]
    outcome = _split(runs, shares=SHARES)
    assert outcome.summary["requested"] == SHARES
    for name, share in SHARES.items():
        # Four standard deviations of a binomial share.
        assert abs(outcome.summary["realised"][name] - share) < 4 * (share / 3000) ** 0.5
    assert "train" in outcome.lines[0]
    other = _split(runs, shares=SHARES, salt="other")
    assert _splits(other) != _splits(outcome)


# ---- leaks --------------------------------------------------------------------------------------


def _text(draw: random.Random, words: int) -> str:
    return " ".join(f"w{draw.randrange(5000)}" for _ in range(words))


def _shingles(text: str, size: int = 5) -> set[tuple[str, ...]]:
    words = text.split()
    return {tuple(words[at : at + size]) for at in range(max(len(words) - size + 1, 1))}


def _leaking(prompt: str = "") -> list[Run]:
    """60 tasks; each second one is the one before with some words changed; attempts at some."""
    draw = random.Random(4)
    runs = []
    for number in range(30):
        words = _text(draw, 60).split()
        changed = list(words)
        for _ in range(number % 4):
            changed[draw.randrange(60)] = "changed"
        for letter, text in (("a", words), ("b", changed)):
            for _ in range(1 + number % 3):
                messages = [prompt, " ".join(text)] if prompt else [" ".join(text)]
                runs.append({"task_id": f"{letter}{number}", "user": messages})
    return runs


def _expected(runs: list[Run], splits: list[str]) -> dict[int, float]:
    """Trajectories with a near-duplicate in another split, and the greatest similarity."""
    results: dict[int, float] = {}
    shingles = [_shingles(run["user"][0]) for run in runs]
    for result, split in enumerate(splits):
        for other, other_split in enumerate(splits):
            both = len(shingles[result] & shingles[other])
            value = both / (len(shingles[result]) + len(shingles[other]) - both)
            if split != other_split and value >= 0.7:
                results[result] = max(results.get(result, 0.0), value)
    return results


HALF = {"train": 0.6, "test": 0.4}


def test_leaks_are_those_of_all_pairs() -> None:
    runs = _leaking()
    outcome = _split(runs, shares=HALF)
    expected = _expected(runs, _splits(outcome))
    assert outcome.columns is not None
    assert outcome.events is not None
    leaks = outcome.columns.filter(pl.col("leak_of").is_not_null())
    assert dict(leaks.select("seq", "leak_jaccard").iter_rows()) == pytest.approx(expected)
    assert len(expected) > 10
    assert sorted(outcome.events["seq"].to_list()) == sorted(expected)
    assert outcome.summary["leaks"]["trajectories"] == len(expected)
    by_id = {f"d/{number}": run for number, run in enumerate(runs)}
    for seq, name in leaks.select("seq", "leak_of").iter_rows():
        assert by_id[name]["task_id"][1:] == runs[seq]["task_id"][1:]


def test_a_shared_prompt_makes_no_leak() -> None:
    prompt = _text(random.Random(9), 500)
    plain, shared = (_split(_leaking(item), shares=HALF) for item in ("", prompt))
    assert plain.columns is not None
    assert shared.columns is not None
    seqs = [item.filter(pl.col("leak_of").is_not_null())["seq"].to_list()
            for item in (plain.columns, shared.columns)]  # fmt: skip
    assert seqs[0] == seqs[1]


def test_moving_leaves_no_leak_and_moves_whole_groups_to_the_smallest_hash() -> None:
    runs = _leaking()
    outcome = _split(runs, shares=HALF, leakage="move")
    splits = _splits(outcome)
    assert _expected(runs, splits) == {}
    assert outcome.summary["leaks"]["left"] == 0
    assert outcome.columns is not None
    assert outcome.events is not None
    before = _splits(_split(runs, shares=HALF))
    places = dict(zip([run["task_id"] for run in runs], outcome.columns["split_hash"], strict=True))
    texts = {run["task_id"]: _shingles(run["user"][0]) for run in runs}
    changed = set()
    for seq, run in enumerate(runs):
        name = run["task_id"]
        other = ("b" if name[0] == "a" else "a") + name[1:]
        both = len(texts[name] & texts[other])
        near = both / (len(texts[name]) + len(texts[other]) - both) >= 0.7
        first = min([name, other] if near else [name], key=lambda item: places[item])
        assert splits[seq] == split_of(places[first], HALF)
        if splits[seq] != before[seq]:
            changed.add(seq)
    assert set(outcome.events["seq"].to_list()) == changed
    assert set(outcome.events["verdict"].to_list()) == {"moved"}


def test_dropping_takes_the_side_with_the_greater_share() -> None:
    runs = _leaking()
    outcome = _split(runs, shares=HALF, leakage="drop")
    splits = _splits(outcome)
    assert outcome.dropped is not None
    gone = set(outcome.dropped["seq"].to_list())
    expected = _expected(runs, splits)
    assert gone == {seq for seq in expected if splits[seq] == "train"}
    evidence = json.loads(outcome.dropped["evidence"][0])
    assert (evidence["split"], evidence["other_split"]) == ("train", "test")
    assert outcome.summary["trajectories"]["train"] == splits.count("train") - len(gone)


def test_existing_splits_are_kept_and_new_ones_follow_them() -> None:
    text = _text(random.Random(1), 50)
    runs: list[Run] = [
        {"task_id": "a", "split": "dev", "user": [text]},
        {"task_id": "a", "user": [text]},
        {"task_id": "b", "user": [text + " more"]},
        {"task_id": "c", "split": "x"},
        {"task_id": "c", "split": "y"},
        {"task_id": "c"},
    ]
    outcome = _split(runs, keep_existing=True, leakage="move")
    hashed = plain_split("d/c", "split", {"train": 0.9, "test": 0.1})
    assert _splits(outcome) == ["dev", "dev", "dev", "x", "y", hashed]
    assert outcome.summary["conflicts"] == 1
    assert any(line.startswith("alarm") for line in outcome.lines)


def test_equal_texts_leak_into_every_split_that_has_one() -> None:
    """Of equal texts one is compared for all, which must not hide the others."""
    text = _text(random.Random(1), 30)
    runs = [{"task_id": f"t{number}", "user": [text]} for number in range(8)]
    outcome = _split(runs, shares={"a": 1, "b": 1, "c": 1})
    splits = _splits(outcome)
    assert len(set(splits)) == 3
    assert outcome.columns is not None
    assert outcome.columns["leak_jaccard"].to_list() == [1.0] * 8


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shares": {}}, "at least 1 item"),
        ({"shares": {"train": 0}}, "must be a number above 0"),
        ({"shares": {"": 1}}, "must be a number above 0"),
        ({"shares": {"train": float("nan")}}, "must be a number above 0"),
        ({"by": "difficulty"}, "needs the column difficulty"),
        ({"leakage": "maybe"}, "leakage"),
    ],
)
def test_wrong_options_are_one_sentence(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        _split([{"task_id": "a"}], **options)


@pytest.mark.parametrize("leakage", ["off", "report", "move", "drop"])
def test_nothing_and_trajectories_without_text_are_split_too(leakage: str) -> None:
    assert _splits(_split([], leakage=leakage)) == []
    outcome = _split([{}, {"user": [None]}, {"user": [""]}, {"task_id": "a"}], leakage=leakage)
    assert len(_splits(outcome)) == 4
    assert None not in _splits(outcome)
